//! Questions about the text around a piece of code, which edits need.

use super::Context;
use crate::{
    fix::Edit,
    syntax::{
        Ranged, TextRange, TextSize,
        ast::{Expr, Stmt},
    },
};

impl Context<'_> {
    /// The blanks in front of a statement.
    pub(crate) fn indentation(&self, statement: &Stmt) -> &str {
        let start = usize::from(statement.start());
        let text = self.source.text();
        let line = text.get(..start).map_or(0, |it| it.rfind(['\n', '\r']).map_or(0, |at| at + 1));
        text.get(line..start).filter(|it| it.chars().all(char::is_whitespace)).unwrap_or("")
    }

    /// Whether a statement has its lines for itself: nothing before it on its first line, nothing but a comment behind it.
    pub(crate) fn is_alone_on_its_lines(&self, statement: &Stmt) -> bool {
        let text = self.source.text();
        let before = text.get(..usize::from(statement.start())).unwrap_or("");
        let line = before.rsplit(['\n', '\r']).next().unwrap_or("");
        let after = text.get(usize::from(statement.end())..).unwrap_or("");
        let rest = after.split(['\n', '\r']).next().unwrap_or("").trim_start();
        line.chars().all(char::is_whitespace) && (rest.is_empty() || rest.starts_with('#'))
    }

    /// The end of line that the file uses.
    pub(crate) fn end_of_line(&self) -> &'static str {
        let text = self.source.text();
        match text.find(['\n', '\r']) {
            Some(at) if text.as_bytes().get(at..at + 2) == Some(b"\r\n") => "\r\n",
            Some(at) if text.as_bytes().get(at) == Some(&b'\r') => "\r",
            _ => "\n",
        }
    }

    /// The lines of a statement, with its indentation and the end of its last line: what to delete to take it away.
    pub(crate) fn whole_lines(&self, statement: &Stmt) -> TextRange {
        let text = self.source.text();
        let start = usize::from(statement.start()) - self.indentation(statement).len();
        let end = usize::from(statement.end());
        let rest = text.get(end..).unwrap_or("");
        let to_end = rest.find(['\n', '\r']).map_or(rest.len(), |at| {
            at + if rest.get(at..).is_some_and(|it| it.starts_with("\r\n")) { 2 } else { 1 }
        });
        TextRange::new(TextSize::new(start as u32), TextSize::new((end + to_end) as u32))
    }

    /// A line of code below a statement that is alone on its lines, indented like another one.
    ///
    /// It is put before what ends the statement's last line: in a notebook that end may be the end of the cell, and behind it the next begins,
    /// perhaps with a magic that must come first.
    pub(crate) fn line_below(&self, statement: &Stmt, like: &Stmt, code: &str) -> Edit {
        let lines = self.whole_lines(statement);
        let length = self.text(lines).trim_end_matches(['\n', '\r']).len();
        let end = lines.start() + TextSize::new(length as u32);
        Edit::insert(end, format!("{}{}{code}", self.end_of_line(), self.indentation(like)))
    }

    /// The expression as the object of a method: in parentheses if it needs them.
    #[expect(dead_code)]
    pub(crate) fn as_receiver(&self, expr: &Expr) -> String {
        let text = self.text(expr);
        if needs_parentheses(expr) { format!("({text})") } else { text.to_owned() }
    }
}

/// Whether `.method()` behind an expression would not apply to the whole of it.
pub(crate) fn needs_parentheses(expr: &Expr) -> bool {
    !matches!(
        expr,
        Expr::Name(_)
            | Expr::Attribute(_)
            | Expr::Subscript(_)
            | Expr::Call(_)
            | Expr::List(_)
            | Expr::Dict(_)
            | Expr::Set(_)
            | Expr::ListComp(_)
            | Expr::DictComp(_)
            | Expr::SetComp(_)
            | Expr::StringLiteral(_)
    )
}
