//! What can be wrong with the settings' text.

use std::fmt;
use std::ops::Range;

use super::key::{self, Key};

/// Why the framework would refuse to start with a text of settings, or why it cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at byte {}: {problem}", .span.start)]
pub struct ConfError {
    /// Where in the text, in bytes; behind its end where something is missing.
    pub span: Range<usize>,
    /// What is wrong there.
    pub problem: Problem,
}

/// What is wrong with the settings' text. `key` is the setting's name, `value` what was given, shortened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// No release knows the setting.
    #[error("`{word}` is no setting of the allocator")]
    UnknownKey {
        /// The word in its place, shortened.
        word: String,
        /// What to do instead.
        hint: String,
    },
    /// Only a release long ago knew the setting.
    #[error("`{key}` is no setting of the allocator any more: only torch 1.13 knew it")]
    Removed {
        /// The setting.
        key: &'static str,
    },
    /// The text ends, or the list, where a value should stand.
    #[error("`{key}` has no value")]
    NoValue {
        /// The setting.
        key: &'static str,
        /// A right value.
        example: &'static str,
    },
    /// Another separator, or a word, stands where one separator must stand.
    #[error("`{wanted}` must stand {place} of `{key}`, not `{found}`")]
    Separator {
        /// The setting.
        key: &'static str,
        /// Where the separator belongs.
        place: Place,
        /// The separator.
        wanted: char,
        /// What stands there, shortened.
        found: String,
    },
    /// The text ends within a list.
    #[error("the list of `{key}` has no end")]
    OpenList {
        /// The setting.
        key: &'static str,
    },
    /// The value is no number.
    #[error("`{key}` takes numbers, not `{value}`")]
    NotANumber {
        /// The setting.
        key: &'static str,
        /// What was given.
        value: String,
        /// A right value.
        example: &'static str,
    },
    /// The number does not fit its type.
    #[error("`{value}` is out of range for `{key}`")]
    OutOfRange {
        /// The setting.
        key: &'static str,
        /// What was given.
        value: String,
        /// A right value.
        example: &'static str,
    },
    /// The number breaks the setting's rule.
    #[error("`{key}` must be {rule}, not {value}")]
    NotAllowed {
        /// The setting.
        key: &'static str,
        /// What it must be.
        rule: String,
        /// What was given.
        value: String,
        /// What to do instead.
        hint: String,
    },
    /// The value is neither `True` nor `False`.
    #[error("`{key}` must be `True` or `False`, not `{value}`")]
    NotABool {
        /// The setting.
        key: &'static str,
        /// What was given.
        value: String,
        /// What was meant, if that can be told.
        meant: Option<bool>,
    },
    /// There is no such backend.
    #[error("there is no allocator backend `{value}`")]
    UnknownBackend {
        /// What was given.
        value: String,
    },
    /// The driver manages the memory, and a recording says nothing of how.
    #[error(
        "`backend:{value}` cannot be simulated: memory is the driver's then, of which a recording says nothing"
    )]
    DriversBackend {
        /// What was given.
        value: String,
    },
}

/// Where a separator belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Behind a setting's name.
    Name,
    /// At the beginning of a list.
    Opening,
    /// Within a list.
    List,
    /// Behind a setting's value.
    Value,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Name => "behind the name",
            Self::Opening => "before the list",
            Self::List => "in the list",
            Self::Value => "behind the value",
        })
    }
}

impl ConfError {
    /// What to do next.
    pub fn hint(&self) -> String {
        match &self.problem {
            Problem::UnknownKey { hint, .. } | Problem::NotAllowed { hint, .. } => hint.clone(),
            Problem::Removed { .. } => "leave it out; to round up to a size only, write a list such as \
                                        `roundup_power2_divisions:[32:4,64:1,>:1]`"
                .into(),
            Problem::NoValue { key, example }
            | Problem::NotANumber { key, example, .. }
            | Problem::OutOfRange { key, example, .. } => format!("write it as in `{key}:{example}`"),
            Problem::Separator { .. } => "settings are written as `name:value,name:value`, and lists as \
                                          `name:[size:divisions,size:divisions]`"
                .into(),
            Problem::OpenList { .. } => "end the list with `]`".into(),
            Problem::NotABool { key, meant: Some(true), .. } => format!("write `{key}:True`"),
            Problem::NotABool { key, meant: Some(false), .. } => format!("write `{key}:False`"),
            Problem::NotABool { key, meant: None, .. } => format!("write `{key}:True` or `{key}:False`"),
            Problem::UnknownBackend { .. } => "leave `backend` out, or write `backend:native`".into(),
            Problem::DriversBackend { .. } => {
                "leave `backend` out to simulate PyTorch's own allocator; what the \
                                               driver makes of this program can only be measured"
                    .into()
            }
        }
    }

    pub(super) fn new(span: Range<usize>, problem: Problem) -> Self {
        Self { span, problem }
    }

    pub(super) fn unknown(span: Range<usize>, word: &str) -> Self {
        if word == key::REMOVED {
            return Self::new(span, Problem::Removed { key: key::REMOVED });
        }
        Self::new(span, Problem::UnknownKey { word: shortened(word), hint: instead_of(word) })
    }
}

/// What to write instead of a word that is no setting.
fn instead_of(word: &str) -> String {
    if let Some((name, value)) = word.split_once('=') {
        if name.ends_with("ALLOC_CONF") {
            return "give only what stands behind the `=`".into();
        }
        if let Some(Key { name, example, .. }) = key::near(name) {
            let value = if value.is_empty() { (*example).into() } else { shortened(value) };
            return format!("write `{name}:{value}`");
        }
    }
    if matches!(word, "," | ":" | "[" | "]") {
        return "take it out: settings are written as `name:value,name:value`".into();
    }
    if let Some(near) = key::near(word) {
        return format!("did you mean `{}`?", near.name);
    }
    let names: Vec<&str> = key::names().collect();
    format!("settings are written as `name:value,name:value`; there are {}", names.join(", "))
}

/// As much of a word as is shown.
pub(super) fn shortened(word: &str) -> String {
    const MOST: usize = 40;
    let mut shown: String = word.chars().take(MOST).flat_map(char::escape_debug).collect();
    if word.chars().nth(MOST).is_some() {
        shown.push('…');
    }
    shown
}
