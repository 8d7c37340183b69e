use proptest::prelude::*;

use super::*;
use crate::source::Source;

/// Parses, walks and drops on a stack as small as those of worker threads.
fn outcome(name: &'static str, text: String) -> String {
    let worker = std::thread::Builder::new().stack_size(2 << 20);
    let outcome = worker.spawn(move || {
        let source = Source::read(name, text.as_bytes()).unwrap();
        match source.parse() {
            Ok(parsed) => {
                let mut walked = Depth { now: 0, too_deep: None };
                with_deep_stack(|| walked.visit_body(parsed.suite()));
                assert_eq!(walked.too_deep, None);
                if parsed.errors().is_empty() { "fine" } else { "syntax errors" }.to_owned()
            }
            Err(problem) => problem.message,
        }
    });
    outcome.unwrap().join().unwrap()
}

fn repeated(before: &str, middle: &str, after: &str, times: usize) -> String {
    [before.repeat(times), middle.to_owned(), after.repeat(times), "\n".to_owned()].concat()
}

fn blocks(header: &str, times: usize) -> String {
    let headers = (0..times).flat_map(|depth| [" ".repeat(depth), header.to_owned(), "\n".to_owned()]);
    headers.collect::<String>() + &" ".repeat(times) + "pass\n"
}

/// What can be repeated: within each other, or one after the other.
fn shapes(times: usize) -> Vec<String> {
    vec![
        repeated("(", "1", ")", times),
        repeated("(", "1", "", times),
        repeated("[", "", "]", times),
        repeated("[)", "", "", times),
        repeated("{(]", "", "", times),
        repeated("{1:", "1", "}", times),
        repeated("f(", "", ")", times),
        repeated("f(x=", "", ")", times),
        repeated("f", "", "()", times),
        repeated("f", "", "[0]", times),
        repeated("a", "", ".a", times),
        repeated("1", "", "+1", times),
        repeated("1", "", "**1", times),
        repeated("not ", "x", "", times),
        repeated("-", "x", "", times),
        repeated("await ", "x", "", times),
        repeated("lambda: ", "x", "", times),
        repeated("lambda x, y: ", "x", "", times),
        repeated("lambda x=", "x", ": x", times),
        repeated("a if b else ", "x", "", times),
        repeated("[x for x in ", "y", "]", times),
        repeated("(yield ", "y", ")", times),
        repeated("*", "y", "", times),
        repeated("async ", "pass", "", times),
        repeated("if a: ", "pass", "", times),
        repeated("class a: ", "pass", "", times),
        repeated("f'{", "x", "}'", times),
        repeated("f\"\"\"{'''{", "x", "}'''}\"\"\"", times),
        repeated("x = f'{x:{", "x", "}}'", times),
        format!("f'{}x{}'\n", "{x:".repeat(times), "}".repeat(times)),
        format!("match x:\n case {}y{}: pass\n", "[".repeat(times), "]".repeat(times)),
        format!("def f[T: {}int{}](): pass\n", "A[".repeat(times), "]".repeat(times)),
        format!("x = {}\n", "'".repeat(times)),
    ]
}

#[test]
fn nothing_overflows_a_small_stack() {
    for times in [150, 2_000, 30_000] {
        for shape in shapes(times) {
            outcome("a.py", shape);
        }
    }
    for header in ["if x:", "def f():", "class A:", "for x in y:", "try:", "match x:"] {
        for times in [90, 1_500] {
            outcome("a.py", blocks(header, times));
        }
    }
    outcome("a.py", blocks("if x:", 5_000));
}

#[test]
fn what_python_itself_takes_is_taken() {
    let times = 150;
    for shape in [
        repeated("(", "1", ")", times),
        repeated("f(x=", "1", ")", times),
        repeated("not ", "x", "", times),
        repeated("a", "", ".a(b)[c]", times),
        repeated("1", "", " + 1", 900),
        blocks("if x:", 99),
    ] {
        assert_eq!(outcome("a.py", shape), "fine");
    }
}

