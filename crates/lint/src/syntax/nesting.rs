//! How deep a tree is: whoever walks or drops it recurses as deep, and a stack is finite.
//!
//! Ruff's parser grows its stack as it needs, but the trees that it makes are plain boxes within boxes. Python itself
//! refuses 200 brackets within each other, 100 blocks, and some thousand operators in a row.

use ruff_python_ast::{
    Expr, Pattern, PySourceType, Stmt,
    token::TokenKind,
    visitor::{Visitor, walk_expr, walk_interpolated_string_element, walk_pattern, walk_stmt},
};
use ruff_python_parser::{Parsed, lexer::lex};
use ruff_text_size::Ranged;

use super::{ModModule, TextRange, Token};
use crate::check::Problem;

/// The deepest tree that is looked at, in statements, expressions and patterns within each other.
pub(crate) const DEEPEST: u32 = 1_000;

/// As many tokens that could nest are parsed without a look at them first: what the parser then needs of stack, and
/// what it takes to drop the tree, is affordable.
const AFFORDABLE: u32 = 30_000;

/// What one level takes at most of the stack, in a build without optimization: the parser grows its stack in most of
/// its recursions, but not in all (the defaults of a `lambda`'s parameters), and dropping recurses as deep.
const STACK_PER_LEVEL: usize = 8 << 10;

/// Enough to walk a tree of [`DEEPEST`] levels with frames of 16 KiB.
const STACK_TO_WALK: usize = 16 << 20;

/// Runs `work`, which recurses over a tree, on a stack that suffices for every tree that [`guard`] lets pass.
pub(crate) fn with_deep_stack<T>(work: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(STACK_TO_WALK, STACK_TO_WALK, work)
}

/// Parses unless the tree would be, or is, too deep.
pub(super) fn guard(
    text: &str,
    source_type: PySourceType,
    parse: impl FnOnce() -> Parsed<ModModule>,
) -> Result<Parsed<ModModule>, Problem> {
    let mut most = most_tokens_that_nest(text);
    if most > AFFORDABLE {
        most = bound_of_text(text, source_type);
    }
    if most > AFFORDABLE {
        return Err(too_deep(None));
    }
    // Only reserved: pages that no frame touches cost nothing.
    let stack = (most as usize * STACK_PER_LEVEL).max(STACK_TO_WALK);
    let parsed = stacker::maybe_grow(stack, stack, parse);
    // Where the syntax is broken, the parser may see brackets otherwise than the bound does.
    if parsed.errors().is_empty() && bound_of(parsed.tokens().iter().map(Token::kind)) <= DEEPEST {
        return Ok(parsed);
    }
    match first_too_deep(&parsed) {
        None => Ok(parsed),
        Some(range) => {
            stacker::grow(stack, || drop(parsed));
            Err(too_deep(Some(range)))
        }
    }
}

fn too_deep(range: Option<TextRange>) -> Problem {
    Problem { range, message: format!("nested too deeply to be looked at: more than {DEEPEST} levels") }
}

/// How many tokens there can be that nest, judged by bytes alone: signs, and words, which blanks set apart.
fn most_tokens_that_nest(text: &str) -> u32 {
    let mut before = b' ';
    let mut count = 0_u32;
    for &byte in text.as_bytes() {
        count += u32::from(
            byte.is_ascii_punctuation() | (byte.is_ascii_whitespace() & !before.is_ascii_whitespace()),
        );
        before = byte;
    }
    count
}

fn bound_of_text(text: &str, source_type: PySourceType) -> u32 {
    use ruff_python_parser::AsMode as _;
    let mut lexer = lex(text, source_type.as_mode());
    bound_of(std::iter::from_fn(|| Some(lexer.next_token()).filter(|kind| *kind != TokenKind::EndOfFile)))
}

/// A bracket that is open.
#[derive(Default)]
struct Frame {
    closer: Option<TokenKind>,
    /// What could be nested since the last comma, or since the bracket opened.
    chain: u32,
    /// `lambda`s whose colon is still to come: their commas end nothing.
    lambdas: u32,
}

