//! Peels what a snapshot is wrapped in: gzip, zstd, xz, and the zip that `torch.save` writes.

use std::io::{self, Cursor, Read, Seek, SeekFrom};

use liblzma::stream::{CONCATENATED, Stream};

use crate::error::{Error, Warning};

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
    pub(crate) warnings: Vec<Warning>,
    /// The first bytes of the stream; they are still in the stream too.
    pub(crate) head: Vec<u8>,
    pub(crate) stream: Box<dyn Read + 'a>,
    /// How many bytes the file has.
    pub(crate) length: u64,
}

/// How much of the beginning is looked at.
const HEAD: u64 = 4096;
/// How many wrappings are taken off.
const MAX_LAYERS: usize = 4;
/// What a compressed file may always grow to, and how many times its own size if that is more. Real snapshots shrink
/// 10 to 100 times; a bomb shrinks a million times.
const ALWAYS: u64 = 1 << 26;
const MAX_RATIO: u64 = 500;
/// The most that is held in memory to look into a zip inside another container.
const MAX_BUFFERED: u64 = 1 << 32;
/// What an xz file may need to be unpacked; `xz -9` asks for 65 MiB.
const XZ_MEMORY: u64 = 512 << 20;

pub(crate) fn open<'a, R: Read + Seek>(file: &'a mut R) -> Result<Opened<'a>, Error> {
    let length = file.seek(SeekFrom::End(0))?;
    let limit = ALWAYS.max(length.saturating_mul(MAX_RATIO));
    file.seek(SeekFrom::Start(0))?;
    let mut head = Vec::new();
    file.by_ref().take(HEAD).read_to_end(&mut head)?;
    file.seek(SeekFrom::Start(0))?;

    let mut layers = Vec::new();
    let mut warnings = Vec::new();
    let mut stream: Box<dyn Read + 'a>;
    if Layer::sniff(&head) == Some(Layer::TorchZip) {
        layers.push(Layer::TorchZip);
        stream = open_zip(file, limit, &mut warnings)?;
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
            Layer::Xz => {
                let decoder = Stream::new_stream_decoder(XZ_MEMORY, CONCATENATED)
                    .map_err(|e| Error::Container { layer: layer.name(), reason: e.to_string() })?;
                Box::new(liblzma::read::XzDecoder::new_stream(stream, decoder))
            }
            Layer::TorchZip => {
                let mut bytes = Vec::new();
                // What comes before damage may still hold the pickle.
                if let Err(e) = stream.take(MAX_BUFFERED.min(limit)).read_to_end(&mut bytes) {
                    warnings.push(Warning::new(format!("the file around the zip file is damaged: {e}")));
                }
                open_zip(Cursor::new(bytes), limit, &mut warnings)?
            }
        };
        stream = Box::new(Capped { inner: stream, left: limit });
        head = peek(&mut stream, layer)?;
    }
    Ok(Opened { layers, warnings, head, stream, length })
}

/// Reads the beginning of a stream and puts it back.
fn peek<'a>(stream: &mut Box<dyn Read + 'a>, layer: Layer) -> Result<Vec<u8>, Error> {
    let mut head = Vec::new();
    let read = stream.by_ref().take(HEAD).read_to_end(&mut head);
    let mut rest = std::mem::replace(stream, Box::new(io::empty()));
    if let Err(e) = read {
        // A damaged container may give a few good bytes first: those count. What is wrong is told again behind them.
        if head.is_empty() {
            return Err(Error::Container { layer: layer.name(), reason: e.to_string() });
        }
        rest = Box::new(Failed(Some(e)));
    }
    *stream = Box::new(Cursor::new(head.clone()).chain(rest));
    Ok(head)
}

/// A stream that ends with an error.
struct Failed(Option<io::Error>);

impl Read for Failed {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

/// Where the pickle lies in a zip file.
struct Entry {
    start: u64,
    length: u64,
    method: zip::CompressionMethod,
    /// The checksum of what is in it, if it is known.
    crc: Option<u32>,
}

/// The stream of the pickle in a `torch.save` zip.
fn open_zip<'a, R: Read + Seek + 'a>(
    mut file: R,
    limit: u64,
    warnings: &mut Vec<Warning>,
) -> Result<Box<dyn Read + 'a>, Error> {
    let entry = match zip::ZipArchive::new(&mut file) {
        Ok(archive) => listed_entry(archive)?,
        Err(e) => {
            let entry = first_entry(&mut file)?.ok_or_else(|| damaged_zip(e.to_string()))?;
            warnings.push(Warning::new(
                "the zip file has lost its directory, which comes last, so it was cut short or damaged; the first file in \
                 it was read",
            ));
            entry
        }
    };
    file.seek(SeekFrom::Start(entry.start))?;
    let packed = file.take(entry.length);
    match entry.method {
        zip::CompressionMethod::Stored => Ok(Checked::boxed(packed, entry.crc)),
        DEFLATE => {
            let unpacked = Capped { inner: Box::new(flate2::read::DeflateDecoder::new(packed)), left: limit };
            Ok(Checked::boxed(unpacked, entry.crc))
        }
        other => Err(damaged_zip(format!(
            "what is in it is compressed with {}, which is not supported; unpack it and give what was in it",
            method_name(other)
        ))),
    }
}

