//! Numbers as the framework reads them: with the C library's functions, which take as much of a word as is a number and
//! pass over the rest.

use super::token::is_space;

/// A number at the beginning of a word.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Read<'t, N> {
    /// The number.
    pub number: N,
    /// Whether it was written with a minus sign.
    pub negative: bool,
    /// What of the word was read.
    pub used: &'t str,
    /// What was passed over, white space aside.
    pub rest: &'t str,
}

/// Why a word cannot be read as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// It does not begin with one.
    NoNumber,
    /// The number is too large (or too close to 0) for its type.
    OutOfRange,
}

/// An integer of 64 bits without a sign; a negative one counts from the top, as in C.
pub(super) fn unsigned(word: &str) -> Result<Read<'_, u64>, Unreadable> {
    let (negative, magnitude, end) = integer(word)?;
    let magnitude = u64::try_from(magnitude).map_err(|_| Unreadable::OutOfRange)?;
    let number = if negative { magnitude.wrapping_neg() } else { magnitude };
    Ok(read(word, end, negative, number))
}

/// An integer of 32 bits with a sign, then taken for one of 64 bits without: a negative one counts from the top.
pub(super) fn int(word: &str) -> Result<Read<'_, u64>, Unreadable> {
    let (negative, magnitude, end) = integer(word)?;
    let signed = i64::try_from(magnitude).map_err(|_| Unreadable::OutOfRange)?;
    let signed = if negative { -signed } else { signed };
    let signed = i32::try_from(signed).map_err(|_| Unreadable::OutOfRange)?;
    Ok(read(word, end, negative, i64::from(signed) as u64))
}

/// A broken number. Those in hexadecimal, which C knows, too, are not read.
pub(super) fn double(word: &str) -> Result<Read<'_, f64>, Unreadable> {
    let (negative, unsigned) = sign(word);
    let start = word.len() - unsigned.len();
    let lower = unsigned.to_ascii_lowercase();
    for (name, value) in [("infinity", f64::INFINITY), ("inf", f64::INFINITY), ("nan", f64::NAN)] {
        if lower.starts_with(name) {
            return Ok(read(word, start + name.len(), negative, if negative { -value } else { value }));
        }
    }
    let digits = |from: usize| unsigned.bytes().skip(from).take_while(u8::is_ascii_digit).count();
    let is = |at: usize, wanted: &[u8]| unsigned.as_bytes().get(at).is_some_and(|b| wanted.contains(b));
    let whole = digits(0);
    let (mut end, mut count) = (whole, whole);
    if is(whole, b".") {
        let broken = digits(whole + 1);
        (end, count) = (whole + 1 + broken, whole + broken);
    }
    if count == 0 {
        return Err(Unreadable::NoNumber);
    }
    let mantissa = end;
    if is(end, b"eE") {
        let from = end + 1 + usize::from(is(end + 1, b"+-"));
        // An `e` that no number follows belongs to the rest.
        if digits(from) > 0 {
            end = from + digits(from);
        }
    }
    let number: f64 = word
        .get(..start + end)
        .and_then(|t| t.trim_start_matches(is_space).parse().ok())
        .ok_or(Unreadable::NoNumber)?;
    let is_zero = unsigned.bytes().take(mantissa).all(|b| matches!(b, b'0' | b'.'));
    if number.is_infinite() || (!number.is_normal() && !is_zero) {
        return Err(Unreadable::OutOfRange);
    }
    Ok(read(word, start + end, negative, number))
}

/// The sign, the digits as a number and where they end.
fn integer(word: &str) -> Result<(bool, u128, usize), Unreadable> {
    let (negative, unsigned) = sign(word);
    let digits = unsigned.bytes().take_while(u8::is_ascii_digit);
    let (count, magnitude) = digits.fold((0, 0u128), |(count, n), digit| {
        (count + 1, n.saturating_mul(10).saturating_add(u128::from(digit - b'0')))
    });
    if count == 0 {
        return Err(Unreadable::NoNumber);
    }
    Ok((negative, magnitude, word.len() - unsigned.len() + count))
}

/// Whether there is a minus sign, and what stands behind white space and sign.
fn sign(word: &str) -> (bool, &str) {
    let word = word.trim_start_matches(is_space);
    (word.starts_with('-'), word.strip_prefix(['+', '-']).unwrap_or(word))
}

fn read<N>(word: &str, end: usize, negative: bool, number: N) -> Read<'_, N> {
    let (used, rest) = word.split_at_checked(end).unwrap_or((word, ""));
    let (used, rest) = (used.trim_start_matches(is_space), rest.trim_matches(is_space));
    Read { number, negative, used, rest }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_unsigned(word: &str, want: Result<(u64, &str), Unreadable>) {
        assert_eq!(unsigned(word).map(|r| (r.number, r.rest)), want, "{word}");
    }

    fn check_int(word: &str, want: Result<(u64, &str), Unreadable>) {
        assert_eq!(int(word).map(|r| (r.number, r.rest)), want, "{word}");
    }

    fn check_double(word: &str, want: Result<(f64, &str), Unreadable>) {
        assert_eq!(double(word).map(|r| (r.number, r.rest)), want, "{word}");
    }

    #[test]
    fn integers_end_where_their_digits_end() {
        check_unsigned("128", Ok((128, "")));
        check_unsigned("+0064MiB", Ok((64, "MiB")));
        check_unsigned("\t64\n", Ok((64, "")));
        check_unsigned("0x40", Ok((0, "x40")));
        check_unsigned("1２", Ok((1, "２")));
        for none in ["", "\t", "-", "+-5", "x", "１"] {
            check_unsigned(none, Err(Unreadable::NoNumber));
            check_int(none, Err(Unreadable::NoNumber));
        }
    }

    #[test]
    fn integers_have_the_range_of_their_type() {
        check_unsigned("18446744073709551615", Ok((u64::MAX, "")));
        check_unsigned("18446744073709551616", Err(Unreadable::OutOfRange));
        check_unsigned("-18446744073709551616", Err(Unreadable::OutOfRange));
        check_unsigned(&"9".repeat(100), Err(Unreadable::OutOfRange));
        check_unsigned("-1", Ok((u64::MAX, "")));
        check_int("2147483647", Ok((2_147_483_647, "")));
        check_int("2147483648", Err(Unreadable::OutOfRange));
        check_int("-2147483648", Ok((0u64.wrapping_sub(1 << 31), "")));
        check_int("-2147483649", Err(Unreadable::OutOfRange));
        check_int(&"9".repeat(100), Err(Unreadable::OutOfRange));
    }

    #[test]
    fn broken_numbers_end_where_they_stop_to_make_sense() {
        check_double("0.8", Ok((0.8, "")));
        check_double(".5", Ok((0.5, "")));
        check_double("+5.", Ok((5.0, "")));
        check_double("5e-1", Ok((0.5, "")));
        check_double("0.5e+", Ok((0.5, "e+")));
        check_double("80%", Ok((80.0, "%")));
        check_double("\t-0.5\n", Ok((-0.5, "")));
        check_double("0.5.5", Ok((0.5, ".5")));
        check_double("-Infinityx", Ok((f64::NEG_INFINITY, "x")));
        check_double("0e999", Ok((0.0, "")));
        check_double("1e400", Err(Unreadable::OutOfRange));
        check_double("1e-400", Err(Unreadable::OutOfRange));
        assert!(double("nan").is_ok_and(|r| r.number.is_nan()));
        for none in ["", ".", "-", "e5", "+.e1", "ß"] {
            check_double(none, Err(Unreadable::NoNumber));
        }
    }
}
