//! A name for a leak that is the same in every run.

/// A hash of texts: FNV-1a of 64 bits, folded to 48, as 12 hexadecimal digits. Where texts end counts.
pub(crate) fn fingerprint<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    const FIRST: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let bytes = texts.into_iter().flat_map(|text| text.bytes().chain([0]));
    let hash = bytes.fold(FIRST, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    format!("{:012x}", (hash ^ (hash >> 48)) & 0xffff_ffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_do_not_change() {
        assert_eq!(fingerprint([]), "9ce48422e8d7");
        let both = [fingerprint(["list", "[*]"]), fingerprint(["list[*]"])];
        assert_ne!(both[0], both[1]);
        assert!(both.iter().all(|text| text.len() == 12));
    }
}
