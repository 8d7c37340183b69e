//! From words and separators to settings and their values.

use std::ops::Range;

use super::key::{self, Key, Sets, Shape};
use super::problem::{ConfError, Place, Problem, shortened};
use super::token::{Token, tokens};
use super::warning::{ConfWarning, Notice};
use crate::allocator::config::Parser;

/// A setting with its value.
#[derive(Debug)]
pub(super) struct Item {
    pub key: &'static Key,
    pub name: Token,
    pub value: Value,
}

#[derive(Debug)]
pub(super) enum Value {
    One(Token),
    List(Vec<(Token, Token)>),
}

/// What of a text can be told apart into settings.
pub(super) struct Structure {
    /// The settings in order, up to the first mistake in how the text is built.
    pub settings: Vec<Item>,
    /// That mistake.
    pub error: Option<ConfError>,
    pub warnings: Vec<ConfWarning>,
}

/// Takes a text apart.
///
/// The newer parser of the framework steps over one word wherever a separator must stand, whatever word that is; the
/// older one insists on the separator, but not on the end of a list.
///
/// Source: the allocator reference, §2.2.
pub(super) fn structure(text: &str, parser: Parser) -> Structure {
    let mut reader = Reader {
        tokens: tokens(text, parser).into_iter().peekable(),
        end: text.len(),
        parser,
        warnings: Vec::new(),
        passed_over: None,
    };
    let mut settings = Vec::new();
    let error = loop {
        match reader.item() {
            Ok(Some(item)) => settings.push(item),
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    Structure { settings, error, warnings: reader.warnings }
}

struct Reader {
    tokens: std::iter::Peekable<std::vec::IntoIter<Token>>,
    /// The length of the text.
    end: usize,
    parser: Parser,
    warnings: Vec<ConfWarning>,
    /// What is wrong with the separator before the next setting, where it is passed over.
    passed_over: Option<ConfError>,
}

impl Reader {
    fn item(&mut self) -> Result<Option<Item>, ConfError> {
        let Some(name) = self.tokens.next() else { return Ok(None) };
        // What follows a wrong separator is mostly no name of a setting, and not what is wrong.
        let passed_over = self.passed_over.take();
        let Some(key) = key::find(&name.text) else {
            return Err(passed_over.unwrap_or_else(|| ConfError::unknown(name.span, &name.text)));
        };
        self.separator(key, ':', Place::Name)?;
        let first = self.value(key)?;
        let value = match key.sets {
            Sets::RoundupDivisions if first.text == "[" => Value::List(self.list(key)?),
            Sets::Other(Shape::ReserveByClass, _) => {
                self.check(key, '[', Place::Opening, &first)?;
                Value::List(self.list(key)?)
            }
            _ => Value::One(first),
        };
        if self.tokens.peek().is_some() {
            self.separator(key, ',', Place::Value)?;
        }
        Ok(Some(Item { key, name, value }))
    }

    fn list(&mut self, key: &'static Key) -> Result<Vec<(Token, Token)>, ConfError> {
        let mut entries = Vec::new();
        loop {
            let Some(name) = self.tokens.next() else {
                if self.parser == Parser::Since210 {
                    return Err(self.open_list(key));
                }
                self.warnings.push(ConfWarning {
                    span: Some(self.behind()),
                    notice: Notice::OpenList { key: key.name },
                });
                return Ok(entries);
            };
            if name.text == "]" {
                return Ok(entries);
            }
            self.separator(key, ':', Place::List)?;
            let value = self.value(key)?;
            entries.push((name, value));
            match self.tokens.peek() {
                None => return Err(self.open_list(key)),
                Some(end) if end.text == "]" => {}
                Some(_) => self.separator(key, ',', Place::List)?,
            }
        }
    }

    fn value(&mut self, key: &'static Key) -> Result<Token, ConfError> {
        self.tokens.next().ok_or_else(|| self.no_value(key))
    }

    /// Steps over a separator.
    fn separator(&mut self, key: &'static Key, wanted: char, place: Place) -> Result<(), ConfError> {
        let token = self.tokens.next().ok_or_else(|| self.no_value(key))?;
        self.check(key, wanted, place, &token)
    }

    fn check(
        &mut self,
        key: &'static Key,
        wanted: char,
        place: Place,
        token: &Token,
    ) -> Result<(), ConfError> {
        if token.text.chars().eq([wanted]) {
            return Ok(());
        }
        let strict = match place {
            _ if self.parser == Parser::Until29 => true,
            Place::Name | Place::Value => false,
            // The newer framework reads a text twice, and the other reading ends the list here.
            Place::List if token.text == "]" => true,
            // It looks for the brackets and the commas of this list, not for its colons.
            Place::List | Place::Opening => {
                matches!(key.sets, Sets::Other(Shape::ReserveByClass, _)) && wanted != ':'
            }
        };
        let (key, found) = (key.name, shortened(&token.text));
        let error = ConfError::new(
            token.span.clone(),
            Problem::Separator { key, place, wanted, found: found.clone() },
        );
        if strict {
            return Err(error);
        }
        if place == Place::Value {
            self.passed_over = Some(error);
        }
        let notice = Notice::PassedOver { key, wanted, found };
        self.warnings.push(ConfWarning { span: Some(token.span.clone()), notice });
        Ok(())
    }

    fn no_value(&self, key: &'static Key) -> ConfError {
        ConfError::new(self.behind(), Problem::NoValue { key: key.name, example: key.example })
    }

    fn open_list(&self, key: &'static Key) -> ConfError {
        ConfError::new(self.behind(), Problem::OpenList { key: key.name })
    }

    fn behind(&self) -> Range<usize> {
        self.end..self.end
    }
}
