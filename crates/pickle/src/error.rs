//! Why a pickle could not be read on.

/// What is wrong with the bytes, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} (byte {offset})")]
pub struct Error {
    /// Offset in bytes from the start of the pickle of the opcode that could not be carried out.
    pub offset: u64,
    /// What is wrong with it.
    pub kind: ErrorKind,
}

/// The ways in which a pickle can be damaged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A byte that no pickle protocol defines as an opcode.
    #[error("0x{0:02x} is not a pickle opcode")]
    UnknownOpcode(u8),
    /// A protocol newer than 5.
    #[error("pickle protocol {0} is newer than 5")]
    UnknownProtocol(u8),
    /// A declared length beyond what is accepted for one value.
    #[error("a value declares a length of {declared} bytes, more than the {limit} accepted")]
    TooLong {
        /// The length in the file.
        declared: u64,
        /// The most that is accepted.
        limit: u64,
    },
    /// An opcode that needs more operands than there are.
    #[error("the opcode needs a value that is not there")]
    StackUnderflow,
    /// An opcode that closes a container that was never opened.
    #[error("the opcode needs a mark that is not there")]
    NoMark,
    /// A dict with a key but no value.
    #[error("a dict has a key without a value")]
    OddItems,
    /// A reference to a memo slot that was never filled.
    #[error("memo slot {0} was never filled")]
    EmptyMemo(u64),
    /// A number in the text protocol that does not parse.
    #[error("a number is not written as one")]
    BadNumber,
    /// More values than the machine accepts or can number.
    #[error("the file holds more values than are accepted")]
    TooMany,
}
