//! The allocator's settings as it works with them, and the rules that differ between releases.

pub(crate) const MIB: u64 = 1 << 20;

/// How many sizes have a number of divisions of their own: the powers of two from 1 MiB to 32 GiB.
pub const N_DIVISIONS: usize = 16;

/// The settings of one run of the allocator.
///
/// Source: the allocator reference, §2.3.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Blocks of this many bytes or more are never split; none for no such limit.
    pub max_split_size: Option<u64>,
    /// How much larger than the request a block may be that is handed out whole because of `max_split_size`.
    pub max_non_split_rounding: u64,
    /// The share of the limit above which unused segments are given back; 0 for never.
    pub garbage_collection_threshold: f64,
    /// Into how many parts the span from a power of two to the next is divided for rounding, from 1 MiB on; 0 for
    /// rounding to 512 bytes.
    pub roundup_divisions: [u64; N_DIVISIONS],
    /// Whether segments grow in place.
    pub expandable_segments: bool,
    /// What is obtained for requests above 1 MiB and below 10 MiB, and the page of large expandable segments.
    pub large_segment: u64,
    /// The share of the device's memory that the process may have, as the settings state it; 1 for all.
    pub per_process_memory_fraction: f64,
    /// Whether a request above that share fails at once.
    pub throw_on_cudamalloc_oom: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_split_size: None,
            max_non_split_rounding: 20 * MIB,
            garbage_collection_threshold: 0.0,
            roundup_divisions: [0; N_DIVISIONS],
            expandable_segments: false,
            large_segment: 20 * MIB,
            per_process_memory_fraction: 1.0,
            throw_on_cudamalloc_oom: false,
        }
    }
}

/// Which equally large free block is taken first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tie {
    /// The one at the lowest address (before torch 2.13).
    Address,
    /// The one in the segment that was obtained first (torch 2.13 and later).
    Registration,
}

/// What differs between releases of torch, as data.
///
/// Source: the allocator reference, §17.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Which equally large free block is taken first.
    pub tie: Tie,
    /// Which parser reads the settings' text.
    pub parser: Parser,
    /// Whether a memory fraction of 1 is a limit, too.
    pub whole_fraction_is_limit: bool,
}

/// The two parsers of the settings' text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Parser {
    /// Up to torch 2.8: `>` in a list overwrites the last explicit entry, `max_split_size_mb` must be above 20.
    Until28,
    /// From torch 2.9 on: `>` fills the entries behind the last explicit one, `max_split_size_mb` may be 20.
    Since29,
}

impl Config {
    pub fn round(&self, request: u64) -> Option<u64> {
        const MIN: u64 = 512;
        if request < MIN {
            return Some(MIN);
        }
        let d = self.roundup_divisions[(request.ilog2().saturating_sub(20).min(15)) as usize];
        if d > 1 && request > MIN.saturating_mul(d) {
            let power = 1u64 << request.ilog2();
            if power == request {
                return Some(request);
            }
            let step = power / d;
            if step == 0 {
                return power.checked_mul(2);
            }
            return request.checked_next_multiple_of(step);
        }
        request.checked_next_multiple_of(MIN)
    }
    pub fn segment_size(&self, rounded: u64) -> Option<u64> {
        if rounded <= MIB {
            Some(2 * MIB)
        } else if rounded < 10 * MIB {
            Some(self.large_segment)
        } else {
            rounded.checked_next_multiple_of(2 * MIB)
        }
    }
}
