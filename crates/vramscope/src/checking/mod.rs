//! What surrounds the linter: which files and rules, by flags and by the project's settings; files that are written back.

pub(crate) mod fixing;
pub(crate) mod joining;
pub(crate) mod patterns;
pub(crate) mod python_files;
pub(crate) mod reading;
pub(crate) mod rewriting;
pub(crate) mod selection;
pub(crate) mod settings;
mod source_age;
