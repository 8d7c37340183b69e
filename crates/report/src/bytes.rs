//! Numbers of bytes and other counts, in words.

const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/// Bytes in binary units with one decimal: `512 B`, `4.0 MiB`.
pub(crate) fn human(bytes: u64) -> String {
    scaled(bytes as f64)
}

/// Bytes in MiB from one MiB on, for figures that are compared: `2,848.0 MiB`.
pub(crate) fn mebibytes(bytes: u64) -> String {
    const MIB: u64 = 1 << 20;
    if bytes < MIB {
        return human(bytes);
    }
    let tenths = (u128::from(bytes) * 10 + u128::from(MIB / 2)) / u128::from(MIB);
    format!("{}.{} MiB", grouped((tenths / 10) as u64), tenths % 10)
}

/// A change of bytes with its sign: `+1.5 MiB`, `-512 B`, `0 B`.
pub(crate) fn change(before: u64, after: u64) -> String {
    signed(i128::from(after) - i128::from(before))
}

/// Bytes that may be negative, with their sign.
pub(crate) fn signed(bytes: i128) -> String {
    let sign = match bytes {
        0 => "",
        1.. => "+",
        _ => "-",
    };
    format!("{sign}{}", scaled(bytes.unsigned_abs() as f64))
}

/// A mean of bytes, such as bytes a step; below one KiB it keeps a decimal.
pub(crate) fn mean(bytes: f64) -> String {
    let sign = if bytes < 0.0 { "-" } else { "" };
    let bytes = bytes.abs();
    if bytes < 1023.95 && (bytes - bytes.round()).abs() > 0.05 {
        return format!("{sign}{bytes:.1} B");
    }
    format!("{sign}{}", scaled(bytes))
}

/// A count with commas: `1,711,276,032`.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A count with its noun, which takes an `s` unless the count is one.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// `part` of `whole` in percent: `99.6 %`; nothing where there is no whole.
pub(crate) fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return String::new();
    }
    let percent = part as f64 / whole as f64 * 100.0;
    if part > 0 && percent < 0.05 { "<0.1 %".to_owned() } else { format!("{percent:.1} %") }
}

/// A change in percent with its sign: `-8.9 %`, `+62 %`; `0 %` only where there is none.
pub(crate) fn change_share(before: u64, after: u64) -> String {
    if before == after {
        return "0 %".to_owned();
    }
    if before == 0 {
        return "new".to_owned();
    }
    let percent = (after as f64 - before as f64) * 100.0 / before as f64;
    if percent.abs() < 0.05 {
        format!("{}<0.1 %", if percent < 0.0 { "-" } else { "+" })
    } else if percent.abs() < 9.95 {
        format!("{percent:+.1} %")
    } else {
        format!("{percent:+.0} %")
    }
}

fn scaled(bytes: f64) -> String {
    let mut value = bytes.round();
    if value < 1024.0 {
        return format!("{value:.0} B");
    }
    let mut unit = "B";
    for next in UNITS {
        // What would be shown as 1024.0 is 1.0 of the next unit.
        if value < 1023.95 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    format!("{value:.1} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_change_where_the_decimal_would_not_fit() {
        for (bytes, want) in [
            (0, "0 B"),
            (512, "512 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1_048_524, "1023.9 KiB"),
            (1_048_560, "1.0 MiB"),
            (4 << 20, "4.0 MiB"),
            (1_711_276_032, "1.6 GiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(human(bytes), want, "{bytes}");
        }
    }

    #[test]
    fn changes_carry_their_sign() {
        assert_eq!(change(0, 1024), "+1.0 KiB");
        assert_eq!(change(1024, 0), "-1.0 KiB");
        assert_eq!(change(7, 7), "0 B");
        assert_eq!(mean(-0.5), "-0.5 B");
        assert_eq!(mean(16_777_216.4), "16.0 MiB");
    }

    #[test]
    fn changes_in_percent_are_none_only_where_there_is_none() {
        let check = |before, after, want: &str| assert_eq!(change_share(before, after), want);
        check(2550, 756, "-70 %");
        check(762, 694, "-8.9 %");
        check(2550, 4122, "+62 %");
        check(10_000, 10_001, "+<0.1 %");
        check(7, 7, "0 %");
        check(0, 0, "0 %");
        check(0, 7, "new");
    }

    #[test]
    fn compared_bytes_keep_their_unit() {
        assert_eq!(mebibytes(512), "512 B");
        assert_eq!(mebibytes(2848 << 20), "2,848.0 MiB");
    }

    #[test]
    fn counts_are_grouped_by_thousands() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1000), "1,000");
        assert_eq!(grouped(1_711_276_032), "1,711,276,032");
        assert_eq!(counted(1, "step"), "1 step");
        assert_eq!(counted(1200, "step"), "1,200 steps");
        assert_eq!(share(1, 1_000_000), "<0.1 %");
        assert_eq!(share(0, 5), "0.0 %");
        assert_eq!(share(0, 0), "");
    }
}
