//! What holds for any text and any settings.

use proptest::prelude::*;
use vramscope_model::Divisions;
use vramscope_replay::allocator::config::{Config, Release, Rules};

const MIB: u64 = 1 << 20;

fn rules() -> impl Strategy<Value = Rules> {
    (0..=16u16).prop_map(|minor| Rules::of_release(Release(2, minor)))
}

/// Texts that are built much like settings.
fn nearly_settings() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        4 => prop::sample::select(vec![":", ",", "[", "]", ">", " ", "\t"]).prop_map(String::from),
        3 => prop::sample::select(vec![
            "max_split_size_mb", "garbage_collection_threshold", "roundup_power2_divisions", "expandable_segments",
            "large_segment_size_mb", "max_non_split_rounding_mb", "per_process_memory_fraction", "backend",
            "throw_on_cudamalloc_oom", "pinned_num_register_threads", "expandable_segments_reserve_by_class",
        ]).prop_map(String::from),
        3 => prop::sample::select(vec!["True", "False", "native", "0.5", "4", "64", "1024", "-1", "1e9", "ß"])
            .prop_map(String::from),
        1 => any::<String>(),
    ];
    prop::collection::vec(word, 0..24).prop_map(|words| words.concat())
}

/// Settings that a text can state.
fn config() -> impl Strategy<Value = Config> {
    let share = || (1u32..1000).prop_map(|n| f64::from(n) / 1000.0);
    let table = prop_oneof![
        2 => prop::collection::vec(prop::sample::select(vec![0, 0, 1, 2, 4, 8]), 16),
        // Runs of equal numbers.
        2 => prop::collection::vec((1..16usize, prop::sample::select(vec![0, 1, 2, 4])), 1..5).prop_map(|runs| {
            let table = runs.into_iter().flat_map(|(n, d)| std::iter::repeat_n(d, n));
            table.chain(std::iter::repeat(0)).take(16).collect()
        }),
        1 => Just(vec![4; 16]),
    ];
    let sizes = (11u64..200, 1u64..10_000, 1u64..10_000);
    let choices = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (sizes, choices, prop::option::of(share()), prop::option::of(share()), table).prop_map(
        |((large, split, rounding), (limit, round, expandable, throw), threshold, fraction, table)| Config {
            max_split_size: limit.then_some((large + split) * MIB),
            max_non_split_rounding: if round { (large + rounding) * MIB } else { large * MIB },
            garbage_collection_threshold: threshold.unwrap_or(0.0),
            roundup_divisions: Divisions(table.try_into().expect("16 numbers")),
            expandable_segments: expandable,
            large_segment: large * MIB,
            per_process_memory_fraction: fraction.unwrap_or(1.0),
            throw_on_cudamalloc_oom: throw,
        },
    )
}

proptest! {
    #[test]
    fn any_text_is_taken_or_refused_in_words(
        text in prop_oneof![nearly_settings(), any::<String>()],
        rules in rules(),
    ) {
        match Config::parse(&text, &rules) {
            Ok((config, warnings)) => {
                for warning in warnings {
                    prop_assert!(!warning.to_string().is_empty());
                    prop_assert!(warning.span.is_none_or(|span| text.get(span).is_some()));
                }
                // What was read can be written down and read again by any later parser.
                let again = Config::parse(&config.text(), &Rules::newest());
                prop_assert_eq!(again.map(|(config, _)| config), Ok(config));
            }
            Err(error) => {
                prop_assert!(text.get(error.span.clone()).is_some(), "{:?} of {:?}", error.span, text);
                prop_assert!(!error.to_string().contains('\n') && !error.hint().is_empty());
            }
        }
    }

    #[test]
    fn settings_survive_being_written_and_read(config in config(), minor in 4..=15u16) {
        let text = config.text();
        let read = Config::parse(&text, &Rules::of_release(Release(2, minor)));
        prop_assert_eq!(read.map(|(config, _)| config), Ok(config), "{}", text);
    }

    #[test]
    fn blocks_are_no_smaller_than_requests(config in config(), request in prop_oneof![any::<u64>(), 0u64..1 << 40]) {
        if let Some(block) = config.round(request) {
            prop_assert!(block >= request && block >= 512);
            prop_assert!(config.segment_size(block).is_none_or(|segment| segment >= block));
        } else {
            prop_assert!(request > 1 << 62);
        }
    }
}
