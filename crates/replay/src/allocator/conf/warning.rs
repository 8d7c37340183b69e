//! What is worth saying of a text that the framework takes.

use std::fmt;
use std::ops::Range;

use super::key::Effect;
use super::problem::ConfError;
use crate::allocator::config::Release;

/// Something about settings that the framework would take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfWarning {
    /// Where in the text, in bytes; none where it is not about one place.
    pub span: Option<Range<usize>>,
    /// What is worth knowing.
    pub notice: Notice,
}

/// What is worth knowing about settings. `key` is the setting's name, `value` what was given, shortened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// The setting has its effect elsewhere.
    NoEffect {
        /// The setting.
        key: &'static str,
        /// Where.
        effect: Effect,
    },
    /// The release that made the recording does not know the setting.
    Newer {
        /// The setting.
        key: &'static str,
        /// The first release that does.
        since: Release,
    },
    /// A separator is wrong, and torch passes over it.
    PassedOver {
        /// The setting.
        key: &'static str,
        /// What should stand there.
        wanted: char,
        /// What stands there, shortened.
        found: String,
    },
    /// The text ends within a list, and torch passes over that.
    OpenList {
        /// The setting.
        key: &'static str,
    },
    /// Only the beginning of a value is read.
    ReadInPart {
        /// The setting.
        key: &'static str,
        /// What was given.
        value: String,
        /// What is read of it.
        used: String,
    },
    /// The limit is so large that there is none.
    NoLimit {
        /// The setting.
        key: &'static str,
        /// What was given.
        value: String,
    },
    /// Large requests fail in expandable segments: the driver maps whole 2 MiB only.
    Unmappable {
        /// The setting.
        key: &'static str,
        /// The size of a large segment in MiB.
        mib: u64,
    },
    /// The setting stands in the text before.
    Repeated {
        /// The setting.
        key: &'static str,
    },
    /// The file does not state the settings.
    Unrecorded,
    /// The recorded text cannot be read; the settings that the file states one by one are taken.
    Unreadable(ConfError),
    /// A setting was changed while the program ran.
    ChangedAtRunTime {
        /// The setting.
        key: &'static str,
        /// What is in force.
        in_force: String,
    },
}

impl fmt::Display for ConfWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.notice {
            Notice::NoEffect { key, effect } => {
                let why = match effect {
                    Effect::Locking => "it only changes when the allocator locks",
                    Effect::HostMemory => "it is about pinned host memory",
                    Effect::Captures => "it is about graph captures, which are taken as recorded",
                    Effect::Addresses => "it is about addresses, which cost no memory",
                };
                write!(f, "`{key}` has no effect on what is simulated: {why}")
            }
            Notice::Newer { key, since } => {
                write!(f, "`{key}` needs torch {since} or later, and an older release made the recording")
            }
            Notice::PassedOver { key, wanted, found } => write!(
                f,
                "`{found}` stands where `{wanted}` belongs (`{key}`): torch 2.10 and later take it all the same, older \
                 releases refuse it"
            ),
            Notice::OpenList { key } => write!(
                f,
                "the list of `{key}` has no end: torch 2.9 and earlier take it all the same, later releases refuse it"
            ),
            Notice::ReadInPart { key, value, used } => write!(f, "`{key}:{value}` is read as `{key}:{used}`"),
            Notice::NoLimit { key, value } => {
                write!(f, "`{key}:{value}` is no limit: it is read as a size that no block has")
            }
            Notice::Unmappable { key, mib } => write!(
                f,
                "`{key}:{mib}` is no multiple of 2: with `expandable_segments:True` every large request fails with an error \
                 of the driver; write `{key}:{}`",
                mib.saturating_add(1)
            ),
            Notice::Repeated { key } => write!(f, "`{key}` is given more than once; what comes later counts"),
            Notice::Unrecorded => f.write_str(
                "the file does not state the allocator's settings (torch 2.3 and later do); the defaults are taken",
            ),
            Notice::Unreadable(error) => {
                write!(f, "the recorded settings cannot be read ({error}); those are taken that the file states singly")
            }
            Notice::ChangedAtRunTime { key, in_force } => write!(
                f,
                "`{key}` was changed while the program ran: `{in_force}` is in force, not what the recorded text says; \
                 changes of settings that a file does not state singly cannot be seen"
            ),
        }
    }
}
