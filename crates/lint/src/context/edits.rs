//! Edits that several rules make.

use super::Context;
use crate::{
    fix::Edit,
    names::{LoopId, LoopNode},
    syntax::{
        Ranged, TextRange, TextSize,
        ast::{self, Expr, Stmt},
        mentions,
    },
};

impl<'a> Context<'a> {
    /// Adds an argument at the end of a call: `map_location="cpu"`.
    pub(crate) fn add_keyword(&self, call: &ast::ExprCall, argument: &str) -> Option<Edit> {
        let arguments = &call.arguments;
        if matches!(&*arguments.args, [Expr::Generator(it)] if !it.parenthesized) {
            return None;
        }
        let closing = arguments.range.end().checked_sub(TextSize::from(1))?;
        let before =
            arguments.args.iter().map(Ranged::end).chain(arguments.keywords.iter().map(Ranged::end)).max();
        let Some(before) = before else { return Some(Edit::insert(closing, argument)) };
        let rest = self.text(TextRange::new(before, closing));
        if let Some(edit) = self.line_of_its_own(before, rest, argument) {
            return Some(edit);
        }
        let code: String = rest.lines().map(|it| it.split('#').next().unwrap_or("")).collect();
        let separator = match (code.trim_end().ends_with(','), rest.trim().is_empty() || code.trim() == ")") {
            (true, _) if rest.ends_with([' ', '\n', '\r']) => "",
            (true, _) => " ",
            // A comment stands behind the last argument; a comma behind that comment would be part of it.
            (false, false) if rest.contains('#') => return None,
            (false, _) => ", ",
        };
        // In a call whose closing parenthesis has a line of its own, the argument goes behind the last one.
        let at = if rest.trim_end().len() < rest.len() && !code.trim_end().ends_with(',') {
            before + TextSize::from(rest.trim_end().len() as u32)
        } else {
            closing
        };
        Some(Edit::insert(at, format!("{separator}{argument}")))
    }

    /// An argument behind the last one, which ends at `end`, where each argument has a line with a comma at its end.
    fn line_of_its_own(&self, end: TextSize, rest: &str, argument: &str) -> Option<Edit> {
        let comma = rest.find(',')?;
        let end_of_line = comma + rest.get(comma..)?.find(['\n', '\r'])?;
        if !rest.get(..comma)?.trim().is_empty() {
            return None;
        }
        let text = self.source.text();
        let line = text.get(..usize::from(end))?.rsplit(['\n', '\r']).next()?;
        let indentation: String = line.chars().take_while(|it| it.is_whitespace()).collect();
        let at = end + TextSize::from(end_of_line as u32);
        Some(Edit::insert(at, format!("{}{indentation}{argument},", self.end_of_line())))
    }

    /// Takes an argument with a name out of a call.
    pub(crate) fn delete_keyword(&self, call: &ast::ExprCall, name: &str) -> Option<Edit> {
        let keyword = call.arguments.find_keyword(name)?;
        let others = call
            .arguments
            .args
            .iter()
            .map(Ranged::range)
            .chain(call.arguments.keywords.iter().map(Ranged::range))
            .filter(|it| *it != keyword.range);
        let before = others.clone().filter(|it| it.end() <= keyword.start()).map(TextRange::end).max();
        let after = others.filter(|it| it.start() >= keyword.end()).map(TextRange::start).min();
        let range = match (before, after) {
            (Some(before), _) => {
                let gap = self.text(TextRange::new(before, keyword.start()));
                let comma = gap.rfind(',')?;
                if gap.contains('#') {
                    return None;
                }
                TextRange::new(before + TextSize::from(comma as u32), keyword.end())
            }
            (None, Some(after)) if !self.text(TextRange::new(keyword.end(), after)).contains('#') => {
                TextRange::new(keyword.start(), after)
            }
            (None, Some(_)) => return None,
            (None, None) => {
                let end = call.arguments.range.end().checked_sub(TextSize::from(1))?;
                let gap = self.text(TextRange::new(keyword.end(), end));
                let length = if gap.trim() == "," { gap.find(',')? + 1 } else { 0 };
                TextRange::new(keyword.start(), keyword.end() + TextSize::from(length as u32))
            }
        };
        Some(Edit::delete(range))
    }

