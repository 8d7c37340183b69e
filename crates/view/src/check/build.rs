//! From what the linter found to what is shown.

use std::collections::BTreeMap;

use vramscope_lint as lint;
use vramscope_lint::{Checked, Source, TextRange, TextSize};

use super::{
    Applicability, Check, Counts, Diagnostic, Edit, Evidence, Fix, Fixable, Place, Problem, RuleCount,
    Severity, change, lines,
};

/// One file and what was found in it.
#[derive(Clone, Copy, Debug)]
pub struct CheckInput<'a> {
    /// The file.
    pub source: &'a Source,
    /// What was found.
    pub checked: &'a Checked,
}

/// Shows what was found in files, as far as `is_wanted` says for the path of a file and a diagnostic.
pub fn check(inputs: &[CheckInput<'_>], is_wanted: &dyn Fn(&str, &lint::Diagnostic) -> bool) -> Check {
    let mut check = Check::default();
    for CheckInput { source, checked } in inputs {
        let file = source.name();
        check.files.push(file.to_owned());
        check.suppressed += checked.suppressed as u64;
        check.problems.extend(checked.problems.iter().map(|problem| Problem {
            file: file.to_owned(),
            place: problem.range.map(|range| place(source, range.start())),
            message: problem.message.clone(),
            is_fatal: false,
        }));
        let wanted = checked.diagnostics.iter().filter(|found| is_wanted(file, found));
        check.diagnostics.extend(wanted.map(|found| diagnostic(source, found)));
    }
    (check.counts, check.fixable, check.statistics) = counted(&check.diagnostics);
    check
}

fn counted(diagnostics: &[Diagnostic]) -> (Counts, Fixable, Vec<RuleCount>) {
    let mut counts = Counts::default();
    let mut fixable = Fixable::default();
    let mut by_rule: BTreeMap<&str, RuleCount> = BTreeMap::new();
    for found in diagnostics {
        match found.severity {
            Severity::Error => counts.errors += 1,
            Severity::Warning => counts.warnings += 1,
            Severity::Info => counts.infos += 1,
        }
        let of_rule = by_rule.entry(found.code).or_insert_with(|| RuleCount {
            code: found.code,
            name: found.name,
            count: 0,
            fixable: Fixable::default(),
        });
        of_rule.count += 1;
        for fixable in [&mut fixable, &mut of_rule.fixable] {
            match found.fix.as_ref().map(|fix| fix.applicability) {
                Some(Applicability::Safe) => fixable.safe += 1,
                Some(Applicability::Unsafe) => fixable.risky += 1,
                Some(Applicability::Display) | None => {}
            }
        }
    }
    let mut statistics: Vec<RuleCount> = by_rule.into_values().collect();
    statistics.sort_by_key(|rule| std::cmp::Reverse(rule.count));
    (counts, fixable, statistics)
}

/// A diagnostic as it is shown.
pub(crate) fn diagnostic(source: &Source, found: &lint::Diagnostic) -> Diagnostic {
    let (start, end) = places(source, found.range);
    let has_line_before = start.line > 1;
    let is_same_cell = |offset: usize| place(source, (offset as u32).into()).cell == start.cell;
    let range = usize::from(found.range.start())..usize::from(found.range.end());
    Diagnostic {
        code: found.rule.code,
        name: found.rule.name,
        severity: found.severity,
        file: source.name().to_owned(),
        start,
        end,
        message: found.message.clone(),
        evidence: found
            .evidence
            .iter()
            .map(|reason| Evidence {
                text: reason.text.clone(),
                range: reason.range.map(|range| places(source, range)),
            })
            .collect(),
        advice: found.advice.clone(),
        fix: found.fix.as_ref().map(|fix| shown_fix(source, fix)),
        excerpt: lines::around(source.text(), range, start.line, has_line_before, is_same_cell),
    }
}

fn shown_fix(source: &Source, fix: &lint::Fix) -> Fix {
    let edit = |edit: &lint::Edit| Edit {
        start: place(source, edit.range.start.into()),
        end: place(source, edit.range.end.into()),
        content: edit.content.clone(),
    };
    Fix {
        applicability: fix.applicability,
        message: fix.message.clone(),
        edits: fix.edits.iter().map(edit).collect(),
        change: change::change(source, &fix.edits),
    }
}

fn places(source: &Source, range: TextRange) -> (Place, Place) {
    (place(source, range.start()), place(source, range.end()))
}

fn place(source: &Source, offset: TextSize) -> Place {
    let location = source.location(offset);
    Place { cell: location.cell, line: location.line, column: location.column }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vramscope_lint::Span;

    fn found(
        range: (u32, u32),
        severity: Severity,
        applicability: Option<Applicability>,
    ) -> lint::Diagnostic {
        lint::Diagnostic {
            rule: lint::rules().next().unwrap(),
            severity,
            range: TextRange::new(range.0.into(), range.1.into()),
            message: "a message".into(),
            target: None,
            evidence: vec![lint::Evidence {
                text: "a reason".into(),
                range: Some(TextRange::new(0.into(), 1.into())),
            }],
            advice: None,
            fix: applicability.map(|applicability| lint::Fix {
                applicability,
                message: "do it".into(),
                leaves_data: false,
                edits: vec![lint::Edit { range: Span { start: range.1, end: range.1 }, content: "!".into() }],
            }),
        }
    }

    #[test]
    fn places_are_counted_in_characters_from_one() {
        let source = Source::read("a.py", "x\nöö = é\n".as_bytes()).unwrap();
        let checked = Checked {
            diagnostics: vec![
                found((9, 11), Severity::Error, Some(Applicability::Safe)),
                found((0, 1), Severity::Info, Some(Applicability::Unsafe)),
                found((0, 1), Severity::Warning, Some(Applicability::Display)),
            ],
            suppressed: 2,
            problems: Vec::new(),
        };
        let input = CheckInput { source: &source, checked: &checked };
        let all = check(&[input], &|_, _| true);
        let first = &all.diagnostics[0];
        assert_eq!(
            (first.start, first.end),
            (Place { cell: None, line: 2, column: 6 }, Place { cell: None, line: 2, column: 7 },)
        );
        assert_eq!(first.excerpt, [(1, "x".to_owned()), (2, "öö = é".to_owned())]);
        let fix = first.fix.as_ref().unwrap();
        assert_eq!(fix.change[0].added, ["öö = é!"]);
        assert_eq!(all.counts, Counts { errors: 1, warnings: 1, infos: 1 });
        assert_eq!(all.fixable, Fixable { safe: 1, risky: 1 });
        assert_eq!((all.statistics.len(), all.statistics[0].count, all.suppressed), (1, 3, 2));
        let errors = check(&[input], &|file, found| file == "a.py" && found.severity == Severity::Error);
        assert_eq!(errors.diagnostics.len(), 1);
    }
}