#[test]
fn long_is_not_deep() {
    for text in [
        format!("x = [{}]\n", "-1.5, (2, 3), {'a': [b.c(d)]}, ".repeat(30_000)),
        "x = a.b(c)[d] + 1; y = -x\n".repeat(20_000),
        format!("x = [{}]\n", "lambda a, b: a + b, ".repeat(20_000)),
        format!("x = a{}\n", " and a".repeat(20_000)),
        format!("if a: pass\n{}", "elif a.b(c): pass\n".repeat(20_000)),
        format!("f(\n{}", "x = a.b(c)[d] + 1\n".repeat(20)),
    ] {
        let start: String = text.chars().take(40).collect();
        assert!(!outcome("a.py", text).starts_with("nested"), "{start}");
    }
}

#[test]
fn deep_and_large_is_refused_before_it_is_parsed() {
    for shape in [
        repeated("(", "1", ")", 1_000_000),
        repeated("not ", "x", "", 1_000_000),
        repeated("1", "", "+1", 500_000),
        repeated("a", "", ".a", 500_000),
        repeated("[)", "", "", 500_000),
        repeated("f'{", "x", "}'", 200_000),
    ] {
        assert_eq!(outcome("a.py", shape), "nested too deeply to be looked at: more than 1000 levels");
    }
}

#[test]
fn cells_are_guarded_too() {
    let cell = repeated("[", "1", "]", 5_000);
    let json = format!(
        r#"{{"cells": [{{"cell_type": "code", "execution_count": null, "metadata": {{}}, "outputs": [], "source": {cell:?}}}],
            "metadata": {{}}, "nbformat": 4, "nbformat_minor": 4}}"#
    );
    assert_eq!(outcome("a.ipynb", json), "nested too deeply to be looked at: more than 1000 levels");
}

/// The true depth of a tree.
fn depth(parsed: &Parsed<ModModule>) -> u32 {
    struct Deepest(u32, u32);
    impl Deepest {
        fn within(&mut self, walk: impl FnOnce(&mut Self)) {
            self.0 += 1;
            self.1 = self.1.max(self.0);
            walk(self);
            self.0 -= 1;
        }
    }
    impl<'a> Visitor<'a> for Deepest {
        fn visit_stmt(&mut self, stmt: &'a Stmt) {
            self.within(|it| walk_stmt(it, stmt));
        }
        fn visit_expr(&mut self, expr: &'a Expr) {
            self.within(|it| walk_expr(it, expr));
        }
        fn visit_pattern(&mut self, pattern: &'a Pattern) {
            self.within(|it| walk_pattern(it, pattern));
        }
        fn visit_interpolated_string_element(
            &mut self,
            element: &'a ruff_python_ast::InterpolatedStringElement,
        ) {
            self.within(|it| walk_interpolated_string_element(it, element));
        }
    }
    let mut deepest = Deepest(0, 0);
    deepest.visit_body(parsed.suite());
    deepest.1
}

const PIECES: &[&str] = &[
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "a",
    "1",
    "'s'",
    "f'",
    "'",
    "{x",
    "}'",
    ".",
    ",",
    ":",
    ";",
    "+",
    "-",
    "*",
    "**",
    "not ",
    " if ",
    " else ",
    "lambda ",
    "lambda:",
    "await ",
    "yield ",
    " for x in ",
    " in ",
    " and ",
    "=",
    ":=",
    "\n",
    "\n ",
    "\n  ",
    "class ",
    "def f():",
    "async ",
    "match x:\n case ",
    "|",
    "@",
    "\"\"\"",
    "# )\n",
    "return ",
    "with ",
    "!r",
    " as ",
];

proptest! {
    #[test]
    fn the_bound_is_one(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..60)) {
        let text = pieces.concat();
        let parsed = ruff_python_parser::parse_unchecked_source(&text, PySourceType::Python);
        let depth = depth(&parsed);
        prop_assert!(depth <= most_tokens_that_nest(&text) + 3, "{depth}");
        if parsed.errors().is_empty() {
            let bound = bound_of(parsed.tokens().iter().map(Token::kind));
            prop_assert!(depth <= bound, "{depth} {bound}");
        }
        // Of what is no Python the parser makes something, by rules of its own.
        let bound = bound_of_text(&text, PySourceType::Python);
        prop_assert!(depth <= 2 * bound, "{depth} {bound}");
    }
}
