//! Peels what a snapshot is wrapped in: gzip, zstd, xz, and the zip that `torch.save` writes.

use std::io::{self, Cursor, Read, Seek, SeekFrom};

use crate::error::Error;

/// A wrapping around a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// gzip.
    Gzip,
    /// Zstandard.
    Zstd,
    /// xz.
    Xz,
    /// The zip file that `torch.save` writes, with a pickle in it.
    TorchZip,
}

impl Layer {
    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Xz => "xz",
            Self::TorchZip => "torch.save zip",
        }
    }

    fn sniff(head: &[u8]) -> Option<Self> {
        if head.starts_with(b"\x1f\x8b") {
            Some(Self::Gzip)
        } else if head.starts_with(b"\x28\xb5\x2f\xfd") {
            Some(Self::Zstd)
        } else if head.starts_with(b"\xfd7zXZ\0") {
            Some(Self::Xz)
        } else if head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") {
            Some(Self::TorchZip)
        } else {
            None
        }
    }
}

/// The innermost stream, and what it was wrapped in.
pub(crate) struct Opened<'a> {
    pub(crate) layers: Vec<Layer>,
    /// The first bytes of the stream; they are still in the stream too.
    pub(crate) head: Vec<u8>,
    pub(crate) stream: Box<dyn Read + 'a>,
}

/// How much of the beginning is looked at.
const HEAD: u64 = 4096;
/// How many wrappings are taken off.
const MAX_LAYERS: usize = 4;
/// What a compressed file may always grow to, and how many times its own size if that is more. Real snapshots shrink
/// 10 to 100 times; a bomb shrinks a million times.
const ALWAYS: u64 = 1 << 28;
const MAX_RATIO: u64 = 500;
/// The most that is held in memory to look into a zip inside another container.
const MAX_BUFFERED: u64 = 1 << 32;

pub(crate) fn open<'a, R: Read + Seek>(file: &'a mut R) -> Result<Opened<'a>, Error> {
    let length = file.seek(SeekFrom::End(0))?;
    let limit = ALWAYS.max(length.saturating_mul(MAX_RATIO));
    file.seek(SeekFrom::Start(0))?;
    let mut head = Vec::new();
    file.by_ref().take(HEAD).read_to_end(&mut head)?;
    file.seek(SeekFrom::Start(0))?;

    let mut layers = Vec::new();
    let mut stream: Box<dyn Read + 'a>;
    if Layer::sniff(&head) == Some(Layer::TorchZip) {
        layers.push(Layer::TorchZip);
        stream = open_zip(file, limit)?;
        head = peek(&mut stream, Layer::TorchZip)?;
    } else {
        stream = Box::new(file);
    }
    while let Some(layer) = Layer::sniff(&head) {
        if layers.len() == MAX_LAYERS {
            return Err(Error::Container {
                layer: layer.name(),
                reason: "too many containers in one another".into(),
            });
        }
        layers.push(layer);
        stream = match layer {
            Layer::Gzip => Box::new(flate2::read::MultiGzDecoder::new(stream)),
            Layer::Zstd => Box::new(
                zstd::stream::read::Decoder::new(stream)
                    .map_err(|e| Error::Container { layer: layer.name(), reason: e.to_string() })?,
            ),
            Layer::Xz => Box::new(liblzma::read::XzDecoder::new_multi_decoder(stream)),
            Layer::TorchZip => {
                let mut bytes = Vec::new();
                stream.take(MAX_BUFFERED.min(limit)).read_to_end(&mut bytes)?;
                open_zip(Cursor::new(bytes), limit)?
            }
        };
        stream = Box::new(Capped { inner: stream, left: limit });
        head = peek(&mut stream, layer)?;
    }
    Ok(Opened { layers, head, stream })
}

/// Reads the beginning of a stream and puts it back.
fn peek<'a>(stream: &mut Box<dyn Read + 'a>, layer: Layer) -> Result<Vec<u8>, Error> {
    let mut head = Vec::new();
    // A damaged container may give a few good bytes first: those count.
    if let Err(e) = stream.by_ref().take(HEAD).read_to_end(&mut head) {
        if head.is_empty() {
            return Err(Error::Container { layer: layer.name(), reason: e.to_string() });
        }
    }
    let rest = std::mem::replace(stream, Box::new(io::empty()));
    *stream = Box::new(Cursor::new(head.clone()).chain(rest));
    Ok(head)
}

/// The stream of the pickle in a `torch.save` zip.
fn open_zip<'a, R: Read + Seek + 'a>(file: R, limit: u64) -> Result<Box<dyn Read + 'a>, Error> {
    let damaged = |reason: String| Error::Container { layer: Layer::TorchZip.name(), reason };
    let mut archive = zip::ZipArchive::new(file).map_err(|e| damaged(e.to_string()))?;
    let name = archive.file_names().find(|n| *n == "data.pkl" || n.ends_with("/data.pkl")).map(str::to_owned);
    // A snapshot that someone zipped by hand is as good.
    let single = (archive.len() == 1).then(|| archive.file_names().next().map(str::to_owned)).flatten();
    let name = name.or(single).ok_or_else(|| Error::NoSnapshot {
        format: "zip file",
        found: "there is no data.pkl in it, so torch.save did not write it; unpack it and give the snapshots themselves"
            .into(),
    })?;
    let index =
        archive.index_for_name(&name).ok_or_else(|| damaged("its directory contradicts itself".into()))?;
    let entry = archive.by_index_raw(index).map_err(|e| damaged(e.to_string()))?;
    if entry.encrypted() {
        return Err(damaged(format!("{name} is encrypted")));
    }
    let (start, length, method) = (entry.data_start(), entry.compressed_size(), entry.compression());
    drop(entry);
    let mut file = archive.into_inner();
    file.seek(SeekFrom::Start(start))?;
    let stored = file.take(length);
    match method {
        zip::CompressionMethod::Stored => Ok(Box::new(stored)),
        // The zip crate names methods that it was built without by their number; 8 is deflate.
        #[allow(deprecated, reason = "the only name for a method that the crate itself does not unpack")]
        zip::CompressionMethod::Unsupported(8) => {
            Ok(Box::new(Capped { inner: Box::new(flate2::read::DeflateDecoder::new(stored)), left: limit }))
        }
        other => Err(damaged(format!("{name} is compressed with {other}, which is not supported"))),
    }
}

/// Ends a stream with an error where it has given more than it should.
struct Capped<'a> {
    inner: Box<dyn Read + 'a>,
    left: u64,
}

impl Read for Capped<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::Error::other(
                "it unpacks to far more than any snapshot would; if it is one, unpack it by hand and give that",
            ));
        }
        let most = buf.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let n = self.inner.read(buf.get_mut(..most).unwrap_or(&mut []))?;
        self.left -= n as u64;
        Ok(n)
    }
}
