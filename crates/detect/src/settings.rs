//! Which of the allocator's settings are worth trying on a recording.
//!
//! A setting is left out where it cannot change anything: it equals another one, no request is large enough for it, or
//! what it depends on is not known.

use vramscope_replay::allocator::conf::{ConfWarning, Notice};
use vramscope_replay::allocator::config::{Config, Rules};

/// A setting to try.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The text to set it with; empty for the defaults.
    pub conf: String,
    /// What it means.
    pub config: Config,
    /// What is odd about the text, one sentence each.
    pub warnings: Vec<String>,
}

/// What decides which settings are worth trying.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// The most bytes that the program asked for at once.
    pub largest_request: u64,
    /// Whether what the process may reserve is limited: unused segments are collected only then.
    pub is_limited: bool,
}

const MIB: u64 = 1 << 20;
/// Segments of this many MiB and more are kept whole.
const SPLIT_LIMITS: [u64; 5] = [32, 64, 128, 256, 512];
/// Into how many parts the span to the next power of two is divided.
const DIVISIONS: [u64; 3] = [4, 8, 16];
/// Shares of the limit above which unused segments are given back.
const COLLECT_ABOVE: [&str; 2] = ["0.6", "0.8"];

/// What the tried settings vary. All else that the recording's settings say is kept: leaving it out would change more
/// than what is compared.
const VARIED: [&str; 6] = [
    "expandable_segments",
    "garbage_collection_threshold",
    "large_segment_size_mb",
    "max_non_split_rounding_mb",
    "max_split_size_mb",
    "roundup_power2_divisions",
];

/// The settings that are worth trying beside the recording's own, simplest first.
pub fn sweep(own_conf: &str, own: &Config, rules: &Rules, demand: Demand) -> Vec<Candidate> {
    let kept: Vec<&str> = parts(own_conf).filter(|part| !VARIED.contains(&key(part))).collect();
    let n_kept = kept.join(",").len();
    let mut found: Vec<Candidate> = Vec::new();
    for text in texts(demand) {
        let parts: Vec<&str> =
            kept.iter().copied().chain([text.as_str()]).filter(|part| !part.is_empty()).collect();
        let conf = parts.join(",");
        // What the release refuses or does not know cannot be set.
        let Ok((config, warnings)) = Config::parse(&conf, rules) else { continue };
        let is_newer = |warning: &ConfWarning| matches!(warning.notice, Notice::Newer { .. });
        if warnings.iter().any(is_newer) || config == *own || found.iter().any(|other| other.config == config)
        {
            continue;
        }
        // What is odd about the settings that are kept is said of the recording's own.
        let kept = |warning: &ConfWarning| warning.span.as_ref().is_some_and(|span| span.start < n_kept);
        let warnings = warnings.iter().filter(|w| !kept(w)).map(ToString::to_string).collect();
        found.push(Candidate { conf, config, warnings });
    }
    found
}

/// How many keys a text sets: the fewer, the simpler.
pub fn n_keys(conf: &str) -> usize {
    parts(conf).count()
}

fn texts(demand: Demand) -> Vec<String> {
    let mut texts = vec![String::new(), "expandable_segments:True".to_owned()];
    // Segments are no larger than the largest request calls for, and at least 20 MiB.
    let largest_segment = demand.largest_request.checked_next_multiple_of(2 * MIB).unwrap_or(u64::MAX);
    let splits: Vec<u64> = SPLIT_LIMITS.into_iter().filter(|mib| mib * MIB <= largest_segment).collect();
    texts.extend(splits.iter().map(|mib| format!("max_split_size_mb:{mib}")));
    texts.extend(DIVISIONS.iter().map(|n| format!("roundup_power2_divisions:{n}")));
    texts.extend(all_but_the_largest(demand.largest_request));
    texts.push("expandable_segments:True,roundup_power2_divisions:8".to_owned());
    if demand.is_limited {
        texts.extend(COLLECT_ABOVE.iter().map(|share| format!("garbage_collection_threshold:{share}")));
    }
    texts.push("large_segment_size_mb:64".to_owned());
    texts.push("expandable_segments:True,large_segment_size_mb:12".to_owned());
    if let Some(mib) = splits.get(1).or(splits.first()) {
        texts.push(format!("max_split_size_mb:{mib},max_non_split_rounding_mb:128"));
    }
    texts
}

/// Rounds to eighths all sizes but the largest, of which an eighth is much memory.
///
/// Until torch 2.8 `>` overwrites the entry before it; as that has the same value here, all releases take the text
/// alike.
fn all_but_the_largest(largest_request: u64) -> Option<String> {
    let power = (largest_request / MIB).checked_ilog2()?;
    let last = power.checked_sub(1)?.min(13);
    Some(format!("roundup_power2_divisions:[{}:8,{}:1,>:1]", 1u64 << last, 1u64 << (last + 1)))
}