/// No tree of these tokens is deeper, if they are Python.
fn bound_of(tokens: impl Iterator<Item = TokenKind>) -> u32 {
    let mut frames = vec![Frame::default()];
    // The sum of all chains but the innermost, and blocks.
    let (mut outside, mut blocks, mut deepest) = (0_u32, 0_u32, 0_u32);
    for token in tokens {
        let depth = frames.len();
        let Some(frame) = frames.last_mut() else { break };
        let mut nests = false;
        match token {
            TokenKind::Comma if frame.lambdas == 0 => frame.chain = 0,
            TokenKind::Colon if frame.lambdas > 0 => frame.lambdas -= 1,
            TokenKind::Semi | TokenKind::Newline if depth == 1 => *frame = Frame::default(),
            TokenKind::Indent => blocks += 1,
            TokenKind::Dedent => blocks = blocks.saturating_sub(1),
            TokenKind::Name
            | TokenKind::Int
            | TokenKind::Float
            | TokenKind::Complex
            | TokenKind::String
            | TokenKind::FStringMiddle
            | TokenKind::TStringMiddle
            | TokenKind::IpyEscapeCommand
            | TokenKind::Comment
            | TokenKind::Comma
            | TokenKind::Semi
            | TokenKind::Newline
            | TokenKind::NonLogicalNewline
            | TokenKind::EndOfFile => {}
            _ if frame.closer == Some(token) => {
                frames.pop();
                outside -= frames.last().map_or(0, |it| it.chain);
            }
            _ => nests = true,
        }
        let Some(frame) = frames.last_mut() else { break };
        if nests {
            frame.chain += 1;
            frame.lambdas += u32::from(token == TokenKind::Lambda);
            deepest = deepest.max(outside + frame.chain + blocks);
            let closer = match token {
                TokenKind::Lpar => Some(TokenKind::Rpar),
                TokenKind::Lsqb => Some(TokenKind::Rsqb),
                TokenKind::Lbrace => Some(TokenKind::Rbrace),
                TokenKind::FStringStart => Some(TokenKind::FStringEnd),
                TokenKind::TStringStart => Some(TokenKind::TStringEnd),
                _ => None,
            };
            if closer.is_some() {
                // One for what the bracket belongs to, one for a tuple in it.
                frame.chain += 1;
                outside += frame.chain;
                frames.push(Frame { closer, ..Frame::default() });
            }
        }
    }
    // The statement, a tuple without brackets, and the names and numbers at the leaves.
    deepest + 3
}

/// The outermost place at which a tree is deeper than [`DEEPEST`]; descends no further than that.
fn first_too_deep(parsed: &Parsed<ModModule>) -> Option<TextRange> {
    let mut depth = Depth { now: 0, too_deep: None };
    with_deep_stack(|| depth.visit_body(parsed.suite()));
    depth.too_deep
}

struct Depth {
    now: u32,
    too_deep: Option<TextRange>,
}

impl Depth {
    fn within(&mut self, place: impl Ranged, walk: impl FnOnce(&mut Self)) {
        if self.now >= DEEPEST {
            self.too_deep.get_or_insert(place.range());
        }
        if self.too_deep.is_none() {
            self.now += 1;
            walk(self);
            self.now -= 1;
        }
    }
}

impl<'a> Visitor<'a> for Depth {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        self.within(stmt, |it| walk_stmt(it, stmt));
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        self.within(expr, |it| walk_expr(it, expr));
    }

    fn visit_pattern(&mut self, pattern: &'a Pattern) {
        self.within(pattern, |it| walk_pattern(it, pattern));
    }

    fn visit_interpolated_string_element(&mut self, element: &'a ruff_python_ast::InterpolatedStringElement) {
        self.within(element, |it| walk_interpolated_string_element(it, element));
    }
}

#[cfg(test)]
mod tests;
