//! Parts of documents that are written by hand otherwise: tables, and what commands answer.
//!
//! A part stands between `<!-- generated: WHAT -->` and `<!-- end -->`. WHAT names a table, or is a command as it is typed in the
//! root of the repository: `$ vramscope whatif corpus/recordings/gpt_train`. With `| head -n 9` behind it, only the first lines of
//! the answer are shown.

use anyhow::Context as _;

use super::{Document, predictions, root};
use crate::answers::answer;
use crate::predictions::Program;

/// The documents with such parts.
const PATHS: [&str; 3] = ["README.md", "docs/allocator-settings.md", "docs/holders.md"];

const BEGIN: &str = "<!-- generated: ";
const END: &str = "<!-- end -->";

pub(super) fn documents() -> anyhow::Result<Vec<Document>> {
    let programs = crate::predictions::programs()?;
    let fill = |path: &str| {
        let written = std::fs::read_to_string(root().join(path)).with_context(|| path.to_owned())?;
        let text = filled(&written, |what| part(what, &programs)).with_context(|| path.to_owned())?;
        Ok(Document { path: path.to_owned(), text })
    };
    PATHS.into_iter().map(fill).collect()
}

/// A text with all its generated parts as they should be.
fn filled(text: &str, part: impl Fn(&str) -> anyhow::Result<String>) -> anyhow::Result<String> {
    let mut parts = text.split(BEGIN);
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for rest in parts {
        let (what, rest) = rest.split_once(" -->").context("a mark without an end")?;
        let (_, rest) = rest.split_once(END).with_context(|| format!("no `{END}` behind `{what}`"))?;
        let part = part(what)?;
        filled.push_str(&format!("{BEGIN}{what} -->\n{}\n{END}{rest}", part.trim_end()));
    }
    Ok(filled)
}

fn part(what: &str, programs: &[Program]) -> anyhow::Result<String> {
    match what.strip_prefix("$ ") {
        Some(command) => block(command),
        None => predictions::part(what, programs).with_context(|| format!("there is no part `{what}`")),
    }
}

/// A command and what it answers, as a block of code.
fn block(command: &str) -> anyhow::Result<String> {
    let (typed, n_lines) = match command.split_once(" | head -n ") {
        Some((typed, n)) => (typed, n.parse().with_context(|| format!("`{command}`"))?),
        None => (command, usize::MAX),
    };
    let answer = answer(typed)?;
    let lines: Vec<&str> = answer.lines().take(n_lines).collect();
    Ok(format!("```text\n$ {command}\n{}\n```", lines.join("\n").trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(text: &str) -> Result<String, String> {
        filled(text, |what| Ok(format!("({what})\n"))).map_err(|error| error.to_string())
    }

    #[test]
    fn marked_parts_are_made_anew_and_nothing_else_is_touched() {
        let text = "a\n<!-- generated: x -->\nold\n<!-- end -->\nb <!-- generated: $ y z --><!-- end -->\n";
        let want = "a\n<!-- generated: x -->\n(x)\n<!-- end -->\nb <!-- generated: $ y z -->\n($ y z)\n<!-- end -->\n";
        assert_eq!(fill(text).as_deref(), Ok(want));
        assert_eq!(fill(want).as_deref(), Ok(want));
        assert_eq!(fill("nothing").as_deref(), Ok("nothing"));
    }

    #[test]
    fn marks_without_an_end_are_told() {
        assert_eq!(fill("<!-- generated: x"), Err("a mark without an end".to_owned()));
        assert_eq!(fill("<!-- generated: x -->\nold"), Err("no `<!-- end -->` behind `x`".to_owned()));
    }

    #[test]
    fn a_command_stands_above_its_answer() {
        let command = "vramscope whatif corpus/recordings/cycle_sawtooth | head -n 2";
        let shown = block(command).unwrap();
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[..2], ["```text".to_owned(), format!("$ {command}")]);
        assert!(lines[2].starts_with("WHAT IF") && lines.last() == Some(&"```"), "{shown}");
        assert!(lines.len() <= 5, "{shown}");
        assert!(block("vramscope whatif nowhere").is_err());
        assert!(block("vramscope whatif corpus/recordings/cycle_sawtooth | head -n x").is_err());
    }
}
