//! Moments and spans of time, in words.

/// A moment in UTC to the second: `2026-03-01 10:11:12 UTC`.
pub(crate) fn moment(us: i64) -> String {
    match jiff::Timestamp::from_microsecond(us) {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        Err(_) => format!("{us} µs since 1970"),
    }
}

/// A span of time in the unit that suits it: `350 ms`, `12.3 s`, `4 min 05 s`, `3 h 20 min`.
pub(crate) fn span(us: i64) -> String {
    let us = us.max(0);
    let seconds = us / 1_000_000;
    match us {
        0..1_000 => format!("{us} µs"),
        1_000..1_000_000 => format!("{} ms", us / 1_000),
        1_000_000..120_000_000 => format!("{:.1} s", us as f64 / 1e6),
        120_000_000..7_200_000_000 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_take_the_unit_that_suits_them() {
        assert_eq!(span(-5), "0 µs");
        assert_eq!(span(999), "999 µs");
        assert_eq!(span(350_000), "350 ms");
        assert_eq!(span(12_340_000), "12.3 s");
        assert_eq!(span(245_000_000), "4 min 05 s");
        assert_eq!(span(12_000_000_000), "3 h 20 min");
    }

    #[test]
    fn moments_are_in_utc() {
        assert_eq!(moment(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(moment(1_772_359_872_345_678), "2026-03-01 10:11:12 UTC");
        assert_eq!(moment(i64::MAX), "9223372036854775807 µs since 1970");
    }
}
