//! The JSON of a notebook with new sources in it: all that nobody edited stays as it is written, numbers, line ends and layout too.

use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Written<'a> {
    #[serde(borrow)]
    cells: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct WrittenCell<'a> {
    #[serde(borrow)]
    source: &'a RawValue,
}

/// A source as notebooks write it: at once, or line by line.
#[derive(Deserialize)]
#[serde(untagged)]
enum Lines {
    Whole(String),
    Each(Vec<String>),
}

impl Lines {
    fn text(self) -> String {
        match self {
            Self::Whole(text) => text,
            Self::Each(lines) => lines.concat(),
        }
    }
}

/// `json` with these sources of its cells; `None` if it is no notebook with as many cells.
pub(super) fn with_sources(json: &str, sources: &[String]) -> Option<String> {
    let written: Written<'_> = serde_json::from_str(json).ok()?;
    if written.cells.len() != sources.len() {
        return None;
    }
    let mut result = String::with_capacity(json.len());
    let mut copied = 0;
    for (cell, new) in written.cells.iter().zip(sources) {
        let cell: WrittenCell<'_> = serde_json::from_str(cell.get()).ok()?;
        let old = cell.source.get();
        if serde_json::from_str::<Lines>(old).ok()?.text() == *new {
            continue;
        }
        let start = old.as_ptr().addr().checked_sub(json.as_ptr().addr())?;
        result.push_str(json.get(copied..start)?);
        result.push_str(&in_style_of(old, new, json.is_ascii())?);
        copied = start + old.len();
    }
    result.push_str(json.get(copied..)?);
    Some(result)
}

/// A source written as another was.
fn in_style_of(old: &str, new: &str, only_ascii: bool) -> Option<String> {
    if !old.starts_with('[') {
        return string(new, only_ascii);
    }
    let lines: Vec<&RawValue> = serde_json::from_str(old).ok()?;
    let place = |it: &RawValue| it.get().as_ptr().addr().checked_sub(old.as_ptr().addr());
    let (Some(first), Some(last)) = (lines.first(), lines.last()) else {
        return Some(format!("[{}]", strings(new, only_ascii)?.join(", ")));
    };
    let before = old.get(..place(first)?)?;
    let after = old.get(place(last)? + last.get().len()..)?;
    let between = match lines.get(1) {
        Some(second) => old.get(place(first)? + first.get().len()..place(second)?)?.to_owned(),
        None if before.contains('\n') => format!(",{}", before.get(1..)?),
        None => ", ".to_owned(),
    };
    Some(format!("{before}{}{after}", strings(new, only_ascii)?.join(&between)))
}

fn strings(text: &str, only_ascii: bool) -> Option<Vec<String>> {
    text.split_inclusive('\n').map(|line| string(line, only_ascii)).collect()
}

fn string(text: &str, only_ascii: bool) -> Option<String> {
    let written = serde_json::to_string(text).ok()?;
    if !only_ascii || written.is_ascii() {
        return Some(written);
    }
    let mut escaped = String::with_capacity(written.len());
    let mut units = [0; 2];
    for c in written.chars() {
        if c.is_ascii() {
            escaped.push(c);
        } else {
            escaped.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        }
    }
    Some(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, sources: &[&str], expect: &str) {
        let sources: Vec<String> = sources.iter().map(|&it| it.to_owned()).collect();
        assert_eq!(with_sources(json, &sources).unwrap(), expect);
    }

    #[test]
    fn only_what_was_edited_changes() {
        check(
            "{\"n\": 12345678901234567890123, \"cells\": [{\"source\": \"a\\nb\", \"x\": 1E+22},\r\n {\"source\": [\"c\"]}]}\n",
            &["a\nz", "c"],
            "{\"n\": 12345678901234567890123, \"cells\": [{\"source\": \"a\\nz\", \"x\": 1E+22},\r\n {\"source\": [\"c\"]}]}\n",
        );
    }

    #[test]
    fn lines_are_laid_out_as_they_were() {
        check(
            "{\"cells\":[{\"source\":[\n    \"a\\n\",\n    \"b\"\n   ]}]}",
            &["a\nb\nc"],
            "{\"cells\":[{\"source\":[\n    \"a\\n\",\n    \"b\\n\",\n    \"c\"\n   ]}]}",
        );
        check(
            "{\"cells\":[{\"source\":[\n  \"a\"\n ]}]}",
            &["b\nc"],
            "{\"cells\":[{\"source\":[\n  \"b\\n\",\n  \"c\"\n ]}]}",
        );
        check(
            "{\"cells\":[{\"source\":[\"a\\n\",\"b\"]}]}",
            &["é\nb"],
            "{\"cells\":[{\"source\":[\"\\u00e9\\n\",\"b\"]}]}",
        );
        check(
            "{\"cells\":[{\"source\":[]}, {\"source\": \"ü\"}]}",
            &["é", "ü"],
            "{\"cells\":[{\"source\":[\"é\"]}, {\"source\": \"ü\"}]}",
        );
    }

    #[test]
    fn what_is_no_notebook_of_as_many_cells_is_refused() {
        assert_eq!(with_sources("{\"cells\": []}", &["a".to_owned()]), None);
        assert_eq!(with_sources("[", &[]), None);
    }
}
