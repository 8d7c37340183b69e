//! Which release of torch wrote a file, as far as the file tells.

use vramscope_model::{Features, Settings};

use super::rules::Release;

/// The oldest release that writes what the file holds.
///
/// Source: the schema by version in the snapshot format reference, §1.8.
pub(super) fn oldest(features: &Features, settings: Option<&Settings>) -> Release {
    let stated = |name| states(settings, name);
    [
        (features.internal_metadata, Release(2, 15)),
        (features.host, Release(2, 14)),
        (stated("max_round_threshold"), Release(2, 13)),
        (features.pool_id, Release(2, 12)),
        (features.user_metadata, Release(2, 10)),
        (stated("graph_capture_record_stream_reuse"), Release(2, 9)),
        (features.compile_context, Release(2, 8)),
        (features.annotations, Release(2, 5)),
        (features.settings, Release(2, 3)),
        (features.time, Release(2, 2)),
        (features.block_address, Release(2, 1)),
        (features.requested_size, Release(2, 0)),
        (features.stream || features.block_history, Release(1, 13)),
    ]
    .into_iter()
    .find_map(|(seen, release)| seen.then_some(release))
    .unwrap_or(Release(1, 12))
}

/// The first release after `oldest` that would have written something that the file lacks; none if it lacks nothing.
///
/// What an older release would have written tells nothing then: someone else wrote the file, and left it out.
pub(super) fn first_without(
    oldest: Release,
    features: &Features,
    settings: Option<&Settings>,
) -> Option<Release> {
    // Without a time there may be no event, and then nothing can be told by what events lack.
    let events = features.time;
    let settings = settings.filter(|s| !s.all.is_empty());
    let lacks = |name| settings.is_some() && !states(settings, name);
    [
        (features.bare_list && !features.stream, Release(1, 13)),
        // Histories ended when blocks got addresses.
        (features.block_history || (features.bare_list && !features.block_address), Release(2, 1)),
        (!features.bare_list && !features.settings, Release(2, 3)),
        (!features.bare_list && !features.annotations, Release(2, 5)),
        (events && !features.compile_context, Release(2, 8)),
        (lacks("graph_capture_record_stream_reuse"), Release(2, 9)),
        (events && !features.user_metadata, Release(2, 10)),
        (events && !features.pool_id, Release(2, 12)),
        (lacks("max_round_threshold"), Release(2, 13)),
    ]
    .into_iter()
    .find_map(|(lacking, release)| (lacking && oldest < release).then_some(release))
}

/// Whether the file states a setting of that name.
fn states(settings: Option<&Settings>, name: &str) -> bool {
    settings.is_some_and(|s| s.all.iter().any(|(stated, _)| stated == name))
}
