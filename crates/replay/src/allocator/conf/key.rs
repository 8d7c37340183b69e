//! The settings that the framework knows.

use crate::allocator::config::Release;

/// A setting.
#[derive(Debug)]
pub(super) struct Key {
    /// Its name.
    pub name: &'static str,
    /// The first release that knows it.
    pub since: Release,
    /// What it sets.
    pub sets: Sets,
    /// A value that is right for it, for hints.
    pub example: &'static str,
}

/// What a setting sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sets {
    Backend,
    MaxSplitSize,
    MaxNonSplitRounding,
    GarbageCollectionThreshold,
    RoundupDivisions,
    ExpandableSegments,
    LargeSegment,
    PerProcessMemoryFraction,
    ThrowOnCudamallocOom,
    /// Something else than what device memory there is.
    Other(Shape, Effect),
}

/// What the value of a setting looks like that is checked and not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// `True` or `False`.
    Bool,
    /// A power of two up to 128.
    Threads,
    /// A number.
    Number,
    /// A number above 0.
    Positive,
    /// A share or a number of GiB; the framework takes anything and passes over what it does not understand.
    Reserve,
    /// A list of names with such values.
    ReserveByClass,
}

/// Where a setting has its effect that has none on device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The allocator's lock.
    Locking,
    /// Pinned host memory.
    HostMemory,
    /// Graph captures, which are taken as recorded.
    Captures,
    /// The addresses of expandable segments, which cost no memory.
    Addresses,
}

const fn key(name: &'static str, since: Release, sets: Sets, example: &'static str) -> Key {
    Key { name, since, sets, example }
}

const fn other(name: &'static str, since: Release, shape: Shape, effect: Effect) -> Key {
    let example = match shape {
        Shape::Bool => "True",
        Shape::Threads => "8",
        Shape::Number | Shape::Positive => "64",
        Shape::Reserve => "0.5",
        Shape::ReserveByClass => "[name:0.5]",
    };
    key(name, since, Sets::Other(shape, effect), example)
}

/// Source: the allocator reference, §2.3; the releases are those whose published libraries know the name.
const KEYS: [Key; 22] = [
    key("expandable_segments", Release(2, 1), Sets::ExpandableSegments, "True"),
    key("max_split_size_mb", Release(1, 12), Sets::MaxSplitSize, "128"),
    key("garbage_collection_threshold", Release(1, 12), Sets::GarbageCollectionThreshold, "0.8"),
    key("roundup_power2_divisions", Release(1, 12), Sets::RoundupDivisions, "4"),
    key("max_non_split_rounding_mb", Release(2, 6), Sets::MaxNonSplitRounding, "32"),
    key("large_segment_size_mb", Release(2, 11), Sets::LargeSegment, "40"),
    key("per_process_memory_fraction", Release(2, 10), Sets::PerProcessMemoryFraction, "0.9"),
    key("throw_on_cudamalloc_oom", Release(2, 12), Sets::ThrowOnCudamallocOom, "True"),
    key("backend", Release(2, 0), Sets::Backend, "native"),
    other("release_lock_on_cudamalloc", Release(2, 2), Shape::Bool, Effect::Locking),
    other("release_lock_on_hipmalloc", Release(2, 2), Shape::Bool, Effect::Locking),
    other("graph_capture_record_stream_reuse", Release(2, 9), Shape::Bool, Effect::Captures),
    other("expandable_segments_reserve", Release(2, 15), Shape::Reserve, Effect::Addresses),
    other("expandable_segments_reserve_by_class", Release(2, 15), Shape::ReserveByClass, Effect::Addresses),
    other("pinned_use_cuda_host_register", Release(2, 2), Shape::Bool, Effect::HostMemory),
    other("pinned_use_hip_host_register", Release(2, 2), Shape::Bool, Effect::HostMemory),
    other("pinned_num_register_threads", Release(2, 2), Shape::Threads, Effect::HostMemory),
    other("pinned_use_background_threads", Release(2, 6), Shape::Bool, Effect::HostMemory),
    other("pinned_reserve_segment_size_mb", Release(2, 10), Shape::Positive, Effect::HostMemory),
    other("pinned_free_catch_all", Release(2, 12), Shape::Bool, Effect::HostMemory),
    other("pinned_max_round_threshold_mb", Release(2, 13), Shape::Number, Effect::HostMemory),
    other("pinned_max_cached_size_mb", Release(2, 13), Shape::Number, Effect::HostMemory),
];

/// The setting of torch 1.13 that no later release knows.
pub(super) const REMOVED: &str = "roundup_bypass_threshold_mb";

/// The setting of that name.
pub(super) fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// The settings that change what device memory there is, for hints.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    KEYS.iter().filter(|key| !matches!(key.sets, Sets::Other(..) | Sets::Backend)).map(|key| key.name)
}

/// The setting that a word was meant to be, if one looks much like it.
pub(super) fn near(word: &str) -> Option<&'static Key> {
    // Nothing that long is a name, and comparing takes time by length.
    const LONGEST: usize = 64;
    let word: String = word.chars().take(LONGEST + 1).collect();
    let word =
        word.trim_matches(['\'', '"', '`', ' ', '\t', '\r', '\n']).to_ascii_lowercase().replace('-', "_");
    if word.len() < 4 || word.len() > LONGEST {
        return None;
    }
    let part = |key: &&Key| key.name.contains(&word) || word.contains(key.name);
    // One letter in three may be wrong.
    let alike = |key: &&Key| edits(&word, key.name) * 3 <= key.name.len();
    find(&word)
        .or_else(|| KEYS.iter().find(part))
        .or_else(|| KEYS.iter().filter(alike).min_by_key(|key| edits(&word, key.name)))
}

/// How many letters must be put in, taken out or changed to make one word of another.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        if let Some(first) = row.first_mut() {
            *first = left;
        }
        for (cell, &to) in row.iter_mut().skip(1).zip(&b) {
            let change = diagonal + usize::from(from != to);
            diagonal = *cell;
            left = change.min(left + 1).min(*cell + 1);
            *cell = left;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        for (a, b, want) in
            [("", "", 0), ("", "abc", 3), ("abc", "", 3), ("abc", "abd", 1), ("kitten", "sitting", 3)]
        {
            assert_eq!(edits(a, b), want, "{a} to {b}");
        }
    }

    fn check(word: &str, want: Option<&str>) {
        assert_eq!(near(word).map(|key| key.name), want, "{word}");
    }

    #[test]
    fn near_misses_are_recognised() {
        check("expandable_segment", Some("expandable_segments"));
        check("expandable", Some("expandable_segments"));
        check("Expandable_Segments", Some("expandable_segments"));
        check("'expandable_segments", Some("expandable_segments"));
        check("max_split_size", Some("max_split_size_mb"));
        check("max-split-size-mb", Some("max_split_size_mb"));
        check("max_split_size_mb128", Some("max_split_size_mb"));
        check("max_split_mb", Some("max_split_size_mb"));
        check("garbage_collect_threshold", Some("garbage_collection_threshold"));
        check("roundup_power2_division", Some("roundup_power2_divisions"));
        check("roundup_powers2_divisions", Some("roundup_power2_divisions"));
        check("large_segment_size", Some("large_segment_size_mb"));
        check("memory_fraction", Some("per_process_memory_fraction"));
        check("foo", None);
        check("True", None);
        check("größe", None);
        check(&"ß".repeat(1000), None);
    }

    #[test]
    fn each_name_is_there_once() {
        for key in &KEYS {
            assert_eq!(KEYS.iter().filter(|k| k.name == key.name).count(), 1, "{}", key.name);
        }
    }
}
