//! Why memory went back to the driver: because the program called `empty_cache()`, or because it had to.
//!
//! Neither leaves an event of its own. What has to be given back is given back right before a request obtains new memory, from
//! the same place in the program, and only if the process would otherwise have exceeded what it may have: more than it ever had.
//!
//! Source: the allocator reference, §14.4.

use vramscope_model::EventIdx;

/// All free memory going back at one go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Burst {
    /// The first event of it.
    pub(super) event: EventIdx,
    /// What would have been reserved without it, if it came right before a request that obtained memory or failed, from the same
    /// place.
    pub(super) without: Option<u64>,
}

/// Bursts sorted out.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Reasons {
    /// Those that are calls of `empty_cache()`, by their first events.
    pub(super) calls: Vec<EventIdx>,
    /// The least that the process could not have, as those tell that are none.
    pub(super) refused: Option<u64>,
    /// Whether there is only one, which could be either.
    pub(super) in_doubt: bool,
}

/// A single burst that could be either is taken for a call.
const FEWEST: usize = 2;

/// Sorts out bursts of a process that had at most `peak` bytes. `was_short`: requests failed. `collects`: the settings have garbage
/// collected, which may give back all that is free right before a request.
pub(super) fn reasons(bursts: &[Burst], peak: u64, was_short: bool, collects: bool) -> Reasons {
    let forced = |burst: &&Burst| burst.without.is_some_and(|without| without > peak || collects);
    let n_forced = bursts.iter().filter(forced).count();
    // Where some are calls for sure, the program calls it, and those in question likely are of the same kind.
    let all_forced = n_forced == bursts.len() && n_forced >= FEWEST;
    if !all_forced && !was_short && !collects {
        let calls = bursts.iter().map(|burst| burst.event).collect();
        return Reasons { calls, refused: None, in_doubt: n_forced == 1 && bursts.len() == 1 };
    }
    let (forced, calls): (Vec<&Burst>, Vec<&Burst>) = bursts.iter().partition(forced);
    Reasons {
        calls: calls.into_iter().map(|burst| burst.event).collect(),
        // Garbage is collected below the limit.
        refused: forced.into_iter().filter_map(|burst| burst.without).filter(|&without| without > peak).min(),
        in_doubt: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(without: &[Option<u64>], peak: u64, was_short: bool, calls: &[u32], refused: Option<u64>) {
        let in_doubt = !was_short && matches!(without, [Some(only)] if *only > peak);
        let bursts: Vec<Burst> =
            (0..).zip(without).map(|(i, &without)| Burst { event: EventIdx(i), without }).collect();
        let calls = calls.iter().map(|&i| EventIdx(i)).collect();
        assert_eq!(reasons(&bursts, peak, was_short, false), Reasons { calls, refused, in_doubt });
    }

    #[test]
    fn memory_is_given_back_because_it_must_only_where_more_was_needed_than_there_ever_was() {
        // Both right before requests that would have exceeded the peak.
        check(&[Some(120), Some(110)], 100, false, &[], Some(110));
        // One of them would not have: the program calls it.
        check(&[Some(120), Some(90)], 100, false, &[0, 1], None);
        // Not before a request at all.
        check(&[Some(120), None], 100, false, &[0, 1], None);
        // One alone could be either.
        check(&[Some(120)], 100, false, &[0], None);
        // But not where requests failed for want of memory.
        check(&[Some(120), Some(90), None], 100, true, &[1, 2], Some(120));
        check(&[], 100, true, &[], None);
    }

    #[test]
    fn where_garbage_is_collected_it_goes_right_before_requests() {
        let burst = |event, without| Burst { event: EventIdx(event), without };
        let found = reasons(&[burst(1, Some(90)), burst(2, None), burst(3, Some(120))], 100, false, true);
        let calls = vec![EventIdx(2)];
        assert_eq!(found, Reasons { calls, refused: Some(120), in_doubt: false });
    }
}
