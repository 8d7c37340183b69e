//! Who holds the memory, as `vramscope holders` shows it and as findings name it.
//!
//! The answer itself is made by `heap` and is plain data already, so it is shown as it is.

pub use vramscope_model::Bytes;

pub use vramscope_heap::{
    AlsoHeldBy, Class, Classes, HeldBlock, Holder, Holders, Link, OTHER_HOLDERS, Status, Through, holder_of,
};

/// Who held the memory of a process at one moment, as a file tells.
#[derive(Clone, Debug, Default)]
pub struct HoldersFile {
    /// The path as given; empty where it was not read from a file.
    pub path: String,
    /// The rank of the process, if known.
    pub rank: Option<u32>,
    /// When it was, µs since 1970 UTC.
    pub time_us: Option<i64>,
    /// The step of the program that it came after, if the recorder counted.
    pub step: Option<Step>,
    /// The devices whose memory it is; none for that of the CPU.
    pub devices: Vec<u32>,
    /// The answer.
    pub holders: Holders,
}

/// A step, as the recorder counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its number, from 1.
    pub number: u64,
    /// What ends a step: `optimizer`. Numbers of different sources cannot be compared.
    pub source: String,
}

/// Who holds the memory of a finding.
#[derive(Clone, Debug)]
pub struct FoundHolder {
    /// Who.
    pub holder: Holder,
    /// The file that tells.
    pub file: String,
    /// How it was found.
    pub joined: Joined,
}

/// How the holder of a finding was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joined {
    /// By the addresses and sizes of blocks.
    ByAddress {
        /// How many of the finding's blocks were found in the file.
        found: u64,
        /// How many of those this one holds.
        held: u64,
    },
    /// By the sizes of blocks alone: none was looked at while it was there.
    BySize,
    /// It is what the finding is about.
    ByPath,
}