    /// Moves an assignment in front of a loop, if nothing in it changes from round to round and the loop does not become empty.
    pub(crate) fn hoist(&self, statement: &'a Stmt, the_loop: LoopId) -> Option<Vec<Edit>> {
        let Stmt::Assign(assignment) = statement else { return None };
        let node = self.names.the_loop(the_loop).node;
        let (body, whole) = match node {
            LoopNode::For(it) => (&it.body, it.range),
            LoopNode::While(it) => (&it.body, it.range),
            LoopNode::Comprehension(_) => return None,
        };
        let is_in_body = body.iter().any(|it| std::ptr::eq(it, statement));
        let [Expr::Name(target)] = assignment.targets.as_slice() else { return None };
        if !is_in_body || body.len() < 2 || !self.is_alone_on_its_lines(statement) {
            return None;
        }
        let scope = self.scope(self.names.the_loop(the_loop).function);
        let varies = mentions(&assignment.value, &|it| match it {
            Expr::Name(name) => self.is_changed_in(the_loop, name.id.as_str()),
            Expr::Await(_) | Expr::Yield(_) | Expr::YieldFrom(_) | Expr::Named(_) => true,
            _ => false,
        });
        // Assigned elsewhere, too: then where it is assigned matters.
        let is_only = self.names.name(scope, target.id.as_str()).is_some_and(|it| it.definitions.len() == 1);
        if varies || !is_only {
            return None;
        }
        let line = self.source.text().get(..usize::from(whole.start()))?;
        let start = line.rfind(['\n', '\r']).map_or(0, |at| at + 1);
        let indentation = line.get(start..)?;
        if !indentation.chars().all(char::is_whitespace) {
            return None;
        }
        // With the comment behind it.
        let lines = self.whole_lines(statement);
        let code = self.text(TextRange::new(statement.start(), lines.end())).trim_end();
        let moved = format!("{indentation}{code}{}", self.end_of_line());
        Some(vec![Edit::insert(TextSize::from(start as u32), moved), Edit::delete(lines)])
    }

    /// Takes a statement away with its lines, unless its block would be empty without it.
    pub(crate) fn delete_statement(&self, statement: &'a Stmt, block: &'a [Stmt]) -> Option<Edit> {
        let is_only = block.len() < 2 || !block.iter().any(|it| std::ptr::eq(it, statement));
        (!is_only && self.is_alone_on_its_lines(statement)).then(|| Edit::delete(self.whole_lines(statement)))
    }

    /// The block of statements that a statement stands in.
    pub(crate) fn block_of(statement: &'a Stmt, within: &'a [Stmt]) -> Option<&'a [Stmt]> {
        if within.iter().any(|it| std::ptr::eq(it, statement)) {
            return Some(within);
        }
        let around = within.iter().find(|it| it.range().contains_range(statement.range()))?;
        blocks_of(around).into_iter().find_map(|it| Self::block_of(statement, it))
    }
}

/// The blocks of a compound statement.
pub(crate) fn blocks_of(statement: &Stmt) -> Vec<&[Stmt]> {
    match statement {
        Stmt::FunctionDef(it) => vec![&it.body],
        Stmt::ClassDef(it) => vec![&it.body],
        Stmt::For(it) => vec![&it.body, &it.orelse],
        Stmt::While(it) => vec![&it.body, &it.orelse],
        Stmt::If(it) => {
            let mut blocks: Vec<&[Stmt]> = vec![&it.body];
            blocks.extend(it.elif_else_clauses.iter().map(|it| it.body.as_slice()));
            blocks
        }
        Stmt::With(it) => vec![&it.body],
        Stmt::Try(it) => {
            let mut blocks: Vec<&[Stmt]> = vec![&it.body, &it.orelse, &it.finalbody];
            blocks.extend(it.handlers.iter().map(|it| {
                let ast::ExceptHandler::ExceptHandler(it) = it;
                it.body.as_slice()
            }));
            blocks
        }
        Stmt::Match(it) => it.cases.iter().map(|it| it.body.as_slice()).collect(),
        _ => Vec::new(),
    }
}
