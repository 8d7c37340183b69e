use super::*;
use crate::{diagnostic::Severity, rule::find_rule};

/// Where diagnostics of LK101, one at each `!`, are kept, and the problems.
fn check(marked: &str, expect: &str) {
    let mut places = Vec::new();
    let mut text = String::new();
    for (index, part) in marked.split('!').enumerate() {
        if index > 0 {
            places.push(TextSize::try_from(text.len()).unwrap());
        }
        text.push_str(part);
    }
    let source = Source::read("a.py", text.as_bytes()).unwrap();
    let parsed = source.parse().unwrap();
    assert!(parsed.errors().is_empty(), "{text}");
    check_source(&source, &places, expect);
}

fn check_source(source: &Source, places: &[TextSize], expect: &str) {
    let parsed = source.parse().unwrap();
    let rule = find_rule("LK101").unwrap();
    let found =
        places.iter().map(|at| Diagnostic::new(rule, Severity::Error, TextRange::at(*at, 1.into()), "x"));
    let (kept, suppressed, problems) =
        Suppressions::of(source, &parsed).apply(found.collect(), &Selection::default());
    assert_eq!(kept.len() + suppressed, places.len());
    let kept = kept.iter().map(|it| source.location(it.range.start()).line.to_string());
    let problems = problems.iter().map(|it| {
        let place = it.range.and_then(|range| source.text().get(range.to_std_range())).unwrap();
        format!("{place}: {}", it.message)
    });
    assert_eq!(kept.chain(problems).collect::<Vec<_>>().join("\n"), expect, "{}", source.text());
}

#[test]
fn behind_code() {
    for comment in [
        "# vramscope: ignore[LK101]",
        "# vramscope: ignore[LK1]",
        "# vramscope: ignore[lk101]",
        "# vramscope: ignore[accumulate-attached-loss]",
        "# vramscope: ignore",
        "#VRAMscope :  IGNORE [ LK101 , ]  because it is measured",
        "# vramscope: ignore because it is measured",
        "# noqa  # vramscope: ignore[LK101]",
        "# vramscope: ignore[LK101]  # noqa",
    ] {
        check(&format!("!x = 1  {comment}\n!y = 2\n"), "2");
    }
}

#[test]
fn behind_a_line_of_a_statement() {
    check("x = f(\n  !a,  # vramscope: ignore\n  !b,\n)\n", "3");
    check("!x = f(\n  !a,\n  !b,\n)  # vramscope: ignore\n!y\n", "5");
    check("!x = '''\n!# a\n!'''  # vramscope: ignore\n!y\n", "4");
    check("for x in !y:  # vramscope: ignore\n  !z\n", "2");
    check("!x = '#'; !y  # vramscope: ignore\r\n!y\r\n", "2");
}

#[test]
fn on_a_line_of_its_own() {
    check("# vramscope: ignore\n\n# so\n!x = f(\n !a)\n!y\n", "6");
    check("def f():\n    # vramscope: ignore[LK101]\n    !x\n    !y\n", "4");
    check("# vramscope: ignore\n@a(!b)\n@c\ndef f(a=!1,\n  b=!2):\n    !x\n", "6");
    check("# vramscope: ignore\nclass A(!b):\n    !x\n", "3");
    check("x = f(\n  # vramscope: ignore\n  !a,\n  !b)\n", "4");
    check("if x:\n    pass\n# vramscope: ignore\nelif !y:\n    !z\n", "5");
}

#[test]
fn for_the_file() {
    check("!x\n# vramscope: ignore-file[LK101]\n!y\n", "");
    check("!x\n!y\n  # vramscope: Ignore-File", "");
    check(
        "!x  # vramscope: ignore-file\n",
        "1\nvramscope: ignore-file: `ignore-file` must be on a line of its own",
    );
}

#[test]
fn never_in_strings() {
    check("!x = '# vramscope: ignore'\n", "1");
    check("'''\n# vramscope: ignore-file\n'''\n!x\n", "4");
}

#[test]
fn what_cannot_be_read_suppresses_nothing() {
    check("!x  # vramscope: ignore[LK000]\n", "1\nLK000: there is no rule `LK000`");
    check(
        "!x  # vramscope: ignore[LK000, LK101, é]\n",
        "LK000: there is no rule `LK000`\né: there is no rule `é`",
    );
    check(
        "!x  # vramscope: ignore[LK101\n",
        "1\nvramscope: ignore[LK101: the brackets of a suppression are not closed",
    );
    check(
        "!x  # vramscope: ignore[]\n",
        "1\nvramscope: ignore[]: a suppression with brackets must name a rule in them",
    );
    check(
        "!x  # vramscope: ignore LK101\n",
        "1\nvramscope: ignore LK101: a suppression names its rules in brackets: `ignore[LK102]`",
    );
    check(
        "!x  # vramscope: ignore-next[LK101]\n",
        "1\nignore-next: `ignore-next` is no suppression; there are `ignore` and `ignore-file`",
    );
    check("!x  # see vramscope: ignore, vramscopes: ignore, vramscope is fine\n", "1");
}

#[test]
fn what_suppresses_nothing_is_told() {
    check("x  # vramscope: ignore[LK101]\n!y\n", "2\nLK101: the suppression of `LK101` suppresses nothing");
    check("# vramscope: ignore\n", "vramscope: ignore: the suppression suppresses nothing");
    let off = "x  # vramscope: ignore[LK101]\n";
    let source = Source::read("a.py", off.as_bytes()).unwrap();
    let suppressions = Suppressions::of(&source, &source.parse().unwrap());
    assert!(suppressions.apply(Vec::new(), &Selection::of(|_| false)).2.is_empty());
    // An error may be what keeps a diagnostic from being found.
    let broken = Source::read("a.py", b"x = = 1  # vramscope: ignore[LK101]\n").unwrap();
    check_source(&broken, &[], "");
}

#[test]
fn not_for_another_cell() {
    let cell = |source: &str| {
        format!(
            r#"{{"cell_type":"code","execution_count":null,"metadata":{{}},"outputs":[],"source":{source:?}}}"#
        )
    };
    let json = format!(
        r#"{{"cells":[{},{}],"metadata":{{}},"nbformat":4,"nbformat_minor":4}}"#,
        cell("x\n# vramscope: ignore"),
        cell("y  # vramscope: ignore[LK101]")
    );
    let source = Source::read("a.ipynb", json.as_bytes()).unwrap();
    let y = TextSize::try_from(source.text().find('y').unwrap()).unwrap();
    check_source(&source, &[y], "vramscope: ignore: the suppression suppresses nothing");
}

#[test]
fn any_comment_is_read() {
    use proptest::prelude::*;
    proptest!(|(words in prop::collection::vec(prop::sample::select(
        vec!["#", " ", "vramscope", ":", "ignore", "-file", "[", "]", ",", "LK101", "é", "x", "\n", "(", ")", "@"]), 0..20))| {
        let text = words.concat();
        let source = Source::read("a.py", text.as_bytes()).unwrap();
        let parsed = source.parse().unwrap();
        let (_, _, problems) = Suppressions::of(&source, &parsed).apply(Vec::new(), &Selection::default());
        for problem in problems {
            prop_assert!(text.get(problem.range.unwrap().to_std_range()).is_some(), "{text:?} {problem:?}");
        }
    });
}
