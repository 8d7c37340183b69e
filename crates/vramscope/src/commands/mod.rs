//! One file a command.

pub(crate) mod analyze;
pub(crate) mod check;
pub(crate) mod diff;
pub(crate) mod fix;
pub(crate) mod holders;
pub(crate) mod inspect;
pub(crate) mod lsp;
pub(crate) mod rule;
pub(crate) mod run;
pub(crate) mod whatif;
