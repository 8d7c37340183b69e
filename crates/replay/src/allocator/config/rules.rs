//! What differs between releases of torch, as data.

use std::fmt;

use vramscope_model::{Features, Settings};

use super::writer::{first_without, oldest};

/// A release of torch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release(pub u16, pub u16);

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

/// Which equally large free block of a stream is taken first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tie {
    /// The one at the lowest address (before torch 2.12).
    Address,
    /// The one that was made first (torch 2.12 only). A block is made when memory is obtained from the driver; when a
    /// block is split, as its front part; and as what mapping or unmapping leaves over of an expandable segment. What
    /// is left of a block that is split keeps that block's place, and a block that is freed keeps its own when it
    /// absorbs its neighbours.
    Creation,
    /// The one in the segment that was obtained first, and within a segment that at the lowest address (torch 2.13 and
    /// later).
    Registration,
}

/// The two parsers of the settings' text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Parser {
    /// Up to torch 2.9: `>` in a list overwrites the last explicit entry, sizes must be larger than a large segment,
    /// misplaced separators are errors, and only blanks may stand between words.
    Until29,
    /// From torch 2.10 on: `>` fills the entries behind the last explicit one, sizes may equal a large segment,
    /// misplaced separators are passed over, and any white space may stand between words.
    Since210,
}

/// How a share of the device's memory becomes a number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Broken bytes are cut off (before torch 2.13).
    Down,
    /// To the nearest (torch 2.13 and later).
    Nearest,
}

/// What differs between releases of torch, as data.
///
/// Source: the allocator reference, §17, and for the releases where it is unsure the comparison functions and parsers in
/// the published libraries of torch 2.0 to 2.15.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The release that these are the rules of.
    pub release: Release,
    /// Which equally large free block is taken first.
    pub tie: Tie,
    /// Which parser reads the settings' text.
    pub parser: Parser,
    /// Whether a list of divisions may hold 0.
    pub zero_divisions: bool,
    /// Whether a memory fraction of 1, where one is set, is a limit, too.
    pub whole_fraction_is_limit: bool,
    /// How a memory fraction becomes bytes.
    pub cut: Cut,
}

/// The releases at which a rule changed.
const ERAS: [Rules; 5] = [
    Rules {
        release: Release(1, 12),
        tie: Tie::Address,
        parser: Parser::Until29,
        zero_divisions: false,
        whole_fraction_is_limit: true,
        cut: Cut::Down,
    },
    Rules {
        release: Release(2, 4),
        tie: Tie::Address,
        parser: Parser::Until29,
        zero_divisions: true,
        whole_fraction_is_limit: true,
        cut: Cut::Down,
    },
    Rules {
        release: Release(2, 10),
        tie: Tie::Address,
        parser: Parser::Since210,
        zero_divisions: true,
        whole_fraction_is_limit: false,
        cut: Cut::Down,
    },
    Rules {
        release: Release(2, 12),
        tie: Tie::Creation,
        parser: Parser::Since210,
        zero_divisions: true,
        whole_fraction_is_limit: false,
        cut: Cut::Down,
    },
    Rules {
        release: Release(2, 13),
        tie: Tie::Registration,
        parser: Parser::Since210,
        zero_divisions: true,
        whole_fraction_is_limit: false,
        cut: Cut::Nearest,
    },
];

/// The releases that are told apart, oldest first.
const RELEASES: [Release; 18] = [
    Release(1, 12),
    Release(1, 13),
    Release(2, 0),
    Release(2, 1),
    Release(2, 2),
    Release(2, 3),
    Release(2, 4),
    Release(2, 5),
    Release(2, 6),
    Release(2, 7),
    Release(2, 8),
    Release(2, 9),
    Release(2, 10),
    Release(2, 11),
    Release(2, 12),
    Release(2, 13),
    Release(2, 14),
    Release(2, 15),
];

impl Rules {
    /// The newest release's.
    pub fn newest() -> Self {
        Self::of_release(Release(2, 15))
    }

    /// Those of a release; of one that is not known yet, the newest ones known.
    pub fn of_release(release: Release) -> Self {
        let [first, ..] = ERAS;
        let era = ERAS.into_iter().rev().find(|era| era.release <= release).unwrap_or(first);
        Self { release, ..era }
    }

    /// The rules that the release which wrote a file may have had: each behaviour once, that of newer releases first.
    /// There is always one.
    ///
    /// A caller takes the first that reproduces the recording.
    pub fn of(features: &Features, settings: Option<&Settings>) -> Vec<Self> {
        let oldest = oldest(features, settings);
        let before = first_without(oldest, features, settings);
        let may_be = |release: Release| oldest <= release && before.is_none_or(|before| release < before);
        let mut found: Vec<Self> = Vec::new();
        for release in RELEASES.into_iter().rev().filter(|&r| may_be(r)) {
            let rules = Self::of_release(release);
            if !found.iter().any(|f| f.replays_like(&rules)) {
                found.push(rules);
            }
        }
        found
    }

