//! Failed fits: moments when new memory was obtained although enough was free for the same requests, in pieces too small.
//!
//! Source: the allocator reference, §4 (pools by size and stream; a request is served by the smallest free block that is
//! large enough, else by a new segment), §6.2 (an expandable segment may be mapped in several goes for one request).

use vramscope_model::{Action, Bytes, DeviceRecording, EventIdx, Events};

use crate::domain::Domain;
use crate::layout::Layout;
use crate::lifetimes::Lifetimes;

/// A moment when a request did not fit into what was free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedFit {
    /// The event that obtained new memory.
    pub event: EventIdx,
    /// The event of the request.
    pub alloc: EventIdx,
    /// Which pool, kind and stream it was for.
    pub domain: Domain,
    /// What was asked for, rounded.
    pub request: Bytes,
    /// What was obtained for it.
    pub obtained: Bytes,
    /// What was free there.
    pub free: Bytes,
    /// The part of that which lay in whole segments (or pages of expandable ones).
    pub releasable: Bytes,
    /// The largest piece of it; not looked for where there are very many fits and blocks.
    pub largest: Option<Bytes>,
}

/// A request follows what was obtained for it within this many events: only more memory for it can come between.
const LOOK_AHEAD: usize = 64;

/// The allocation that memory was obtained for: the next one that lies in it, in part at least.
pub(crate) fn request_behind(events: &Events, obtained: usize) -> Option<usize> {
    let (actions, addrs, sizes) = (events.actions(), events.addrs(), events.sizes());
    let (start, end) = (addrs[obtained], addrs[obtained].saturating_add(sizes[obtained]));
    let last = events.len().min(obtained.saturating_add(LOOK_AHEAD));
    (obtained + 1..last).take_while(|&j| actions[j] != Action::Oom).find(|&j| {
        actions[j] == Action::Alloc && addrs[j] < end && addrs[j].saturating_add(sizes[j].max(1)) > start
    })
}

/// So many blocks are looked at for the largest pieces; more would take longer than they are worth.
const MOST_BLOCKS: usize = 50_000_000;

/// Looks for the largest piece of what was free at each fit, and leaves out what is none: a request that a free block would
/// have served was for another pool, a private one, which is not recorded before torch 2.12. (Where blocks of some size are
/// kept for large requests (`keeps_large`), those serve no others, so nothing follows from them.)
pub(crate) fn with_largest(
    device: &DeviceRecording,
    lifetimes: &Lifetimes,
    mut fits: Vec<FailedFit>,
    keeps_large: bool,
) -> Vec<FailedFit> {
    let moments: Vec<EventIdx> = fits.iter().map(|f| f.event).collect();
    let mut next = fits.iter_mut();
    let mut seen = 0;
    Layout::visit(device, lifetimes, &moments, |_, layout| {
        let Some(fit) = next.next() else { return };
        seen += layout.blocks().len() + layout.stretches().len();
        if seen <= MOST_BLOCKS {
            let there = layout.stretches().filter(|s| s.domain == fit.domain);
            let sizes = there.flat_map(|s| layout.gaps_in(s).map(|g| g.size()));
            fit.largest = Some(Bytes(sizes.max().unwrap_or(0)));
        }
    });
    fits.retain(|f| keeps_large || f.largest.is_none_or(|largest| largest < f.request));
    fits
}