/// The settings in a text, parted at the commas that are not within brackets.
fn parts(conf: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0usize;
    conf.split(move |c| {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
    .map(str::trim)
    .filter(|part| !part.is_empty())
}

fn key(part: &str) -> &str {
    part.split_once(':').map_or(part, |(key, _)| key).trim()
}

#[cfg(test)]
mod tests {
    use super::*;
    use vramscope_replay::allocator::config::Release;

    fn swept(own: &str, demand: Demand) -> Vec<String> {
        swept_by(Rules::newest(), own, demand)
    }

    fn swept_by(rules: Rules, own: &str, demand: Demand) -> Vec<String> {
        let (config, _) = Config::parse(own, &rules).unwrap();
        sweep(own, &config, &rules, demand).into_iter().map(|c| c.conf).collect()
    }

    fn demand(mib: u64) -> Demand {
        Demand { largest_request: mib * MIB, ..Demand::default() }
    }

    #[test]
    fn settings_that_no_request_is_large_enough_for_are_left_out() {
        let check = |mib, want: &[&str]| {
            let swept = swept("", demand(mib));
            let limits: Vec<&str> = swept
                .iter()
                .filter(|c| n_keys(c) == 1)
                .filter_map(|c| c.strip_prefix("max_split_size_mb:"))
                .collect();
            assert_eq!(limits, want, "{mib} MiB");
        };
        check(8, &[]);
        check(31, &["32"]);
        check(140, &["32", "64", "128"]);
        check(9000, &["32", "64", "128", "256", "512"]);
    }

    #[test]
    fn the_defaults_come_first_unless_they_are_the_recordings_own() {
        assert_eq!(swept("", demand(8))[0], "expandable_segments:True");
        let of_expandable = swept("expandable_segments:True", demand(8));
        assert_eq!(of_expandable[0], "");
        assert!(!of_expandable.contains(&"expandable_segments:True".to_owned()), "{of_expandable:?}");
        let all = swept("roundup_power2_divisions:8", demand(8));
        assert_eq!(all.iter().filter(|c| *c == "roundup_power2_divisions:8").count(), 0, "{all:?}");
    }

    #[test]
    fn what_is_not_varied_is_kept() {
        let all = swept("pinned_use_background_threads:True, max_split_size_mb:64", demand(100));
        assert!(all.iter().all(|c| c.starts_with("pinned_use_background_threads:True")), "{all:?}");
        assert_eq!(all[1], "pinned_use_background_threads:True,expandable_segments:True");
        let limited = swept("per_process_memory_fraction:0.5", demand(8));
        assert!(limited.iter().all(|c| c.starts_with("per_process_memory_fraction:0.5")), "{limited:?}");
    }

    #[test]
    fn collecting_is_tried_only_where_a_limit_is_known() {
        let collects = |is_limited| {
            let swept = swept("", Demand { is_limited, ..demand(8) });
            swept.iter().filter(|c| c.starts_with("garbage_collection_threshold")).count()
        };
        assert_eq!((collects(false), collects(true)), (0, 2));
    }

    #[test]
    fn only_what_the_release_knows_is_tried() {
        let of = |release| swept_by(Rules::of_release(release), "", demand(140));
        let has = |confs: &[String], key: &str| confs.iter().any(|c| c.contains(key));
        let old = of(Release(2, 0));
        assert!(!has(&old, "expandable_segments") && has(&old, "max_split_size_mb"), "{old:?}");
        let middle = of(Release(2, 9));
        assert!(
            has(&middle, "max_non_split_rounding_mb") && !has(&middle, "large_segment_size_mb"),
            "{middle:?}"
        );
        let new = of(Release(2, 11));
        assert!(has(&new, "large_segment_size_mb") && new.len() <= 16, "{new:?}");
    }

    #[test]
    fn what_is_odd_about_kept_settings_is_not_said_again() {
        let rules = Rules::newest();
        let own = "pinned_use_background_threads:True";
        let (config, warnings) = Config::parse(own, &rules).unwrap();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        for candidate in sweep(own, &config, &rules, demand(140)) {
            assert!(candidate.warnings.is_empty(), "{candidate:?}");
        }
    }

    #[test]
    fn the_list_leaves_the_largest_sizes_as_they_are() {
        let check = |bytes, want: Option<&str>| {
            let want = want.map(|list| format!("roundup_power2_divisions:[{list}]"));
            assert_eq!(all_but_the_largest(bytes), want, "{bytes}");
        };
        check(0, None);
        check(2 * MIB - 1, None);
        check(2 * MIB, Some("1:8,2:1,>:1"));
        check(140 * MIB, Some("64:8,128:1,>:1"));
        check(u64::MAX, Some("8192:8,16384:1,>:1"));
    }

    #[test]
    fn lists_count_as_one_key() {
        assert_eq!(n_keys(""), 0);
        assert_eq!(n_keys("expandable_segments:True"), 1);
        assert_eq!(n_keys("roundup_power2_divisions:[64:8,128:1],expandable_segments:True,"), 2);
        assert_eq!(n_keys("]]a:[1,2"), 1);
    }
}