/// What people call a method of compression.
#[allow(deprecated, reason = "the only name for a method that the crate itself does not unpack")]
fn method_name(method: zip::CompressionMethod) -> String {
    let zip::CompressionMethod::Unsupported(number) = method else { return method.to_string() };
    match number {
        9 => "Deflate64".to_owned(),
        12 => "bzip2".to_owned(),
        14 => "LZMA".to_owned(),
        93 => "Zstandard".to_owned(),
        95 => "xz".to_owned(),
        98 => "PPMd".to_owned(),
        _ => format!("method {number}"),
    }
}

/// The zip crate names methods that it was built without by their number; 8 is deflate.
#[allow(deprecated, reason = "the only name for a method that the crate itself does not unpack")]
const DEFLATE: zip::CompressionMethod = zip::CompressionMethod::Unsupported(8);

fn damaged_zip(reason: String) -> Error {
    Error::Container { layer: Layer::TorchZip.name(), reason }
}

/// The entry that `torch.save` wrote, or the only one: a snapshot that someone zipped by hand is as good.
fn listed_entry<R: Read + Seek>(mut archive: zip::ZipArchive<R>) -> Result<Entry, Error> {
    let name = archive.file_names().find(|n| *n == "data.pkl" || n.ends_with("/data.pkl")).map(str::to_owned);
    let single = (archive.len() == 1).then(|| archive.file_names().next().map(str::to_owned)).flatten();
    let name = name.or(single).ok_or_else(|| Error::NoSnapshot {
        format: "zip file",
        found: "there is no data.pkl in it, so torch.save did not write it; unpack it and give the snapshots themselves"
            .into(),
    })?;
    let contradiction = || damaged_zip("its directory contradicts itself".into());
    let index = archive.index_for_name(&name).ok_or_else(contradiction)?;
    let entry = archive.by_index_raw(index).map_err(|e| damaged_zip(e.to_string()))?;
    if entry.encrypted() {
        return Err(damaged_zip("it is encrypted".into()));
    }
    Ok(Entry {
        start: entry.data_start(),
        length: entry.compressed_size(),
        method: entry.compression(),
        // `torch.save` can be told not to work it out, and then writes 0.
        crc: Some(entry.crc32()).filter(|&crc| crc != 0),
    })
}

/// The entry at the beginning of a zip file without a directory. `torch.save` puts the pickle there.
fn first_entry<R: Read + Seek>(file: &mut R) -> Result<Option<Entry>, Error> {
    const HEADER: usize = 30;
    file.seek(SeekFrom::Start(0))?;
    let mut header = Vec::new();
    file.by_ref().take(HEADER as u64).read_to_end(&mut header)?;
    let word = |i: usize| header.get(i..i + 2).map(|b| u64::from(b[0]) | u64::from(b[1]) << 8);
    let (Some(flags), Some(method), Some(name), Some(extra)) = (word(6), word(8), word(26), word(28)) else {
        return Ok(None);
    };
    let is_encrypted = flags & 1 != 0;
    let method = match method {
        0 if !is_encrypted => zip::CompressionMethod::Stored,
        8 if !is_encrypted => DEFLATE,
        _ => return Ok(None),
    };
    // How long it is stands behind it, where there may be nothing any more; the pickle knows its own end.
    Ok(header.starts_with(b"PK\x03\x04").then_some(Entry {
        start: HEADER as u64 + name + extra,
        length: u64::MAX,
        method,
        crc: None,
    }))
}

/// Ends a stream with an error if what it gave has another checksum than it should.
struct Checked<R> {
    inner: R,
    crc: flate2::Crc,
    /// What it should be, until it was compared.
    want: Option<u32>,
}

impl<'a, R: Read + 'a> Checked<R> {
    fn boxed(inner: R, want: Option<u32>) -> Box<dyn Read + 'a> {
        Box::new(Self { inner, crc: flate2::Crc::new(), want })
    }
}

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buf)?;
        if self.want.is_some() {
            self.crc.update(buf.get(..n).unwrap_or(&[]));
        }
        if n == 0 && !buf.is_empty() && self.want.take().is_some_and(|want| want != self.crc.sum()) {
            return Err(io::Error::other("its checksum is not the one that it was written with"));
        }
        Ok(n)
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
