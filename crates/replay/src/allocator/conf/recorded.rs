//! The settings under which a recording was made.

use vramscope_model::Settings;

use super::{ConfWarning, Notice};
use crate::allocator::config::{Config, MIB, Rules};

impl Config {
    /// The settings in force when a recording ended, and what is unsure about them.
    ///
    /// A file has the text that was read last and some settings one by one. These win: the text may have been read over
    /// earlier ones while the program ran, which leaves some of them in force.
    ///
    /// Source: the allocator reference, §2.2 (what reading a text anew leaves in force) and §12.2.
    pub fn of_recording(settings: Option<&Settings>, rules: &Rules) -> (Self, Vec<ConfWarning>) {
        let about_all = |notice| ConfWarning { span: None, notice };
        let Some(settings) = settings else {
            return (Self::default(), vec![about_all(Notice::Unrecorded)]);
        };
        let (mut config, mut warnings, readable) = match Self::parse(&settings.conf, rules) {
            Ok((config, warnings)) => (config, warnings, true),
            Err(error) => (Self::default(), vec![about_all(Notice::Unreadable(error))], false),
        };
        let changed = config.take(settings).into_iter().filter(|_| readable);
        warnings.extend(changed.map(|(key, in_force)| about_all(Notice::ChangedAtRunTime { key, in_force })));
        (config, warnings)
    }

    /// Takes what a file states one by one, and returns what that changed.
    fn take(&mut self, stated: &Settings) -> Vec<(&'static str, String)> {
        let states = |name: &str| stated.all.iter().any(|(stated, _)| stated == name);
        let mut changed = Vec::new();
        if states("expandable_segments") && self.expandable_segments != stated.expandable_segments {
            self.expandable_segments = stated.expandable_segments;
            changed.push((
                "expandable_segments",
                if stated.expandable_segments { "True" } else { "False" }.into(),
            ));
        }
        if states("max_split_size") && self.max_split_size != stated.max_split_size {
            self.max_split_size = stated.max_split_size;
            let mib = |bytes: u64| (bytes / MIB).to_string();
            changed.push(("max_split_size_mb", stated.max_split_size.map_or("no limit".into(), mib)));
        }
        // A share that no setting can have comes from a damaged file.
        let threshold = stated.garbage_collection_threshold;
        if states("garbage_collection_threshold")
            && (0.0..1.0).contains(&threshold)
            && self.garbage_collection_threshold.to_bits() != threshold.to_bits()
        {
            self.garbage_collection_threshold = threshold;
            changed.push(("garbage_collection_threshold", threshold.to_string()));
        }
        if states("roundup_power2_divisions") && self.roundup_divisions != stated.divisions() {
            self.roundup_divisions = stated.divisions();
            changed.push(("roundup_power2_divisions", self.divisions_text().unwrap_or_else(|| "0".into())));
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The settings as a file of torch 2.11 states them.
    fn stated(conf: &str) -> Settings {
        let names = [
            "max_split_size",
            "garbage_collection_threshold",
            "expandable_segments",
            "roundup_power2_divisions",
        ];
        Settings {
            conf: conf.into(),
            roundup_power2_divisions: (0..16).map(|i| (1 << i, 0)).collect(),
            all: names.map(|name| (name.into(), String::new())).to_vec(),
            ..Settings::default()
        }
    }

    fn check(settings: Option<&Settings>, conf: &str, warnings: &[&str]) {
        let (config, found) = Config::of_recording(settings, &Rules::newest());
        assert_eq!(config.text(), conf);
        assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), warnings);
    }

    const RUN_TIME: &str = "is in force, not what the recorded text says; changes of settings that a file does not state \
                            singly cannot be seen";

    #[test]
    fn the_text_and_what_is_stated_agree() {
        check(Some(&stated("")), "", &[]);
        let settings =
            Settings { max_split_size: Some(64 * MIB), garbage_collection_threshold: 0.6, ..stated("") };
        let conf = "garbage_collection_threshold:0.6,max_split_size_mb:64,large_segment_size_mb:40";
        let settings = Settings { conf: conf.into(), ..settings };
        let shortest = "max_split_size_mb:64,garbage_collection_threshold:0.6,large_segment_size_mb:40";
        check(Some(&settings), shortest, &[]);
    }

    #[test]
    fn what_is_in_force_wins_over_the_text() {
        // `_set_allocator_settings("")` does not switch expandable segments off.
        let settings = Settings { expandable_segments: true, ..stated("") };
        let warning = format!("`expandable_segments` was changed while the program ran: `True` {RUN_TIME}");
        check(Some(&settings), "expandable_segments:True", &[&warning]);

        let settings =
            stated("max_split_size_mb:64,roundup_power2_divisions:4,garbage_collection_threshold:0.5");
        let warnings = [
            format!("`max_split_size_mb` was changed while the program ran: `no limit` {RUN_TIME}"),
            format!("`garbage_collection_threshold` was changed while the program ran: `0` {RUN_TIME}"),
            format!("`roundup_power2_divisions` was changed while the program ran: `0` {RUN_TIME}"),
        ];
        check(Some(&settings), "", &warnings.each_ref().map(String::as_str));
    }

    #[test]
    fn a_text_that_cannot_be_read_leaves_what_is_stated() {
        let settings =
            Settings { max_split_size: Some(64 * MIB), expandable_segments: true, ..stated("foo:1") };
        check(
            Some(&settings),
            "expandable_segments:True,max_split_size_mb:64",
            &[
                "the recorded settings cannot be read (at byte 0: `foo` is no setting of the allocator); those are taken \
             that the file states singly",
            ],
        );
    }

    #[test]
    fn what_is_not_stated_comes_from_the_text() {
        let settings = Settings { conf: "expandable_segments:True".into(), ..Settings::default() };
        check(Some(&settings), "expandable_segments:True", &[]);
        check(
            None,
            "",
            &[
                "the file does not state the allocator's settings (torch 2.3 and later do); the defaults are taken",
            ],
        );
    }

    #[test]
    fn no_share_of_a_damaged_file_is_taken() {
        for threshold in [f64::NAN, -1.0, 1.0, f64::INFINITY] {
            check(Some(&Settings { garbage_collection_threshold: threshold, ..stated("") }), "", &[]);
        }
    }
}
