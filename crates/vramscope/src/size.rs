//! `--capacity`: bytes, as people write them.

/// A number without a unit stands for at least so many bytes.
const LEAST_BARE: f64 = 1_048_576.0;

/// Reads `80GiB`, `141 GB`, `24g` (binary, as data sheets of memory mean it) or plain bytes.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kib" => 1024.0,
        "m" | "mib" => 1024.0_f64.powi(2),
        "g" | "gib" => 1024.0_f64.powi(3),
        "t" | "tib" => 1024.0_f64.powi(4),
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        "tb" => 1e12,
        _ => return Err(format!("`{}` is no unit; write for example `80GiB`", unit.trim())),
    };
    match number.parse::<f64>() {
        // Nobody means so few bytes.
        Ok(value) if unit.trim().is_empty() && (1.0..LEAST_BARE).contains(&value) => {
            Err(format!("{number} without a unit would be bytes; write for example `{number}GiB`"))
        }
        Ok(value) if value * factor >= 1.0 && value * factor < 1e18 => Ok((value * factor) as u64),
        Ok(_) => Err("more than 0 and less than 1,000 PB is needed; write for example `80GiB`".to_owned()),
        Err(_) => Err(format!("`{number}` is no number; write for example `80GiB`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_with_and_without_units() {
        for (text, want) in [
            ("85899345920", 80 << 30),
            ("80GiB", 80 << 30),
            ("24 g", 24 << 30),
            ("1.5MiB", 3 << 19),
            ("141GB", 141_000_000_000),
        ] {
            assert_eq!(parse(text), Ok(want), "{text}");
        }
        assert_eq!(parse("80 apples").unwrap_err(), "`apples` is no unit; write for example `80GiB`");
        assert_eq!(parse("GiB").unwrap_err(), "`` is no number; write for example `80GiB`");
        assert!(parse("0").is_err());
        assert_eq!(parse("80").unwrap_err(), "80 without a unit would be bytes; write for example `80GiB`");
        assert_eq!(parse("512B"), Ok(512));
    }
}
