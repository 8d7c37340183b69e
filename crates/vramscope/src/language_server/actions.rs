//! What can be done about what was found: the fixes, and comments that suppress it.

use std::collections::BTreeSet;

use lsp_types::{
    CodeAction, CodeActionKind, CodeActionOrCommand, OneOf, OptionalVersionedTextDocumentIdentifier,
    TextDocumentEdit, TextEdit, Uri, WorkspaceEdit,
};
use vramscope_lint as lint;
use vramscope_lint::{Applicability, Checked, Edit, Fix, Selection, Source, Span};

use super::client::{Client, FIX_ALL};
use super::diagnostics;
use super::open_file::OpenFile;

/// What can be done in a part of a file. `only`, where given, are the kinds that are of interest.
pub(super) fn actions(
    file: &OpenFile,
    checked: &Checked,
    part: Span,
    only: Option<&[CodeActionKind]>,
    client: &Client,
) -> Vec<CodeActionOrCommand> {
    let is_wanted = |kind: &str| only.is_none_or(|only| only.iter().any(|one| includes(one.as_str(), kind)));
    let mut actions = Vec::new();
    if is_wanted(CodeActionKind::QUICKFIX.as_str()) {
        let here = |found: &&lint::Diagnostic| {
            let range = Span::from(found.range);
            range.start <= part.end && part.start <= range.end
        };
        let found: Vec<_> = checked.diagnostics.iter().filter(here).collect();
        actions.extend(found.iter().filter_map(|found| quick_fix(file, found, client)));
        // Two of one rule on a line need one comment.
        let mut suppressed = BTreeSet::new();
        let on_lines = found
            .iter()
            .filter(|found| suppressed.insert((found.rule.code, file.source.line_at(found.range.start()))));
        actions.extend(on_lines.filter_map(|found| suppress(file, found, client)));
    }
    if is_wanted(FIX_ALL) {
        actions.extend(fix_all(file, checked, client));
    }
    actions.into_iter().map(CodeActionOrCommand::CodeAction).collect()
}

/// Whether a kind is another one or a part of it: `source.fixAll` of `source`.
fn includes(outer: &str, kind: &str) -> bool {
    outer.is_empty() || kind.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn quick_fix(file: &OpenFile, found: &lint::Diagnostic, client: &Client) -> Option<CodeAction> {
    let fix = found.fix.as_ref().filter(|fix| fix.applicability != Applicability::Display)?;
    let is_safe = fix.applicability == Applicability::Safe;
    let doubt = if is_safe { "" } else { " (unsafe: it may change what the program does)" };
    Some(CodeAction {
        title: format!("{}: {}{doubt}", found.rule.code, fix.message),
        kind: Some(CodeActionKind::QUICKFIX),
        diagnostics: diagnostics::diagnostic(file, found, client).map(|(_, it)| vec![it]),
        edit: Some(workspace_edit(file, &fix.edits, client)?),
        is_preferred: is_safe.then_some(true),
        ..CodeAction::default()
    })
}

fn suppress(file: &OpenFile, found: &lint::Diagnostic, client: &Client) -> Option<CodeAction> {
    let edit = lint::suppression(&file.source, found.rule, found.range.start())?;
    Some(CodeAction {
        title: format!("{}: disable for this line", found.rule.code),
        kind: Some(CodeActionKind::QUICKFIX),
        diagnostics: diagnostics::diagnostic(file, found, client).map(|(_, it)| vec![it]),
        edit: Some(workspace_edit(file, &[edit], client)?),
        ..CodeAction::default()
    })
}

/// All safe fixes of a file that can be made at once. None in a file with syntax errors, and none that bring one.
fn fix_all(file: &OpenFile, checked: &Checked, client: &Client) -> Option<CodeAction> {
    let is_safe = |fix: &&Fix| fix.applicability == Applicability::Safe;
    let edits = together(checked.diagnostics.iter().filter_map(|found| found.fix.as_ref()).filter(is_safe));
    if edits.is_empty() || !is_python(&file.source) {
        return None;
    }
    if !file.is_notebook {
        let fixed = Source::of_text(file.source.name(), edited(file.source.text(), &edits)?).ok()?;
        is_python(&fixed).then_some(())?;
    }
    Some(CodeAction {
        title: "vramscope: make all safe fixes".to_owned(),
        kind: Some(CodeActionKind::new(FIX_ALL)),
        edit: Some(workspace_edit(file, &edits, client)?),
        ..CodeAction::default()
    })
}

fn is_python(source: &Source) -> bool {
    let no_rule = Selection::of(|_| false);
    let checked = lint::check(std::slice::from_ref(source), &no_rule, &|| {});
    checked.iter().all(|it| it.problems.iter().all(|problem| !problem.message.starts_with("syntax error: ")))
}

/// The edits of as many fixes as do not touch each other, in order; edits that are the same are made once.
fn together<'a>(fixes: impl Iterator<Item = &'a Fix>) -> Vec<Edit> {
    let mut taken: Vec<Edit> = Vec::new();
    for fix in fixes {
        let new: Vec<&Edit> = fix.edits.iter().filter(|edit| !taken.contains(edit)).collect();
        let touches = |edit: &Edit| {
            taken.iter().any(|it| it.range.start <= edit.range.end && edit.range.start <= it.range.end)
        };
        if !new.iter().any(|edit| touches(edit)) {
            taken.extend(new.into_iter().cloned());
        }
    }
    taken.sort();
    taken
}

