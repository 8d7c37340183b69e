//! What the exit status says.

use std::process::ExitCode;

/// How the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// Nothing is wrong, or there is not enough to tell.
    Clean = 0,
    /// Something is wrong with the memory of the job.
    Trouble = 1,
    /// The tool could not do its work.
    Failure = 2,
}

impl ExitStatus {
    /// The number that the operating system is told.
    pub fn code(self) -> u8 {
        self as u8
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> Self {
        Self::from(status.code())
    }
}
