//! Python source → the patterns in it that keep GPU memory, and the edits that remove them.
//!
//! Sources come as text; nothing here opens a file. [`check`] looks at all files of a project together.

mod apply;
mod calling;
mod check;
mod context;
mod diagnostic;
mod facts;
mod fix;
mod fixing;
mod flow;
mod keeping;
mod modules;
mod names;
mod project;
mod rule;
mod rules;
mod scopes;
mod source;
mod suppress;
mod syntax;

pub use check::{Checked, Problem, Selection, check};
pub use diagnostic::{Diagnostic, Evidence, Severity};
pub use fix::{Applicability, Edit, Fix, Span};
pub use fixing::{Applied, Fixed, fix, fix_found};
pub use rule::{Framework, Rule, find_rule, rules};
pub use scopes::{MODULE, Scope, Scopes};
pub use source::{Location, Source, SourceKind, Unreadable};
pub use suppress::{rules_named_at, suppression};
pub use syntax::{Ranged, TextRange, TextSize};
