//! What to do about memory that the allocator cannot use or cannot get: all advice about it is put together here, what changes
//! least first.

use vramscope_model::EventIdx;
use vramscope_replay::{Place, Rescue, Stranding};

use crate::Context;
use crate::names::{count, place};
use crate::recommendation::Reason;
use crate::settings_in_words::what_to_set;
use crate::shortfall::{EmptyCache, Shortfall, holders_at};
use crate::tried::TriedSettings;

/// What a graph that is kept looks like from its blocks.
pub const KEPT_GRAPH: &str = "blocks of many operations below this line are kept, as the graph of a backward pass that is never freed: \
     `.detach()` or `.item()` what you keep of the result, or run it under `torch.no_grad()`";
/// Where to look for what keeps memory.
pub(crate) const WHAT_KEEPS: &str =
    "look for what keeps the result of this line: a list, a dict, an attribute, or a graph held by a loss";
/// Where to look for a cycle.
pub(crate) const WHAT_CYCLE: &str = "look for an object that refers to itself: an exception kept in a variable, a hook or callback bound to `self`, a \
     closure; break the cycle or use `weakref`";

/// Advice that is of use only as long as nobody knows which object holds the memory.
pub const WITHOUT_HOLDER: [&str; 3] = [KEPT_GRAPH, WHAT_KEEPS, WHAT_CYCLE];

/// What to do about fragmentation.
pub(crate) fn against_fragmentation(
    cx: &Context<'_>,
    stranding: &Stranding,
    tried: Option<&TriedSettings>,
) -> Vec<String> {
    let mut advice = Vec::new();
    let is_known = tried.is_some_and(|tried| tried.judgement.reason != Reason::Unreliable);
    let is_expandable = cx.recording.settings.as_ref().is_some_and(|s| s.expandable_segments);
    if !is_known && !is_expandable {
        advice.push(
            "try `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`: segments that grow in place leave fewer holes"
                .to_owned(),
        );
    }
    let whole = if cx.is_whole() { "" } else { " (in the whole recording)" };
    advice.extend(tried.and_then(what_to_set).map(|what| what + whole));
    // Pins matter where they are a tenth of what is free in vain.
    let pinned = stranding.alone + stranding.shared;
    if let Some(pin) = stranding.places.first()
        && pinned * 10.0 >= stranding.stranded + stranding.releasable
    {
        advice.push(format!(
            "let what {} keeps not lie between what passes: allocate it before the loop, or copy it to the CPU",
            place(cx.symbols, pin.place)
        ));
    }
    advice.push(
        "pad inputs to a few sizes, or run the largest size first, so that later ones fit into what is free"
            .to_owned(),
    );
    advice.extend(see_all(tried));
    advice
}

/// What to do about a request that failed.
pub(crate) fn against_shortfall(
    cx: &Context<'_>,
    found: &Shortfall,
    tried: Option<&TriedSettings>,
) -> Vec<String> {
    let mut advice: Vec<String> = tried.and_then(what_to_set).into_iter().collect();
    if let EmptyCache::Enough(bytes) = found.empty_cache {
        advice
            .push(format!("call `torch.cuda.empty_cache()` before it: {bytes} would go back to the driver"));
    }
    let largest = found.holders.first().map(|largest| largest.place);
    advice.push(hold_less(cx, largest, found.least_at_largest));
    advice
}

/// What to do about a request that would fail with less memory. `found` explains it, if all was as recorded until then.
pub(crate) fn against_lack(
    cx: &Context<'_>,
    event: EventIdx,
    found: Option<&Shortfall>,
    tried: Option<&TriedSettings>,
) -> Vec<String> {
    let mut advice: Vec<String> = tried.and_then(what_to_set).into_iter().collect();
    if let Some(found) = found {
        let largest = found.holders.first().map(|largest| largest.place);
        advice.push(hold_less(cx, largest, found.least_at_largest));
    } else if let Some(largest) = holders_at(cx, event).first() {
        advice.push(format!("look at {}, which holds most then", place(cx.symbols, largest.place)));
    }
    advice
}

/// Where to hold less, if it is known by how much.
pub(crate) fn hold_less(cx: &Context<'_>, largest: Option<Place>, enough: Option<Rescue>) -> String {
    match (largest, enough) {
        (Some(largest), Some(Rescue { bytes, blocks, .. })) => format!(
            "look at {}, which holds most: {bytes} less there ({}) would have been enough",
            place(cx.symbols, largest),
            count(blocks, "block")
        ),
        _ => "see what was held at the peak; this line is where memory ran out, not where it went".to_owned(),
    }
}

/// Where the settings that were tried are compared, if one of them helps.
fn see_all(tried: Option<&TriedSettings>) -> Option<String> {
    let tried = tried.filter(|tried| tried.recommended().is_some())?;
    Some(format!("see all {} that were tried: `vramscope whatif`", count(tried.count(), "setting")))
}
