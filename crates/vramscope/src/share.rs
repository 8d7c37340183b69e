//! `--memory-fraction`: a share of a whole.

/// Reads a number above 0 and up to 1.
pub(crate) fn parse(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(share) if share > 0.0 && share <= 1.0 => Ok(share),
        Ok(_) => Err("a share lies above 0 and is at most 1; write for example `0.8`".to_owned()),
        Err(_) => Err(format!("`{text}` is no number; write for example `0.8`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_above_nothing_and_at_most_all() {
        assert_eq!(parse("0.03"), Ok(0.03));
        assert_eq!(parse(" 1 "), Ok(1.0));
        for text in ["0", "-0.1", "1.01", "80%", "NaN", "inf", ""] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