    /// Whether a recording that was made under the one is replayed alike under the other.
    fn replays_like(&self, other: &Self) -> bool {
        let rest = |rules: &Self| (rules.tie, rules.parser, rules.whole_fraction_is_limit, rules.cut);
        rest(self) == rest(other)
    }

    /// A share of the device's memory in bytes, as `set_per_process_memory_fraction` works it out.
    pub fn bytes_of_fraction(&self, fraction: f64, total: u64) -> u64 {
        let bytes = total as f64 * fraction;
        match self.cut {
            Cut::Down => bytes as u64,
            Cut::Nearest => bytes.round() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features(era: Release) -> Features {
        Features {
            stream: era >= Release(1, 13),
            requested_size: era >= Release(2, 0),
            block_address: era >= Release(2, 1),
            time: era >= Release(2, 2),
            settings: era >= Release(2, 3),
            annotations: era >= Release(2, 5),
            compile_context: era >= Release(2, 8),
            user_metadata: era >= Release(2, 10),
            pool_id: era >= Release(2, 12),
            host: era >= Release(2, 14),
            ..Features::default()
        }
    }

    fn settings(era: Release) -> Option<Settings> {
        let since = [
            ("max_split_size", Release(2, 3)),
            ("graph_capture_record_stream_reuse", Release(2, 9)),
            ("max_round_threshold", Release(2, 13)),
        ];
        let all =
            since.into_iter().filter(|&(_, release)| era >= release).map(|(n, _)| (n.into(), "0".into()));
        (era >= Release(2, 3)).then(|| Settings { all: all.collect(), ..Settings::default() })
    }

    fn check(features: &Features, settings: Option<&Settings>, want: &[(Release, Tie, Parser)]) {
        let found = Rules::of(features, settings);
        let found: Vec<_> = found.iter().map(|r| (r.release, r.tie, r.parser)).collect();
        assert_eq!(found, want);
    }

    #[test]
    fn a_file_tells_which_release_wrote_it() {
        for (written_by, rules) in [
            ((2, 5), (Release(2, 7), Tie::Address, Parser::Until29)),
            ((2, 8), (Release(2, 8), Tie::Address, Parser::Until29)),
            ((2, 9), (Release(2, 9), Tie::Address, Parser::Until29)),
            ((2, 10), (Release(2, 11), Tie::Address, Parser::Since210)),
            ((2, 11), (Release(2, 11), Tie::Address, Parser::Since210)),
            ((2, 12), (Release(2, 12), Tie::Creation, Parser::Since210)),
            ((2, 13), (Release(2, 15), Tie::Registration, Parser::Since210)),
            ((2, 14), (Release(2, 15), Tie::Registration, Parser::Since210)),
        ] {
            let era = Release(written_by.0, written_by.1);
            check(&features(era), settings(era).as_ref(), &[rules]);
        }
    }

    #[test]
    fn all_that_may_have_written_a_file_are_candidates() {
        let (newest, creation) = (
            (Release(2, 15), Tie::Registration, Parser::Since210),
            (Release(2, 12), Tie::Creation, Parser::Since210),
        );
        let (newer, older) = (
            (Release(2, 11), Tie::Address, Parser::Since210),
            (Release(2, 9), Tie::Address, Parser::Until29),
        );
        check(&features(Release(2, 12)), None, &[newest, creation]);
        check(&features(Release(2, 8)), None, &[older]);
        // A bare list of segments tells nothing by what it lacks.
        let bare = Features { bare_list: true, block_address: true, ..Features::default() };
        check(&bare, None, &[newest, creation, newer, older]);
        // No events: only the settings tell.
        let empty = Features { time: false, ..features(Release(2, 5)) };
        check(&empty, settings(Release(2, 9)).as_ref(), &[creation, newer, older]);
    }

    #[test]
    fn a_file_that_contradicts_itself_has_rules_all_the_same() {
        let odd = Features { annotations: false, settings: false, ..features(Release(2, 14)) };
        check(&odd, None, &[(Release(2, 15), Tie::Registration, Parser::Since210)]);
    }

    #[test]
    fn a_fraction_becomes_bytes_as_its_release_does_it() {
        let (old, new) = (Rules::of_release(Release(2, 12)), Rules::of_release(Release(2, 13)));
        assert_eq!((old.bytes_of_fraction(0.5, 151), new.bytes_of_fraction(0.5, 151)), (75, 76));
        assert_eq!((old.bytes_of_fraction(1.0, 151), new.bytes_of_fraction(0.0, 151)), (151, 0));
        assert_eq!(new.bytes_of_fraction(-1.0, 151), 0);
        assert_eq!(new.bytes_of_fraction(f64::NAN, 151), 0);
    }

    #[test]
    fn releases_are_told_by_number() {
        assert!(Release(2, 9) < Release(2, 10));
        assert_eq!(Release(2, 10).to_string(), "2.10");
        assert_eq!(Rules::of_release(Release(1, 0)).tie, Tie::Address);
        assert_eq!(Rules::of_release(Release(3, 1)).tie, Tie::Registration);
    }
}
