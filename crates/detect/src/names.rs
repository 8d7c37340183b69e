//! How evidence names what it speaks of.

use vramscope_model::{Bytes, PoolId, PoolKind, StackId, Symbols};
use vramscope_replay::{Domain, Place};

/// A place as people know it: "train.py:17".
pub(crate) fn place(symbols: &Symbols, place: Place) -> String {
    match place {
        Place::Site(site) => {
            let frame = symbols.get_frame(site);
            let file = symbols.str(frame.file);
            format!("{}:{}", file.rsplit(['/', '\\']).next().unwrap_or(file), frame.line)
        }
        Place::Older => "blocks older than the recording".to_owned(),
        Place::Stack(StackId::ABSENT) => "blocks without a recorded stack".to_owned(),
        Place::Stack(StackId::EMPTY) => "code without Python frames (autograd backward)".to_owned(),
        Place::Stack(_) => "library code".to_owned(),
    }
}

/// What a request needs: "large blocks of the default pool on stream 0".
pub(crate) fn domain(symbols: &Symbols, domain: Domain) -> String {
    let kind = match domain.kind {
        PoolKind::Small => "small",
        PoolKind::Large => "large",
    };
    let pool = if domain.pool == PoolId::DEFAULT { "the default pool" } else { "a private pool" };
    match symbols.stream_handle(domain.stream) {
        0 => format!("{kind} blocks of {pool}, default stream"),
        handle => format!("{kind} blocks of {pool}, stream {handle:#x}"),
    }
}

/// Two sizes that must not read the same: in MiB where one decimal of a larger unit would hide the difference.
pub(crate) fn apart(a: Bytes, b: Bytes) -> (String, String) {
    let (short_a, short_b) = (a.to_string(), b.to_string());
    if short_a != short_b {
        return (short_a, short_b);
    }
    let (long_a, long_b) = (mebibytes(a), mebibytes(b));
    if long_a == long_b && a != b {
        return (format!("{} bytes", grouped(a.0)), format!("{} bytes", grouped(b.0)));
    }
    (long_a, long_b)
}

/// A size that someone gave: in MiB where one decimal of GiB would not be what they gave.
pub fn given(size: Bytes) -> String {
    const LARGE: u64 = 100 << 30;
    let is_told_whole = size.0 < 1 << 30 || size.0.saturating_mul(10).is_multiple_of(1 << 30);
    if is_told_whole || size.0 >= LARGE { size.to_string() } else { mebibytes(size) }
}

fn mebibytes(bytes: Bytes) -> String {
    let whole = grouped(bytes.0 >> 20);
    match bytes.0 % (1 << 20) {
        0 => format!("{whole} MiB"),
        rest => match (rest as f64 / f64::from(1 << 20) * 10.0).round() {
            10.0 => format!("{}.0 MiB", grouped((bytes.0 >> 20) + 1)),
            tenths => format!("{whole}.{tenths} MiB"),
        },
    }
}

/// Several things in one sentence: "a, b and c".
pub(crate) fn list(items: &[String]) -> String {
    match items.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

/// A number of things: "1 block", "2,345 blocks".
pub(crate) fn count(n: u64, one: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{} {one}s", grouped(n)) }
}

/// A number with thousands separators.
pub(crate) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
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
    fn sizes_that_differ_read_differently() {
        let check = |a: u64, b: u64, want: (&str, &str)| {
            let found = apart(Bytes(a), Bytes(b));
            assert_eq!((found.0.as_str(), found.1.as_str()), want);
        };
        check(5 << 20, 6 << 20, ("5.0 MiB", "6.0 MiB"));
        check(2848 << 20, 2880 << 20, ("2,848 MiB", "2,880 MiB"));
        check((2848 << 20) + (1 << 19), 2849 << 20, ("2,848.5 MiB", "2,849 MiB"));
        check((2848 << 20) + 512, (2848 << 20) + 1024, ("2,986,344,960 bytes", "2,986,345,472 bytes"));
    }

    #[test]
    fn sizes_that_were_given_are_told_as_they_were() {
        let check = |bytes: u64, want: &str| assert_eq!(given(Bytes(bytes)), want);
        check(24 << 30, "24.0 GiB");
        check(1425 << 20, "1,425 MiB");
        check(760 << 20, "760.0 MiB");
        check(3 << 29, "1.5 GiB");
        check(24_000_000_000, "22,888.2 MiB");
        check(141_000_000_000, "131.3 GiB");
        check((2000 << 20) - 1, "2,000.0 MiB");
        check(u64::MAX, "16.0 EiB");
    }

    #[test]
    fn numbers_are_told_in_groups() {
        let check = |n: u64, want: &str| assert_eq!(count(n, "block"), want);
        check(0, "0 blocks");
        check(1, "1 block");
        check(999, "999 blocks");
        check(1000, "1,000 blocks");
        check(1_234_567, "1,234,567 blocks");
    }

    #[test]
    fn lists_read_as_people_write_them() {
        let check = |items: &[&str], want: &str| {
            assert_eq!(list(&items.iter().map(|&s| s.to_owned()).collect::<Vec<_>>()), want);
        };
        check(&[], "");
        check(&["a"], "a");
        check(&["a", "b", "c"], "a, b and c");
    }
}
