//! Which requests a segment serves, and the sizes in which the allocator obtains memory.
//!
//! Source: the allocator reference, §1 (constants), §3 (segment sizes), §6.1 (pages).

use vramscope_model::{Event, PoolId, PoolKind, Settings, StreamId};

use crate::allocator::config::{Config, MIN_LARGE, Rules, SMALL_MAX, SMALL_SEGMENT, segment_size};

/// Which requests a segment serves: those for one pool, of one kind, on one stream. A free block never serves others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Domain {
    /// The pool: the default one, or a private one (a graph's, a `MemPool`).
    pub pool: PoolId,
    /// For small or for large blocks.
    pub kind: PoolKind,
    /// The stream.
    pub stream: StreamId,
}

/// The sizes in which the allocator obtains memory from the driver, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Portions {
    /// For large requests below 10 MiB; also the page of large expandable segments.
    pub large_segment: u64,
    /// Whether segments are expandable.
    pub expandable: bool,
}

impl Portions {
    /// Those of a recording's settings.
    pub fn of(settings: Option<&Settings>) -> Self {
        let (config, _) = Config::of_recording(settings, &Rules::newest());
        Self {
            large_segment: config.large_segment,
            expandable: settings.is_some_and(|s| s.expandable_segments),
        }
    }

    /// The kind of pool that serves a request, given its rounded size.
    pub fn kind_of(rounded: u64) -> PoolKind {
        if rounded <= SMALL_MAX { PoolKind::Small } else { PoolKind::Large }
    }

    /// What is obtained from the driver for a request that finds no free block, given its rounded size.
    pub fn obtained_for(self, rounded: u64) -> u64 {
        segment_size(rounded, self.large_segment).unwrap_or(rounded)
    }

    /// The bytes in which an expandable segment of that kind grows and shrinks.
    pub fn page(self, kind: PoolKind) -> u64 {
        match kind {
            PoolKind::Small => SMALL_SEGMENT,
            PoolKind::Large => self.large_segment,
        }
    }
}

/// What an event that obtains or gives back memory tells of it by itself: memory for small blocks comes in portions of
/// 2 MiB (several can go back at once), that for large ones in portions of more than 10 MiB.
pub(crate) fn domain_of(event: &Event) -> Domain {
    let kind = if event.size.0 < MIN_LARGE { PoolKind::Small } else { PoolKind::Large };
    Domain { pool: event.pool, kind, stream: event.stream }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_comes_in_portions() {
        let check = |conf: &str, mib: &[(u64, u64)]| {
            let settings = Settings { conf: conf.to_owned(), ..Settings::default() };
            let portions = Portions::of(Some(&settings));
            for &(bytes, want) in mib {
                assert_eq!(portions.obtained_for(bytes), want << 20, "{bytes} under `{conf}`");
            }
        };
        let mib = 1 << 20;
        check("", &[(512, 2), (mib, 2), (mib + 512, 20), (10 * mib - 512, 20), (10 * mib, 10)]);
        check("", &[(10 * mib + 512, 12), (11 * mib, 12), (70 * mib, 70)]);
        check("expandable_segments:True, large_segment_size_mb: 64", &[(2 * mib, 64), (11 * mib, 12)]);
        check("large_segment_size_mb:4", &[(2 * mib, 20)]);
        assert_eq!(Portions::of(None).obtained_for(u64::MAX), u64::MAX);
    }
}
