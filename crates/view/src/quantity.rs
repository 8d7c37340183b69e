//! Bytes and shares in words.

const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];

/// Bytes in binary units with one decimal: "1.5 MiB"; below 1 KiB as they are: "512 B".
pub(crate) fn bytes(bytes: u64) -> String {
    let Some((value, unit)) = scaled(bytes) else { return format!("{bytes} B") };
    format!("{value:.1} {unit}")
}

/// A size of blocks. Blocks of different sizes must not read the same, so where one decimal does not say it all the
/// bytes are added: "2.0 MiB (2097664 B)".
pub(crate) fn exact_bytes(size: u64) -> String {
    let shown = bytes(size);
    match scaled(size) {
        Some((value, _)) if (value * 10.0).fract() != 0.0 => format!("{shown} ({size} B)"),
        _ => shown,
    }
}

/// The value and unit to show bytes in: the largest unit in which it does not round to less than 1.
fn scaled(bytes: u64) -> Option<(f64, &'static str)> {
    let mut value = bytes as f64;
    let mut unit = None;
    for name in UNITS {
        // 1,048,550 bytes are shown as 1.0 MiB rather than 1024.0 KiB.
        if value < 1024.0 && (unit.is_none() || value < 1023.95) {
            break;
        }
        value /= 1024.0;
        unit = Some(name);
    }
    unit.map(|unit| (value, unit))
}

/// Bytes in MiB from one MiB on, for figures that are compared: "2,848.0 MiB".
pub(crate) fn mebibytes(n: u64) -> String {
    const MIB: u64 = 1 << 20;
    if n < MIB {
        return bytes(n);
    }
    let tenths = (u128::from(n) * 10 + u128::from(MIB / 2)) / u128::from(MIB);
    format!("{}.{} MiB", grouped((tenths / 10) as u64), tenths % 10)
}

/// A share in percent, which is 0 or 100 only where it is exactly so.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    if part == 0 || whole == 0 {
        return "0 %".to_owned();
    }
    if part >= whole {
        return "100 %".to_owned();
    }
    let share = part as f64 * 100.0 / whole as f64;
    if share < 1.0 {
        "under 1 %".to_owned()
    } else if share > 99.0 {
        "over 99 %".to_owned()
    } else {
        format!("{share:.0} %")
    }
}

/// A number of things: "1 block", "2 blocks".
pub(crate) fn count(n: u64, one: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") }
}

/// A number with commas: "1,711,276,032".
pub(crate) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let first = match digits.len() % 3 {
        0 => 3,
        rest => rest,
    };
    let (head, tail) = digits.split_at(first.min(digits.len()));
    let mut out = head.to_owned();
    for (i, digit) in tail.chars().enumerate() {
        if i.is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_in_binary_units() {
        let check = |n: u64, want: &str| assert_eq!(bytes(n), want, "{n}");
        check(0, "0 B");
        check(1023, "1023 B");
        check(1024, "1.0 KiB");
        check(1536, "1.5 KiB");
        check((1 << 20) - 1, "1.0 MiB");
        check(1 << 20, "1.0 MiB");
        check(u64::MAX, "16384.0 PiB");
    }

    #[test]
    fn compared_bytes_keep_their_unit() {
        let check = |n: u64, want: &str| assert_eq!(mebibytes(n), want, "{n}");
        check(512, "512 B");
        check(1 << 20, "1.0 MiB");
        check(2848 << 20, "2,848.0 MiB");
        check((2848 << 20) + (3 << 18), "2,848.8 MiB");
        check(u64::MAX, "17,592,186,044,416.0 MiB");
    }

    #[test]
    fn different_block_sizes_read_differently() {
        assert_eq!(exact_bytes(2 << 20), "2.0 MiB");
        assert_eq!(exact_bytes((2 << 20) + 512), "2.0 MiB (2097664 B)");
        assert_eq!(exact_bytes(512), "512 B");
    }

    #[test]
    fn shares_are_never_rounded_to_none_or_all() {
        assert_eq!(percent(0, 9), "0 %");
        assert_eq!(percent(1, 1000), "under 1 %");
        assert_eq!(percent(1, 3), "33 %");
        assert_eq!(percent(999, 1000), "over 99 %");
        assert_eq!(percent(9, 9), "100 %");
        assert_eq!(percent(0, 0), "0 %");
    }

    #[test]
    fn one_is_not_many() {
        assert_eq!(count(1, "block"), "1 block");
        assert_eq!(count(0, "block"), "0 blocks");
    }

    #[test]
    fn digits_are_grouped_by_three() {
        let check = |n, want: &str| assert_eq!(grouped(n), want);
        check(0, "0");
        check(999, "999");
        check(1000, "1,000");
        check(1_711_276_032, "1,711,276,032");
    }
}
