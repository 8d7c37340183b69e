//! Settings as the text that yields them.

use std::fmt;

use vramscope_model::{Divisions, N_DIVISIONS};

use super::{Config, MIB};

impl Config {
    /// The shortest text for `PYTORCH_CUDA_ALLOC_CONF` that yields these settings in a process that starts with it; empty
    /// for the defaults. Every release that knows the settings in it reads it alike (those before torch 2.4 know no 0 in
    /// a list of divisions).
    ///
    /// Sizes are written in whole MiB, as no text can state others.
    pub fn text(&self) -> String {
        let standard = Self::default();
        let mib = |bytes: u64| (bytes / MIB).to_string();
        let stated = [
            ("expandable_segments", self.expandable_segments.then(|| "True".to_owned())),
            ("max_split_size_mb", self.max_split_size.map(mib)),
            (
                "max_non_split_rounding_mb",
                (self.max_non_split_rounding != self.large_segment).then(|| mib(self.max_non_split_rounding)),
            ),
            (
                "garbage_collection_threshold",
                (self.garbage_collection_threshold > 0.0)
                    .then(|| self.garbage_collection_threshold.to_string()),
            ),
            ("roundup_power2_divisions", self.divisions_text()),
            (
                "large_segment_size_mb",
                (self.large_segment != standard.large_segment).then(|| mib(self.large_segment)),
            ),
            (
                "per_process_memory_fraction",
                (self.per_process_memory_fraction < 1.0)
                    .then(|| self.per_process_memory_fraction.to_string()),
            ),
            ("throw_on_cudamalloc_oom", self.throw_on_cudamalloc_oom.then(|| "True".to_owned())),
        ];
        let settings = stated.into_iter().filter_map(|(key, value)| Some(format!("{key}:{}", value?)));
        settings.collect::<Vec<_>>().join(",")
    }

    /// The value of `roundup_power2_divisions`; none where there are none.
    pub(in crate::allocator) fn divisions_text(&self) -> Option<String> {
        let table = &self.roundup_divisions.0;
        let (first, last) = (table.first().copied()?, table.last().copied()?);
        if table.iter().all(|&d| d == first) {
            return (first > 0).then(|| first.to_string());
        }
        let entry = |slot: usize, divisions: u64| {
            Divisions::mib(slot).map(|mib| format!("{mib}:{divisions}")).unwrap_or_default()
        };
        // The first entry also holds for all smaller sizes. Where no entry stands, there are no divisions.
        let run = table.iter().take_while(|&&d| d == first).count();
        let mut entries = vec![entry(if first == 0 { 0 } else { run - 1 }, first)];
        // `>` fills the rest, with the last explicit entry (older parser) or without (newer parser): where that entry has
        // the same value, both mean the same.
        let tail = N_DIVISIONS - table.iter().rev().take_while(|&&d| d == last).count();
        let explicit = if last == 0 { tail } else { tail + 1 };
        let middle = table.iter().enumerate().take(explicit).skip(run);
        entries.extend(middle.filter(|&(_, &d)| d > 0).map(|(slot, &d)| entry(slot, d)));
        if last > 0 && explicit < N_DIVISIONS {
            entries.push(format!(">:{last}"));
        }
        Some(format!("[{}]", entries.join(",")))
    }
}

impl fmt::Display for Config {
    /// The same as [`Config::text`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocator::config::{Release, Rules};

    fn check(text: &str, shortest: &str) {
        let parsed = Config::parse(text, &Rules::newest()).map(|(config, _)| config);
        assert_eq!(parsed.as_ref().map(Config::text), Ok(shortest.to_owned()), "{text}");
        for release in [Release(2, 4), Release(2, 15)] {
            let again = Config::parse(shortest, &Rules::of_release(release)).map(|(config, _)| config);
            assert_eq!(again, parsed, "{shortest} in {release}");
        }
    }

    #[test]
    fn defaults_need_no_text() {
        check("", "");
        check("expandable_segments:False,large_segment_size_mb:20,max_non_split_rounding_mb:20", "");
        check("roundup_power2_divisions:[1:0],max_split_size_mb:-1,per_process_memory_fraction:1.0", "");
        check("pinned_num_register_threads:8,backend:native", "");
    }

    #[test]
    fn only_what_differs_is_written() {
        check(" expandable_segments : True ,", "expandable_segments:True");
        check(
            "garbage_collection_threshold:0.80,max_split_size_mb:0128",
            "max_split_size_mb:128,garbage_collection_threshold:0.8",
        );
        check(
            "large_segment_size_mb:40,max_split_size_mb:64",
            "max_split_size_mb:64,large_segment_size_mb:40",
        );
        check(
            "large_segment_size_mb:40,max_non_split_rounding_mb:64",
            "max_non_split_rounding_mb:64,large_segment_size_mb:40",
        );
        check(
            "throw_on_cudamalloc_oom:True,per_process_memory_fraction:5e-1",
            "per_process_memory_fraction:0.5,throw_on_cudamalloc_oom:True",
        );
    }

    #[test]
    fn divisions_are_written_for_both_parsers() {
        let check = |text, shortest| {
            check(
                &format!("roundup_power2_divisions:{text}"),
                &format!("roundup_power2_divisions:{shortest}"),
            );
        };
        check("4", "4");
        check("[32768:4]", "4");
        check("[64:8]", "[64:8]");
        check("[256:1,512:2,1024:4,>:8]", "[256:1,512:2,1024:4,2048:8,>:8]");
        check("[64:8,128:2,256:2,512:2,1024:1,>:1]", "[64:8,128:2,256:2,512:2,1024:1,>:1]");
        check("[1:0,64:2]", "[1:0,64:2]");
        check("[>:2]", "[1:0,2:2,>:2]");
        check("[32:4,64:0,16384:8,32768:2]", "[32:4,16384:8,32768:2]");
        check("[16384:4,32768:2]", "[16384:4,32768:2]");
    }
}
