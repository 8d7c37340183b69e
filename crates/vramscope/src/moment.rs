//! `--since` and `--until`: a moment of a recording, as people write it.

use vramscope_view::analysis::Moment;

/// Reads `step:40`, `event:1000`, `50%`, `12.5s`, `2026-03-01T10:11:12Z` or µs since 1970.
pub(crate) fn parse(text: &str) -> Result<Moment, String> {
    let text = text.trim();
    let number =
        |digits: &str| digits.parse::<u64>().map_err(|_| format!("`{digits}` is not a whole number"));
    if let Some(step) = text.strip_prefix("step:") {
        return match number(step)? {
            0 => Err("steps are counted from 1".to_owned()),
            step => Ok(Moment::Step(step)),
        };
    }
    if let Some(event) = text.strip_prefix("event:") {
        return number(event).map(Moment::Event);
    }
    if let Some(percent) = text.strip_suffix('%') {
        return match percent.trim().parse::<f64>() {
            Ok(value) if (0.0..=100.0).contains(&value) => Ok(Moment::Fraction(value / 100.0)),
            _ => Err(format!("`{percent}` is not a percentage from 0 to 100")),
        };
    }
    for (unit, us) in [("ms", 1e3), ("µs", 1.0), ("us", 1.0), ("min", 60e6), ("h", 3600e6), ("s", 1e6)] {
        let value = text.strip_suffix(unit).and_then(|value| value.trim().parse::<f64>().ok());
        if let Some(value) = value.filter(|value| *value >= 0.0 && value.is_finite()) {
            return Ok(Moment::AfterStart((value * us) as i64));
        }
    }
    if let Ok(us) = text.parse::<i64>() {
        // The smallest sensible time is years after 1970; a small number was meant as something else.
        return if us > 1_000_000_000_000 {
            Ok(Moment::Time(us))
        } else {
            Err(format!("write `step:{text}`, `event:{text}` or `{text}s`"))
        };
    }
    text.parse::<jiff::Timestamp>().map(|time| Moment::Time(time.as_microsecond())).map_err(|_| {
        "write `step:40`, `event:1000`, `50%`, `12.5s` after the first event, \
         `2026-03-01T10:11:12Z` or µs since 1970"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_of_saying_when() {
        for (text, want) in [
            ("step:40", Moment::Step(40)),
            ("event:1000", Moment::Event(1000)),
            ("50%", Moment::Fraction(0.5)),
            ("12.5s", Moment::AfterStart(12_500_000)),
            ("3ms", Moment::AfterStart(3_000)),
            ("2min", Moment::AfterStart(120_000_000)),
            ("1772359872345678", Moment::Time(1_772_359_872_345_678)),
            ("2026-03-01T10:11:12Z", Moment::Time(1_772_359_872_000_000)),
            ("2026-03-01T11:11:12+01:00", Moment::Time(1_772_359_872_000_000)),
        ] {
            assert_eq!(parse(text), Ok(want), "{text}");
        }
    }

    #[test]
    fn mistakes_are_answered_with_what_to_write() {
        for (text, want) in [
            ("40", "write `step:40`, `event:40` or `40s`"),
            ("step:0", "steps are counted from 1"),
            ("step:x", "`x` is not a whole number"),
            ("120%", "`120` is not a percentage from 0 to 100"),
        ] {
            assert_eq!(parse(text).unwrap_err(), want, "{text}");
        }
        assert!(parse("yesterday").unwrap_err().starts_with("write `step:40`"));
    }
}
