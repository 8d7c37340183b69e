//! What to do about memory that the allocator cannot use or cannot get: all advice about it is put together here.

use vramscope_model::Symbols;
use vramscope_replay::Rescue;

use crate::Context;
use crate::fragmentation::Fragmentation;
use crate::names::{count, place};
use crate::shortfall::{EmptyCache, Shortfall};

/// What to do about fragmentation, most useful first.
pub(crate) fn against_fragmentation(cx: &Context<'_>, found: &Fragmentation) -> Vec<String> {
    let mut advice = Vec::new();
    if !cx.recording.settings.as_ref().is_some_and(|s| s.expandable_segments) {
        advice.push(
            "try `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`: segments that grow in place leave fewer holes"
                .to_owned(),
        );
    }
    // Pins matter where they are a tenth of what is free in vain.
    let stranding = &found.stranding;
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
    advice
}

/// What to do about a request that failed, most useful first.
pub(crate) fn against_shortfall(symbols: &Symbols, found: &Shortfall) -> Vec<String> {
    let mut advice = Vec::new();
    if let EmptyCache::Enough(bytes) = found.empty_cache {
        advice
            .push(format!("call `torch.cuda.empty_cache()` before it: {bytes} would go back to the driver"));
    }
    match (found.holders.first(), found.least_at_largest) {
        (Some(largest), Some(Rescue { bytes, blocks, .. })) => advice.push(format!(
            "look at {}, which holds most: {bytes} less there ({}) would have been enough",
            place(symbols, largest.place),
            count(blocks, "block")
        )),
        _ => advice.push(
            "see what was held at the peak; this line is where memory ran out, not where it went".to_owned(),
        ),
    }
    advice
}
