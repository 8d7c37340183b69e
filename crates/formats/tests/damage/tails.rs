//! What lies behind the end of a snapshot, and the checksums that containers keep there.

use crate::bombs::{gzip, xz, zip, zstd};
use crate::{corpus, read, refusal};

fn snapshot() -> Vec<u8> {
    corpus::bytes("recordings/_variants/legacy_list.pickle")
}

/// The warnings about a file that is read in full all the same.
fn warnings(bytes: &[u8]) -> Vec<String> {
    let (document, _) = read(bytes).unwrap();
    assert!(!document.snapshot.devices.is_empty() && !document.snapshot.truncated);
    document.warnings.iter().map(ToString::to_string).collect()
}

#[test]
fn what_follows_a_pickle_is_said_to() {
    let one = snapshot();
    let n = one.len();
    for pack in [|b: &[u8]| b.to_vec(), gzip, zstd, xz] {
        let noise = [one.clone(), b"garbage".repeat(2000)].concat();
        assert_eq!(
            warnings(&pack(&noise)),
            [format!(
                "the file goes on behind the end of the pickle; what follows was not read (14000 bytes) (byte {n})"
            )]
        );
        let two = [one.clone(), one.clone()].concat();
        assert_eq!(
            warnings(&pack(&two)),
            [format!(
                "another pickle follows right behind the first; it was not read ({n} bytes) (byte {n})"
            )]
        );
        assert_eq!(warnings(&pack(&one)), Vec::<String>::new());
    }
    let newline = [one, b"\n".to_vec()].concat();
    assert!(warnings(&newline)[0].contains("(1 byte)"));
}

#[test]
fn what_follows_json_is_said_to() {
    let one = b"[{\"address\": 512, \"total_size\": 1024, \"blocks\": []}]".to_vec();
    let n = one.len();
    let behind = |rest: &[u8]| {
        let all = warnings(&[&one[..], rest].concat());
        assert_eq!(all, warnings(&gzip(&[&one[..], rest].concat())));
        all.into_iter().filter(|w| w.contains("not read")).collect::<Vec<_>>()
    };
    assert_eq!(behind(&b" \n\t".repeat(100_000)), Vec::<String>::new());
    assert_eq!(
        behind(b" xyz"),
        [format!(
            "the file goes on behind the end of the JSON value; what follows was not read (3 bytes) (byte {})",
            n + 1
        )]
    );
    assert_eq!(
        behind(&[b"\n", &one[..]].concat()),
        [format!(
            "another JSON value follows right behind the first; it was not read ({n} bytes) (byte {})",
            n + 1
        )]
    );
}

#[test]
fn checksums_are_compared() {
    let one = snapshot();
    let packed = gzip(&one);
    let n = packed.len();
    let mut wrong = packed.clone();
    wrong[n - 8] ^= 1;
    let mut checked = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
    checked.include_checksum(true).unwrap();
    std::io::Write::write_all(&mut checked, &one).unwrap();
    let mut checked = checked.finish().unwrap();
    assert_eq!(warnings(&checked), Vec::<String>::new());
    let last = checked.len() - 1;
    checked[last] ^= 1;
    let mut footer = xz(&one);
    let last = footer.len() - 1;
    footer[last] ^= 1;
    let garbage = [&packed[..], b"garbage behind it"].concat();
    // The unpacker of xz keeps back what it unpacked together with the damage.
    assert!(read(&footer).unwrap().0.warnings[0].text.contains("lzma data error"));
    for bytes in [&wrong[..], &packed[..n - 4], &garbage, &checked] {
        let all = warnings(bytes);
        assert_eq!(all.len(), 1, "{all:?}");
        assert!(all[0].starts_with("the container is damaged after the snapshot's end: "), "{all:?}");
    }
}

#[test]
fn the_checksum_of_a_zip_file_is_compared() {
    let one = snapshot();
    let packed = zip(&one);
    let mut crc = flate2::Crc::new();
    crc.update(&one);
    // It stands in the directory, 16 bytes behind the signature of the entry.
    let directory = packed.windows(4).rposition(|w| w == b"PK\x01\x02").unwrap();
    let with = |sum: u32| {
        let mut bytes = packed.clone();
        bytes.splice(directory + 16..directory + 20, sum.to_le_bytes());
        warnings(&bytes)
    };
    assert_eq!(with(crc.sum()), Vec::<String>::new());
    // Not worked out.
    assert_eq!(with(0), Vec::<String>::new());
    let damaged = with(crc.sum() ^ 1);
    assert_eq!(damaged.len(), 1);
    assert!(
        damaged[0].starts_with(
            "the container is damaged after the snapshot's end: its checksum is not the one that it was written with"
        ),
        "{damaged:?}"
    );
}

#[test]
fn a_method_of_zip_that_is_not_unpacked_is_named() {
    for (method, name) in [(12, "bzip2"), (14, "LZMA"), (77, "method 77")] {
        let mut bytes = zip(&snapshot());
        let directory = bytes.windows(4).rposition(|w| w == b"PK\x01\x02").unwrap();
        for at in [8, directory + 10] {
            bytes[at] = method;
        }
        let message = refusal(&bytes);
        assert!(message.contains(&format!("compressed with {name}, which is not supported")), "{message}");
    }
}
