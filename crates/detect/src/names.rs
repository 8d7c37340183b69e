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
    let mib = |bytes: Bytes| match bytes.0 % (1 << 20) {
        0 => format!("{} MiB", bytes.0 >> 20),
        _ => format!("{:.1} MiB", bytes.0 as f64 / f64::from(1 << 20)),
    };
    if mib(a) == mib(b) && a != b {
        return (format!("{} bytes", a.0), format!("{} bytes", b.0));
    }
    (mib(a), mib(b))
}

/// Several things in one sentence: "a, b and c".
pub(crate) fn list(items: &[String]) -> String {
    match items.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

/// A number of things: "1 block", "2 blocks".
pub(crate) fn count(n: u64, one: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") }
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
        check(2848 << 20, 2880 << 20, ("2848 MiB", "2880 MiB"));
        check((2848 << 20) + (1 << 19), 2849 << 20, ("2848.5 MiB", "2849 MiB"));
        check((2848 << 20) + 512, (2848 << 20) + 1024, ("2986344960 bytes", "2986345472 bytes"));
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
