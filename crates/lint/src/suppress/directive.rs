//! What a comment says to vramscope.

use crate::{
    check::Problem,
    rule::{Rule, find_rule, rules},
    syntax::{TextRange, TextSize},
};

const TOOL: &str = "vramscope";

/// One suppression as it is written.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Directive {
    pub(super) extent: Extent,
    pub(super) range: TextRange,
    pub(super) selectors: Vec<Selector>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    Statement,
    File,
}

/// Which rules are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Selector {
    /// A code, the beginning of codes, or a name; all rules without it.
    pub(super) rules: Option<String>,
    /// Where it is written.
    pub(super) range: TextRange,
}

impl Selector {
    pub(super) fn selects(&self, rule: &Rule) -> bool {
        self.rules.as_deref().is_none_or(|written| is_meant(rule, written))
    }
}

fn is_meant(rule: &Rule, written: &str) -> bool {
    let begins = || rule.code.get(..written.len()).is_some_and(|it| it.eq_ignore_ascii_case(written));
    find_rule(written).map_or_else(begins, |exact| std::ptr::eq(exact, rule))
}

/// Reads the suppressions in the comment that begins at `start`; what looks like one and is none is a problem.
pub(super) fn read(
    comment: &str,
    start: TextSize,
    directives: &mut Vec<Directive>,
    problems: &mut Vec<Problem>,
) {
    let mut at = 0;
    for part in comment.split('#') {
        let offset = |text: &str| start + size(at + (text.as_ptr() as usize - part.as_ptr() as usize));
        if let Some(rest) = after_tool(part) {
            let word_end = rest
                .find(|it: char| !it.is_ascii_alphanumeric() && it != '-' && it != '_')
                .unwrap_or(rest.len());
            let (word, behind) = rest.split_at(word_end);
            let begin = offset(part.trim_start());
            let mut parts = Parts { behind, offset: offset(behind), problems };
            let extent = match &*word.to_ascii_lowercase() {
                "ignore" => Some(Extent::Statement),
                "ignore-file" => Some(Extent::File),
                other if other.starts_with("ignore") => {
                    let range = TextRange::new(offset(word), offset(behind));
                    parts.complain(
                        range,
                        format!("`{word}` is no suppression; there are `ignore` and `ignore-file`"),
                    );
                    None
                }
                _ => None,
            };
            if let Some(extent) = extent
                && let Some((range, selectors)) = parts.selectors(begin)
            {
                directives.push(Directive { extent, range, selectors });
            }
        }
        at += part.len() + 1;
    }
}

/// What is behind `vramscope:` at the beginning of a comment.
fn after_tool(part: &str) -> Option<&str> {
    let part = part.trim_start();
    let (tool, rest) = part.split_at_checked(TOOL.len())?;
    tool.eq_ignore_ascii_case(TOOL).then_some(())?;
    Some(rest.trim_start().strip_prefix(':')?.trim_start())
}

/// What is behind the word `ignore`.
struct Parts<'a> {
    behind: &'a str,
    offset: TextSize,
    problems: &'a mut Vec<Problem>,
}

impl Parts<'_> {
    /// The range from `begin` to the end of the suppression, and who is meant.
    fn selectors(&mut self, begin: TextSize) -> Option<(TextRange, Vec<Selector>)> {
        let rest = self.behind.trim_start();
        let opening = self.behind.len() - rest.len();
        let to_end = TextRange::new(begin, self.offset + size(self.behind.trim_end().len()));
        let Some(list) = rest.strip_prefix('[') else {
            let word = rest.split([' ', '\t', ',', ':', ']']).next().unwrap_or_default();
            if rest.starts_with(']') || find_rule(word).is_some() {
                self.complain(to_end, "a suppression names its rules in brackets: `ignore[LK102]`");
                return None;
            }
            let range = TextRange::new(begin, self.offset);
            return Some((range, vec![Selector { rules: None, range }]));
        };
        let Some((list, _)) = list.split_once(']').filter(|(list, _)| !list.contains('[')) else {
            self.complain(to_end, "the brackets of a suppression are not closed");
            return None;
        };
        let mut at = self.offset + size(opening + 1);
        let range = TextRange::new(begin, at + size(list.len() + 1));
        let mut selectors = Vec::new();
        for item in list.split(',') {
            let written = item.trim();
            let start = at + size(item.len() - item.trim_start().len());
            at += size(item.len() + 1);
            let place = TextRange::at(start, size(written.len()));
            if written.is_empty() {
                // A comma at the end, as lists have it.
                if list.trim().is_empty() {
                    self.complain(range, "a suppression with brackets must name a rule in them");
                }
            } else if rules().any(|rule| is_meant(rule, written)) {
                selectors.push(Selector { rules: Some(written.to_owned()), range: place });
            } else {
                self.complain(place, format!("there is no rule `{written}`"));
            }
        }
        Some((range, selectors))
    }

    fn complain(&mut self, range: TextRange, message: impl Into<String>) {
        self.problems.push(Problem { range: Some(range), message: message.into() });
    }
}

fn size(bytes: usize) -> TextSize {
    TextSize::try_from(bytes).unwrap_or_default()
}
