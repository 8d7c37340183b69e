//! What a rule may look at.

/// Everything that is known about one file.
pub(crate) struct Context<'a> {
    pub(crate) source: &'a crate::source::Source,
}
