//! Small questions about expressions.

use super::{
    TextSize,
    ast::{self, Expr, Stmt},
    visitor::{self, Visitor},
};

/// The beginning of every file.
pub(crate) const ZERO: TextSize = TextSize::new(0);

/// Whether two expressions name the same variable, attribute or item, as far as their text tells.
pub(crate) fn is_same_place(a: &Expr, b: &Expr) -> bool {
    match (a, b) {
        (Expr::Name(a), Expr::Name(b)) => a.id == b.id,
        (Expr::Attribute(a), Expr::Attribute(b)) => {
            a.attr.id == b.attr.id && is_same_place(&a.value, &b.value)
        }
        (Expr::Subscript(a), Expr::Subscript(b)) => {
            is_same_place(&a.value, &b.value)
                && ast::comparable::ComparableExpr::from(&*a.slice)
                    == ast::comparable::ComparableExpr::from(&*b.slice)
        }
        _ => false,
    }
}

/// Whether `expr` or a part of it is like that; functions within are part of it.
pub(crate) fn mentions(expr: &Expr, is_meant: &dyn Fn(&Expr) -> bool) -> bool {
    let mut search = Search { is_meant, found: false };
    search.visit_expr(expr);
    search.found
}

/// Whether an expression of a statement, or of the statements in it, is like that.
pub(crate) fn statement_mentions(statement: &Stmt, is_meant: &dyn Fn(&Expr) -> bool) -> bool {
    let mut search = Search { is_meant, found: false };
    search.visit_stmt(statement);
    search.found
}

struct Search<'f> {
    is_meant: &'f dyn Fn(&Expr) -> bool,
    found: bool,
}

impl<'a> Visitor<'a> for Search<'_> {
    fn visit_expr(&mut self, expr: &'a Expr) {
        if self.found || (self.is_meant)(expr) {
            self.found = true;
        } else {
            visitor::walk_expr(self, expr);
        }
    }
}

/// Whether an expression is named like a parameter or its gradient: `x.weight`, `x.bias`, `x.grad`.
pub(crate) fn is_parameter(expr: &Expr) -> bool {
    matches!(expr, Expr::Attribute(it) if matches!(it.attr.as_str(), "weight" | "bias" | "grad"))
}

/// The number that a literal is, a sign in front of it included.
pub(crate) fn int_literal(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::NumberLiteral(it) => match &it.value {
            ast::Number::Int(int) => int.as_i64(),
            _ => None,
        },
        Expr::UnaryOp(it) if it.op == ast::UnaryOp::USub => int_literal(&it.operand).map(i64::wrapping_neg),
        _ => None,
    }
}

/// The text that a literal is.
pub(crate) fn text_literal(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::StringLiteral(it) => Some(it.value.to_str()),
        _ => None,
    }
}

/// The truth that a literal is.
pub(crate) fn bool_literal(expr: &Expr) -> Option<bool> {
    match expr {
        Expr::BooleanLiteral(it) => Some(it.value),
        _ => None,
    }
}
