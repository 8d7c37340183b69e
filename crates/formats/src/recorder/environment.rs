//! `environment.json`: the program, the machine and the settings.

use std::io::Read;

use serde_json::{Map, Value};
use vramscope_model::Environment;

use crate::error::{Error, Warning, excerpt};

/// The surroundings take a few kB.
const MOST_BYTES: u64 = 4 << 20;
/// How many words, devices and settings are kept.
const MOST: usize = 256;
/// How many characters of each.
const LONGEST: usize = 4096;

/// Reads the surroundings of a run. What is of another kind than expected is left out and told.
///
/// # Errors
/// When it is no JSON object.
pub fn environment(stream: impl Read) -> Result<(Environment, Vec<Warning>), Error> {
    let mut text = Vec::new();
    stream.take(MOST_BYTES).read_to_end(&mut text)?;
    if text.is_empty() {
        return Err(Error::Empty);
    }
    let value: Value = serde_json::from_slice(&text).map_err(|error| Error::Damaged {
        offset: offset(&text, error.line(), error.column()),
        reason: "it is no whole JSON document".to_owned(),
    })?;
    let Value::Object(fields) = value else {
        return Err(Error::Damaged { offset: 0, reason: "it is no JSON object".to_owned() });
    };
    let mut reading = Reading { fields: &fields, warnings: Vec::new() };
    let environment = Environment {
        command: reading.words(&["command", "command_line", "argv"]),
        started_us: reading.number(&["started_us"]),
        rank: reading.number(&["rank"]),
        world_size: reading.number(&["world_size"]),
        torch: reading.text(&["torch"]),
        cuda: reading.text(&["cuda"]),
        driver: reading.text(&["driver"]),
        gpus: reading.words(&["gpus", "devices"]),
        settings: reading.pairs("settings"),
        recorder: reading.text(&["vramscope", "version"]),
    };
    Ok((environment, reading.warnings))
}

/// The number of bytes before a place.
fn offset(text: &[u8], line: usize, column: usize) -> u64 {
    let before =
        text.split(|&b| b == b'\n').take(line.saturating_sub(1)).map(|line| line.len() + 1).sum::<usize>();
    (before + column).min(text.len()) as u64
}

struct Reading<'a> {
    fields: &'a Map<String, Value>,
    warnings: Vec<Warning>,
}

impl Reading<'_> {
    /// A field by the first of its names that is there and not null.
    fn field(&self, names: &[&'static str]) -> Option<(&'static str, &Value)> {
        names.iter().find_map(|name| Some((*name, self.fields.get(*name).filter(|value| !value.is_null())?)))
    }

    fn read<T>(
        &mut self,
        names: &[&'static str],
        what: &str,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Option<T> {
        let (name, value) = self.field(names)?;
        let read = read(value);
        if read.is_none() {
            self.warnings.push(Warning::new(format!("`{name}` is not {what} and left out")));
        }
        read
    }

    fn text(&mut self, names: &[&'static str]) -> Option<String> {
        self.read(names, "a text", word)
    }

    fn number<T: TryFrom<i64>>(&mut self, names: &[&'static str]) -> Option<T> {
        let number = |value: &Value| match value {
            Value::String(text) => text.trim().parse::<i64>().ok(),
            _ => value.as_i64(),
        };
        self.read(names, "a whole number in its range", |value| {
            number(value).and_then(|n| T::try_from(n).ok())
        })
    }

    /// A list of words, or one text as the only word. A device may be an object with a name.
    fn words(&mut self, names: &[&'static str]) -> Vec<String> {
        let name = |item: &Value| item.get("name").map_or_else(|| word(item), word);
        self.read(names, "a list of texts", |value| match value {
            Value::Array(items) => items.iter().take(MOST).map(name).collect::<Option<Vec<_>>>(),
            _ => word(value).map(|word| vec![word]),
        })
        .unwrap_or_default()
    }

    fn pairs(&mut self, name: &'static str) -> Vec<(String, String)> {
        self.read(&[name], "an object with texts", |value| {
            let pairs = value.as_object()?.iter().filter(|(_, value)| !value.is_null());
            Some(pairs.take(MOST).filter_map(|(name, value)| Some((excerpt(name), word(value)?))).collect())
        })
        .unwrap_or_default()
    }
}

fn word(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(set) => set.to_string(),
        _ => return None,
    };
    Some(text.chars().take(LONGEST).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn surroundings_are_read_as_far_as_they_are_there() {
        let text = r#"{"command": ["python", "train.py"], "started_us": 5, "rank": "1", "world_size": 2, "torch": "2.11.0",
            "cuda": null, "gpus": [{"name": "NVIDIA H200"}], "settings": {"PYTORCH_CUDA_ALLOC_CONF": "a:b", "X": null}, "more": []}"#;
        let (read, warnings) = environment(text.as_bytes()).unwrap();
        let want = Environment {
            command: vec!["python".into(), "train.py".into()],
            started_us: Some(5),
            rank: Some(1),
            world_size: Some(2),
            torch: Some("2.11.0".into()),
            gpus: vec!["NVIDIA H200".into()],
            settings: vec![("PYTORCH_CUDA_ALLOC_CONF".into(), "a:b".into())],
            ..Environment::default()
        };
        assert_eq!((&read, warnings.len()), (&want, 0));
        assert_eq!(read.allocator_conf(), Some(("PYTORCH_CUDA_ALLOC_CONF", "a:b")));
    }

    #[test]
    fn what_is_of_another_kind_is_told() {
        let (read, warnings) =
            environment(r#"{"rank": -1, "torch": [], "settings": 3, "gpus": [[]]}"#.as_bytes()).unwrap();
        assert_eq!(read, Environment::default());
        let shown: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "`rank` is not a whole number in its range and left out",
                "`torch` is not a text and left out",
                "`gpus` is not a list of texts and left out",
                "`settings` is not an object with texts and left out",
            ]
        );
    }

    #[test]
    fn half_a_document_is_an_error_with_its_place() {
        for (text, want) in [
            ("", "the file is empty"),
            ("[]", "damaged at byte 0: it is no JSON object"),
            ("{\n\"torch\": \"2.1", "damaged at byte 15: it is no whole JSON document"),
        ] {
            assert_eq!(environment(text.as_bytes()).unwrap_err().to_string(), want);
        }
    }
}
