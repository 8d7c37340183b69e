//! Explanations of detectors in the user's words.

use vramscope_detect as detect;
use vramscope_detect::recommendation::Reason;
use vramscope_model::{Bytes, PoolId, PoolKind, StackId, Symbols};
use vramscope_replay as replay;

use super::sites::BEFORE;
use crate::analysis::SiteBytes;
use crate::explained::{
    CapacityCheck, Enough, FailedFit, Fragmentation, Limit, Pin, Pins, PoolFree, SettingsTried, Shortfall,
};
use crate::place;
use crate::whatif::ReasonKind;

/// Why a request failed, for showing.
pub(super) fn shortfall(from: &detect::Shortfall, symbols: &Symbols) -> Shortfall {
    let (empty_cache, empty_cache_helps) = match from.empty_cache {
        detect::EmptyCache::NothingLeft => (0, false),
        detect::EmptyCache::NotEnough(bytes) => (bytes.0, false),
        detect::EmptyCache::Enough(bytes) => (bytes.0, true),
    };
    let sites = from.holders.iter().map(|h| SiteBytes {
        site: h.place.site().map(|s| place::location(symbols, s)),
        label: label(symbols, h.place, h.stack),
        bytes: h.bytes.0,
        blocks: h.blocks,
    });
    let pins = &from.pins;
    Shortfall {
        event: u64::from(from.event.0),
        request: from.request.0,
        needed: from.needed.0,
        allocated: from.allocated.0,
        pending: from.pending.0,
        reserved: from.reserved.0,
        device_free: from.device_free.0,
        limit: Limit {
            is_fraction: from.limit.by_fraction,
            at_least: Some(from.limit.at_least).filter(|&bytes| bytes > 0 || !from.limit.by_fraction),
            at_most: from.limit.least_refused().saturating_sub(1),
        },
        missing: from.missing.0,
        pool: pool(symbols, from.domain, &from.here),
        pools: from.pools.iter().map(|(domain, free)| pool(symbols, *domain, free)).collect(),
        sites: sites.collect(),
        other_places: from.others.places,
        other_bytes: from.others.bytes.0,
        pins: Pins {
            stranded: pins.stranded.0,
            alone: pins.alone.0,
            shared: pins.shared.0,
            dense: pins.dense.0,
            passing: pins.passing.0,
            places: pins
                .places
                .iter()
                .map(|p| Pin {
                    site: p.place.site().map(|s| place::location(symbols, s)),
                    label: label(symbols, p.place, p.stack),
                    alone: p.alone.0,
                    shared: p.shared.0,
                    segments: Some(p.segments),
                    blocks: p.blocks,
                    survivors: p.survivors,
                })
                .collect(),
        },
        returned: from.returned.0,
        empty_cache,
        empty_cache_helps,
        enough: from.least.as_ref().map(enough),
        enough_at_largest: from.least_at_largest.as_ref().map(enough),
        at_least: from.at_least.0,
        no_setting_helps: from.no_setting_helps,
    }
}

/// What other settings would have done, for showing.
pub(super) fn settings_tried(from: &detect::TriedSettings) -> SettingsTried {
    let recommended = from.recommended();
    SettingsTried {
        recommended: recommended.map(|trial| trial.conf.clone()),
        peak_reserved: recommended.map(|trial| trial.outcome.peak_reserved),
        own_peak_reserved: from.own_peak(),
        limit: from.limit(),
        tried: from.count(),
        rescued: from.rescued(),
        exact: from.is_exact,
        reason_kind: match from.judgement.reason {
            Reason::Lower { .. } => ReasonKind::Lower,
            Reason::Fits { .. } => ReasonKind::Fits,
            Reason::LiveMemory { .. } => ReasonKind::LiveMemory,
            Reason::TooMuchAtOnce { .. } => ReasonKind::TooMuchAtOnce,
            Reason::NoneFits { .. } => ReasonKind::NoneFits,
            Reason::NoGain { .. } => ReasonKind::NoGain,
            Reason::Unreliable => ReasonKind::Unreliable,
        },
        reason: from.in_words(),
    }
}

