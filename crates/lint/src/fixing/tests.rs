use std::cell::Cell;

use proptest::prelude::*;

use super::*;
use crate::{
    diagnostic::{Diagnostic, Severity},
    fix::{Edit, Fix},
    rule::find_rule,
    syntax::{TextRange, TextSize},
};

/// Finds each `from`, and offers to put `to` in its place.
fn replacing(rules: &'static [(&str, &str, Applicability)]) -> impl Fn(&[Source]) -> Vec<Checked> {
    move |sources| {
        let check = |source: &Source| {
            let found = rules.iter().flat_map(|(from, to, level)| {
                source.text().match_indices(from).map(|(at, _)| {
                    let range = TextRange::at(size(at), size(from.len()));
                    Diagnostic::new(find_rule("LK101").unwrap(), Severity::Error, range, "x")
                        .fixed_by(Fix::new(*level, "x", vec![Edit::replace(range, *to)]))
                })
            });
            Checked { diagnostics: found.collect(), ..Checked::default() }
        };
        sources.iter().map(check).collect()
    }
}

fn size(bytes: usize) -> TextSize {
    TextSize::try_from(bytes).unwrap()
}

fn told(fixed: &Fixed) -> (String, usize, usize, Option<&str>) {
    let bytes = fixed.source.encode().unwrap();
    let count = fixed.applied.iter().map(|it| it.count).sum();
    (bytes.escape_ascii().to_string(), count, fixed.checked.diagnostics.len(), fixed.trouble.as_deref())
}

fn check_fix(
    bytes: &[u8],
    level: Applicability,
    rules: &'static [(&str, &str, Applicability)],
    expect: (&str, usize, usize, Option<&str>),
) {
    let fixed = fix_with(vec![Source::read("a.py", bytes).unwrap()], level, replacing(rules));
    let (text, applied, left, trouble) = told(&fixed[0]);
    assert_eq!((&*text, applied, left, trouble), expect);
}

use Applicability::{Display, Safe, Unsafe};

#[test]
fn fixes_are_made_until_none_is_left() {
    check_fix(b"a; a; aa\n", Safe, &[("a", "b", Safe), ("b", "c", Safe)], ("c; c; cc\\n", 8, 0, None));
    check_fix(
        b"\xef\xbb\xbfa\r\na\ra",
        Safe,
        &[("a", "bb", Safe)],
        ("\\xef\\xbb\\xbfbb\\r\\nbb\\rbb", 3, 0, None),
    );
    check_fix(
        b"# coding: latin-1\nx = '\xe9'",
        Safe,
        &[("x", "y", Safe)],
        ("# coding: latin-1\\ny = \\'\\xe9\\'", 1, 0, None),
    );
}

#[test]
fn only_those_that_are_trusted() {
    const RULES: &[(&str, &str, Applicability)] =
        &[("a", "x", Safe), ("b", "y", Unsafe), ("c", "z", Display)];
    check_fix(b"a, b, c", Safe, RULES, ("x, b, c", 1, 2, None));
    check_fix(b"a, b, c", Unsafe, RULES, ("x, y, c", 2, 1, None));
    check_fix(b"a, b, c", Display, RULES, ("x, y, c", 2, 1, None));
}

#[test]
fn what_breaks_the_syntax_is_not_made() {
    check_fix(
        b"a; b; a; b; a\n",
        Safe,
        &[("a", "x", Safe), ("b", "(", Safe)],
        ("x; b; x; b; x\\n", 3, 2, Some("fixes of LK101 would have broken the syntax, and were not made")),
    );
    check_fix(
        b"a = = 1\n",
        Safe,
        &[("a", "x", Safe)],
        ("a = = 1\\n", 0, 1, Some("it has syntax errors, and nothing in it was fixed")),
    );
}

#[test]
fn what_does_not_end_is_not_begun() {
    let endless = Some("its fixes do not come to an end, and none of them was made");
    check_fix(b"a, b\n", Safe, &[("a", "b", Safe), ("b", "a", Safe)], ("a, b\\n", 0, 2, endless));
    check_fix(b"a\n", Safe, &[("a", "aa", Safe)], ("a\\n", 0, 1, endless));
    // It never has the same text twice.
    check_fix(b"x = a\n", Safe, &[("= a", "= a + 1 == a", Safe)], ("x = a\\n", 0, 1, endless));
}

