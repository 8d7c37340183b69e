//! The allocator's settings as it works with them.

mod rules;
mod text;
mod writer;

pub use rules::{Cut, Parser, Release, Rules, Tie};

use vramscope_model::Divisions;

pub(crate) const MIB: u64 = 1 << 20;

/// Blocks up to this size come from the small pool.
pub(crate) const SMALL_MAX: u64 = MIB;
/// What is obtained for the small pool, and the page of its expandable segments.
pub(crate) const SMALL_SEGMENT: u64 = 2 * MIB;
/// Blocks from this size on have a segment of their own, if a new one is needed.
pub(crate) const MIN_LARGE: u64 = 10 * MIB;
/// What the sizes of such segments are multiples of.
pub(crate) const ROUND_LARGE: u64 = 2 * MIB;

/// The settings of one run of the allocator.
///
/// Source: the allocator reference, §2.3.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Blocks of this many bytes or more are never split; none for no such limit.
    pub max_split_size: Option<u64>,
    /// How much larger than the request a block may be that is handed out whole because of `max_split_size`, in bytes.
    pub max_non_split_rounding: u64,
    /// The share of the limit above which unused segments are given back; 0 for never.
    pub garbage_collection_threshold: f64,
    /// Into how many parts the span from a power of two to the next is divided for rounding.
    pub roundup_divisions: Divisions,
    /// Whether segments grow in place.
    pub expandable_segments: bool,
    /// What is obtained for requests above 1 MiB and below 10 MiB, and the page of large expandable segments, in bytes.
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
            roundup_divisions: Divisions::default(),
            expandable_segments: false,
            large_segment: 20 * MIB,
            per_process_memory_fraction: 1.0,
            throw_on_cudamalloc_oom: false,
        }
    }
}

impl Config {
    /// The size of the block that serves a request, before the decision whether to split, in bytes; none where 64 bits
    /// do not hold it.
    ///
    /// Source: the allocator reference, §3.
    pub fn round(&self, request: u64) -> Option<u64> {
        self.roundup_divisions.round(request)
    }

    /// What is obtained from the driver for a block of that size, in bytes; none where 64 bits do not hold it.
    ///
    /// Source: the allocator reference, §3, A(n).
    pub fn segment_size(&self, block: u64) -> Option<u64> {
        segment_size(block, self.large_segment)
    }
}

/// The same where only `large_segment` is known of the settings.
pub(crate) fn segment_size(block: u64, large_segment: u64) -> Option<u64> {
    if block <= SMALL_MAX {
        Some(SMALL_SEGMENT)
    } else if block < MIN_LARGE {
        Some(large_segment)
    } else {
        block.checked_next_multiple_of(ROUND_LARGE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_rounded_by_the_settings() {
        let parsed = |conf| Config::parse(conf, &Rules::newest()).map(|(config, _)| config);
        let check = |conf, request: u64, want: u64| {
            let rounded = parsed(conf).map(|config| config.round(request));
            assert_eq!(rounded, Ok(Some(want)), "{request} under {conf:?}");
        };
        check("", 84 * MIB, 84 * MIB);
        check("roundup_power2_divisions:4", 84 * MIB, 96 * MIB);
        let list = "roundup_power2_divisions:[64:8,128:2,256:2,512:2,1024:1,>:1]";
        check(list, 84 * MIB, 88 * MIB);
        check(list, 400 * MIB, 512 * MIB);
    }

    #[test]
    fn segments_have_the_sizes_of_the_reference() {
        let check = |large: u64, block: u64, want: Option<u64>| {
            let config = Config { large_segment: large, ..Config::default() };
            assert_eq!(config.segment_size(block), want, "{block}");
        };
        check(20 * MIB, 512, Some(2 * MIB));
        check(20 * MIB, MIB, Some(2 * MIB));
        check(20 * MIB, MIB + 512, Some(20 * MIB));
        check(20 * MIB, 10 * MIB - 512, Some(20 * MIB));
        check(20 * MIB, 10 * MIB, Some(10 * MIB));
        check(20 * MIB, 11 * MIB, Some(12 * MIB));
        check(64 * MIB, 2 * MIB, Some(64 * MIB));
        check(64 * MIB, 11 * MIB, Some(12 * MIB));
        check(20 * MIB, u64::MAX, None);
    }
}