fn edited(text: &str, edits: &[Edit]) -> Option<String> {
    let mut new = text.to_owned();
    for edit in edits.iter().rev() {
        let bytes = edit.range.start as usize..edit.range.end as usize;
        new.get(bytes.clone())?;
        new.replace_range(bytes, &edit.content);
    }
    Some(new)
}

/// Edits of documents, and of which versions of them.
fn workspace_edit(file: &OpenFile, edits: &[Edit], client: &Client) -> Option<WorkspaceEdit> {
    let mut documents: Vec<(Uri, Vec<TextEdit>)> = Vec::new();
    for edit in edits {
        let place = file.location(edit.range, client.encoding)?;
        let edit = TextEdit { range: place.range, new_text: edit.content.clone() };
        match documents.iter_mut().find(|(uri, _)| *uri == place.uri) {
            Some((_, edits)) => edits.push(edit),
            None => documents.push((place.uri, vec![edit])),
        }
    }
    if documents.is_empty() {
        return None;
    }
    Some(if client.versioned_edits {
        let of_document = |(uri, edits): (Uri, Vec<TextEdit>)| TextDocumentEdit {
            text_document: OptionalVersionedTextDocumentIdentifier { version: file.version(&uri), uri },
            edits: edits.into_iter().map(OneOf::Left).collect(),
        };
        let edits = documents.into_iter().map(of_document).collect();
        WorkspaceEdit {
            document_changes: Some(lsp_types::DocumentChanges::Edits(edits)),
            ..WorkspaceEdit::default()
        }
    } else {
        WorkspaceEdit { changes: Some(documents.into_iter().collect()), ..WorkspaceEdit::default() }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_parts_of_others() {
        for (outer, kind, want) in [
            ("source", FIX_ALL, true),
            ("source.fixAll", FIX_ALL, true),
            (FIX_ALL, FIX_ALL, true),
            ("", "quickfix", true),
            ("source.fix", FIX_ALL, false),
            ("source.fixAll.vramscope.more", FIX_ALL, false),
            ("quickfix", FIX_ALL, false),
        ] {
            assert_eq!(includes(outer, kind), want, "{outer} {kind}");
        }
    }

    #[test]
    fn fixes_that_touch_are_not_made_together() {
        let edit = |start, end, content: &str| Edit { range: Span { start, end }, content: content.into() };
        let fix = |edits: Vec<Edit>| Fix {
            applicability: Applicability::Safe,
            message: "x".into(),
            edits,
            leaves_data: false,
        };
        let import = edit(0, 0, "i;");
        let fixes = [
            fix(vec![import.clone(), edit(2, 3, "C")]),
            fix(vec![import, edit(4, 4, "!")]),
            fix(vec![edit(3, 4, "no")]),
        ];
        let edits = together(fixes.iter());
        assert_eq!(edited("abcde", &edits).unwrap(), "i;abCd!e");
        assert_eq!(edited("é", &[edit(1, 2, "")]), None);
    }
}