/// Whether the run fits, for showing.
pub(super) fn capacity_check(capacity: u64, recorded_peak: u64, fit: &detect::Fit) -> CapacityCheck {
    let check = CapacityCheck {
        capacity,
        told: detect::given(Bytes(capacity)),
        fits: None,
        recorded_peak,
        peak_reserved: None,
        give_backs: 0,
        event: None,
    };
    match *fit {
        detect::Fit::Fits => CapacityCheck { fits: Some(true), peak_reserved: Some(recorded_peak), ..check },
        detect::Fit::FitsTightly { give_backs, reserved, .. } => {
            CapacityCheck { fits: Some(true), peak_reserved: Some(reserved.0), give_backs, ..check }
        }
        detect::Fit::RunsOut(ref oom) => {
            CapacityCheck { fits: Some(false), event: Some(oom.event.0.into()), ..check }
        }
        detect::Fit::HeldMore(event) => {
            CapacityCheck { fits: Some(false), event: event.map(|event| event.0.into()), ..check }
        }
        detect::Fit::GetsFurther(_) | detect::Fit::Unknown => check,
    }
}

fn label(symbols: &Symbols, place: replay::Place, stack: StackId) -> String {
    if place == replay::Place::Older { BEFORE.to_owned() } else { place::label(symbols, stack) }
}

fn enough(rescue: &replay::Rescue) -> Enough {
    Enough { bytes: rescue.bytes.0, blocks: rescue.blocks, leaves_gap: rescue.leaves_gap }
}

fn pool(symbols: &Symbols, domain: replay::Domain, free: &replay::Free) -> PoolFree {
    PoolFree {
        kind: match domain.kind {
            PoolKind::Small => "small",
            PoolKind::Large => "large",
        }
        .to_owned(),
        stream: symbols.stream_handle(domain.stream),
        private_pool: (domain.pool != PoolId::DEFAULT).then(|| symbols.pool_name(domain.pool)),
        segments: free.segments,
        reserved: free.reserved.0,
        allocated: free.held.0,
        pending: free.pending.0,
        releasable: free.releasable.0,
        stranded: free.stranded.0,
        largest_free: free.largest.0,
    }
}

/// Fragmentation in figures, for showing.
pub(super) fn fragmentation(from: &detect::Fragmentation, symbols: &Symbols) -> Fragmentation {
    let stranding = &from.stranding;
    let average = |sum: f64| stranding.average(sum).0;
    let by_seconds = |sum: f64| stranding.has_times.then_some(sum);
    let places: Vec<Pin> = stranding
        .places
        .iter()
        .map(|p| Pin {
            site: p.place.site().map(|s| place::location(symbols, s)),
            label: label(symbols, p.place, p.stack),
            alone: average(p.alone),
            shared: average(p.shared),
            segments: None,
            blocks: p.blocks,
            survivors: p.survivors,
        })
        .collect();
    // Rounded parts must add up, so their sums are of rounded parts, too.
    let alone: u64 = places.iter().map(|p| p.alone).fold(0, u64::saturating_add);
    let (shared, dense, passing) =
        (average(stranding.shared), average(stranding.dense), average(stranding.passing));
    let stranded = [alone, shared, dense, passing].into_iter().fold(0, u64::saturating_add);
    Fragmentation {
        failed_fits: stranding.fits.len() as u64,
        failed_fits_late: from.late,
        failed_fits_over_time: from.fits_over_time.clone(),
        obtained: from.obtained.0,
        example: from.example.map(|fit| FailedFit {
            event: u64::from(fit.event.0),
            request: fit.request.0,
            obtained: fit.obtained.0,
            free: fit.free.0,
            largest_free: fit.largest.map(|bytes| bytes.0),
        }),
        seconds: by_seconds(stranding.duration),
        releasable: average(stranding.releasable),
        releasable_byte_seconds: by_seconds(stranding.releasable),
        pins: Pins { stranded, alone, shared, dense, passing, places },
        stranded_byte_seconds: by_seconds(stranding.stranded),
    }
}
