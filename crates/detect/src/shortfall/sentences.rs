//! What explains a failed request, in sentences.

use vramscope_model::{Bytes, Symbols};

use super::{Holder, Shortfall};
use crate::names::{apart, count, domain, list, place};

/// How many places a sentence names.
const NAMED: usize = 3;

/// What was free, where, and in how large pieces.
pub(crate) fn what_was_free(symbols: &Symbols, found: &Shortfall) -> String {
    let all = vramscope_replay::total(found.pools.iter().map(|(_, free)| free));
    let here = domain(symbols, found.domain);
    match (found.here.free(), all.free()) {
        (_, Bytes::ZERO) => "nothing was free inside the allocator".to_owned(),
        (Bytes::ZERO, all) => format!("{all} were free inside the allocator, but none of it for {here}"),
        (free, total) => {
            let others = if total > free {
                format!(", and {} for other requests", total - free)
            } else {
                String::new()
            };
            let stranded = if all.stranded == total { "all".to_owned() } else { all.stranded.to_string() };
            format!(
                "{free} were free for {here}, at most {} in one piece{others}; {stranded} of it stranded in segments partly in use",
                found.here.largest
            )
        }
    }
}

/// Who held most, if anyone held anything.
pub(crate) fn who_held(symbols: &Symbols, holders: &[Holder]) -> Option<String> {
    let named: Vec<String> = holders
        .iter()
        .take(NAMED)
        .map(|h| format!("{} ({} in {})", place(symbols, h.place), h.bytes, count(h.blocks, "block")))
        .collect();
    (!named.is_empty()).then(|| format!("most was held by {}", list(&named)))
}

/// The places that keep segments which are mostly free, if any do.
pub(crate) fn who_pins(symbols: &Symbols, found: &Shortfall) -> Option<String> {
    let pins = &found.pins;
    let pinned = pins.alone + pins.shared;
    // What would not even make a twentieth of what was missing is not worth a word.
    if pinned == Bytes::ZERO || pinned.0.saturating_mul(20) < found.missing.0 {
        return None;
    }
    let named: Vec<String> = pins
        .places
        .iter()
        .take(NAMED)
        .map(|pin| {
            format!(
                "{} ({} in {}, {})",
                place(symbols, pin.place),
                count(pin.blocks, "block"),
                count(pin.segments, "segment"),
                pin.alone + pin.shared
            )
        })
        .collect();
    Some(format!("{pinned} lay free in segments that a few blocks keep: those of {}", list(&named)))
}

/// How few bytes less would have been enough.
pub(crate) fn how_much_less(found: &Shortfall) -> String {
    match found.least {
        Some(least) => format!(
            "{} less would have been enough: {} would have {}",
            least.bytes,
            count(least.blocks, "block"),
            if least.leaves_gap { "left a large enough gap" } else { "let enough go back to the driver" }
        ),
        None => format!(
            "even all that is held, given back before, need not have been enough: the request alone needs {}",
            found.needed
        ),
    }
}

/// Whether any setting could have let it pass: with all gaps closed and nothing rounded up.
pub(crate) fn what_settings_can_do(found: &Shortfall) -> String {
    let together = "what is held and the request come to";
    let (at_least, below) = (Bytes(found.limit.at_least), Bytes(found.limit.below));
    match (found.no_setting_helps, found.limit.by_fraction) {
        (true, false) => {
            let (needed, limit) = apart(found.at_least, at_least);
            format!("no allocator setting helps: {together} {needed}, and the process can have {limit}")
        }
        (true, true) => {
            let (needed, limit) = apart(found.at_least, below);
            format!("no allocator setting helps: {together} {needed}, and the limit is less than {limit}")
        }
        (false, false) => {
            let (needed, limit) = apart(found.at_least, at_least);
            format!("without gaps it would have fit: {together} {needed}, and the process can have {limit}")
        }
        (false, true) if found.at_least <= at_least => {
            let (needed, limit) = apart(found.at_least, at_least);
            format!("without gaps it would have fit: {together} {needed}, and {limit} were reserved before")
        }
        (false, true) => {
            let saved = (found.reserved + found.needed) - found.at_least;
            format!(
                "allocator settings could save {saved} at most, what lies in gaps and rounding; more than that is live memory"
            )
        }
    }
}