#[test]
fn one_file_does_not_spoil_the_others() {
    let read = |text: &str| Source::read("a.py", text.as_bytes()).unwrap();
    let sources = vec![read("a\n"), read("b\n"), read("c = = 1\n")];
    let fixed = fix_with(sources, Safe, replacing(&[("a", "aa", Safe), ("b", "y", Safe), ("c", "z", Safe)]));
    let texts: Vec<_> =
        fixed.iter().map(|it| (it.source.text(), it.applied.len(), it.trouble.is_some())).collect();
    assert_eq!(texts, [("a\n", 0, true), ("y\n", 1, false), ("c = = 1\n", 0, true)]);
}

#[test]
fn what_could_not_be_read_again_is_not_written() {
    check_fix(
        b"# coding: latin-1\nx\n",
        Safe,
        &[("x", "'\u{20ac}'", Safe)],
        (
            "# coding: latin-1\\nx\\n",
            0,
            1,
            Some(
                "it cannot be stored once it is fixed, and nothing was: its encoding has no bytes for a character of the edited text",
            ),
        ),
    );
    check_fix(
        b"# coding: latin-1\n'\xe9'\n",
        Safe,
        &[("# coding: latin-1\n", "1\n2\n# coding: latin-1\u{20}\n", Safe)],
        (
            "# coding: latin-1\\n\\'\\xe9\\'\\n",
            0,
            1,
            Some(
                "it cannot be stored once it is fixed, and nothing was: byte 24, in line 4, is not valid in UTF-8",
            ),
        ),
    );
}

#[test]
fn a_cell_must_be_whole_by_itself() {
    let cell = |source: &str| {
        format!(
            r#"{{"cell_type":"code","execution_count":null,"metadata":{{}},"outputs":[],"source":{source:?}}}"#
        )
    };
    let json = format!(
        r#"{{"cells":[{},{}],"metadata":{{}},"nbformat":4,"nbformat_minor":4}}"#,
        cell("if x:\n  a"),
        cell("b")
    );
    let source = Source::read("a.ipynb", json.as_bytes()).unwrap();
    let fixed = fix_with(vec![source], Safe, replacing(&[("b", "  b", Safe), ("a", "c", Safe)]));
    assert_eq!(fixed[0].source.text(), "if x:\n  c\nb\n");
    assert!(fixed[0].trouble.is_some());
}

#[test]
fn each_file_is_counted_once() {
    let count = std::sync::atomic::AtomicUsize::new(0);
    let sources = vec![Source::read("a.py", b"x\n").unwrap(), Source::read("b.py", b"y\n").unwrap()];
    let fixed = fix(sources, &Selection::default(), Safe, &|| {
        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    });
    assert_eq!((fixed.len(), count.into_inner()), (2, 2));
}

proptest! {
    #[test]
    fn fixing_twice_changes_nothing(text in "[abcd()\r\n ;:é]{0,24}", marked in any::<bool>()) {
        const RULES: &[(&str, &str, Applicability)] =
            &[("a", "b", Safe), ("b;", "d;", Safe), ("c", "a", Unsafe), ("d", "(", Safe), ("ab", "", Safe), (": b", ": d", Safe)];
        let mark = if marked { "\u{feff}" } else { "" };
        let bytes = format!("{mark}{text}").into_bytes();
        let source = Source::read("a.py", &bytes).unwrap();
        let was_python = source.parse().unwrap().errors().is_empty();
        let rounds = Cell::new(0);
        let check = |sources: &[Source]| {
            rounds.set(rounds.get() + 1);
            replacing(RULES)(sources)
        };
        let fixed = fix_with(vec![source], Safe, check).pop().unwrap();
        prop_assert!(rounds.get() <= 2 * MOST_ROUNDS + 2);
        let once = fixed.source.encode().unwrap();
        prop_assert_eq!(once == bytes, fixed.applied.is_empty());
        if was_python {
            prop_assert!(fixed.source.parse().unwrap().errors().is_empty());
        } else {
            prop_assert_eq!(&once, &bytes);
        }
        let ends = |bytes: &[u8]| (bytes.starts_with(b"\xef\xbb\xbf"), bytes.split(|it| *it == b'\r').count());
        prop_assert_eq!(ends(&once), ends(&bytes));
        let again = fix_with(vec![fixed.source], Safe, replacing(RULES)).pop().unwrap();
        prop_assert_eq!(again.source.encode().unwrap(), once);
    }
}
