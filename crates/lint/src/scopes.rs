//! Which function a line belongs to, as Python names it in a stack.

use crate::{
    source::Source,
    syntax::{
        Ranged, TextRange,
        ast::Stmt,
        visitor::{self, Visitor},
        with_deep_stack,
    },
};

/// What Python calls the code of a module outside of functions.
pub const MODULE: &str = "<module>";

/// A function, or a statement of the module with all that is in it but functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The function's name; [`MODULE`] for a statement.
    pub name: String,
    /// The class that the function is a method of.
    pub class: Option<String>,
    /// Its first line, from 1, counted from the beginning of the text.
    pub first: u32,
    /// Its last line.
    pub last: u32,
}

/// The scopes of a file.
#[derive(Clone, Debug, Default)]
pub struct Scopes {
    /// In order of their first lines, what is outside before what is inside.
    all: Vec<Scope>,
}

impl Scopes {
    /// Those of a source; none where it cannot be parsed.
    pub fn of(source: &Source) -> Self {
        let Ok(parsed) = source.parse() else { return Self::default() };
        let mut collect = Collect { source, class: None, depth: 0, all: Vec::new() };
        with_deep_stack(|| collect.visit_body(&parsed.syntax().body));
        Self { all: collect.all }
    }

    /// The innermost scope around a line.
    pub fn around(&self, line: u32) -> Option<&Scope> {
        self.all.iter().rev().find(|scope| (scope.first..=scope.last).contains(&line))
    }
}

struct Collect<'a> {
    source: &'a Source,
    class: Option<&'a str>,
    /// How many statements are around.
    depth: usize,
    all: Vec<Scope>,
}

impl<'a> Collect<'a> {
    fn add(&mut self, name: &str, range: TextRange) {
        self.all.push(Scope {
            name: name.to_owned(),
            class: self.class.map(str::to_owned),
            first: self.source.line_at(range.start()),
            last: self.source.line_at(range.end()),
        });
    }

    fn walk(&mut self, stmt: &'a Stmt, class: Option<&'a str>) {
        let outer = std::mem::replace(&mut self.class, class);
        self.depth += 1;
        visitor::walk_stmt(self, stmt);
        self.depth -= 1;
        self.class = outer;
    }
}

impl<'a> Visitor<'a> for Collect<'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        let class = self.class;
        match stmt {
            Stmt::FunctionDef(it) => {
                self.add(it.name.as_str(), it.range());
                self.walk(stmt, None);
            }
            Stmt::ClassDef(it) => self.walk(stmt, Some(it.name.as_str())),
            _ => {
                if self.depth == 0 {
                    self.add(MODULE, stmt.range());
                }
                self.walk(stmt, class);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_belong_to_the_innermost_function_or_to_a_statement_of_the_module() {
        let text = "\
import torch

class Net:
    if True:
        def forward(self, x):
            def inner():
                return x
            return inner()

for batch in data:
    step(batch)
    def late(): pass
    more()
";
        let source = Source::read("a.py", text.as_bytes()).unwrap();
        let scopes = Scopes::of(&source);
        let around =
            |line| scopes.around(line).map(|it| (it.name.as_str(), it.class.as_deref(), it.first, it.last));
        for (line, expect) in [
            (1, Some((MODULE, None, 1, 1))),
            (2, None),
            (3, None),
            (5, Some(("forward", Some("Net"), 5, 8))),
            (7, Some(("inner", None, 6, 7))),
            (8, Some(("forward", Some("Net"), 5, 8))),
            (11, Some((MODULE, None, 10, 13))),
            (12, Some(("late", None, 12, 12))),
            (13, Some((MODULE, None, 10, 13))),
            (99, None),
        ] {
            assert_eq!(around(line), expect, "{line}");
        }
    }
}
