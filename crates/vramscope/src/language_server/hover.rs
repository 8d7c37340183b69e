//! What is shown where the mouse rests: the page of the rule that found something there, or that a comment suppresses.

use lsp_types::{Hover, HoverContents, MarkupContent, MarkupKind, Position, Range, Uri};
use vramscope_lint::{Checked, Rule, rules_named_at};

use super::client::Client;
use super::open_file::OpenFile;

/// What there is to say about a place in a document.
pub(super) fn hover(
    file: &OpenFile,
    checked: &Checked,
    uri: &Uri,
    position: Position,
    client: &Client,
) -> Option<Hover> {
    let at = file.offset(uri, position, client.encoding)?;
    let found = checked.diagnostics.iter().filter(|found| found.range.contains_inclusive(at));
    if let Some(found) = found.min_by_key(|found| found.range.len()) {
        let range = file.location(found.range.into(), client.encoding).map(|place| place.range);
        return Some(shown(found.rule.page(), range, client));
    }
    match rules_named_at(&file.source, at).as_slice() {
        [] => None,
        [rule] => Some(shown(rule.page(), None, client)),
        rules => Some(shown(list(rules), None, client)),
    }
}

fn list(rules: &[&Rule]) -> String {
    let line = |rule: &&Rule| format!("- **{}** {}: {}\n", rule.code, rule.name, rule.summary());
    rules.iter().map(line).collect()
}

fn shown(value: String, range: Option<Range>, client: &Client) -> Hover {
    let kind = if client.markdown { MarkupKind::Markdown } else { MarkupKind::PlainText };
    Hover { contents: HoverContents::Markup(MarkupContent { kind, value }), range }
}
