//! An error with what to do about it.

use std::fmt;

/// What went wrong, and a hint. Both are shown to the user.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    hint: String,
}

impl Failure {
    /// An error with a hint, ready to be returned.
    pub(crate) fn error(message: impl Into<String>, hint: impl Into<String>) -> anyhow::Error {
        anyhow::Error::new(Self { message: message.into(), hint: hint.into() })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// The hint of an error, wherever in its chain.
pub(crate) fn hint(error: &anyhow::Error) -> Option<&str> {
    error.chain().find_map(|cause| {
        let own = cause.downcast_ref::<Failure>().map(|failure| failure.hint.as_str());
        own.or_else(|| {
            cause.downcast_ref::<vramscope_formats::Error>().and_then(vramscope_formats::Error::hint)
        })
    })
}
