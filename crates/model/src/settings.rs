//! The allocator's settings while it was recorded.

use crate::divisions::Divisions;

/// What the file says of the allocator's settings (torch 2.3 and later).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// The text of `PYTORCH_CUDA_ALLOC_CONF` (or `PYTORCH_ALLOC_CONF`).
    pub conf: String,
    /// `max_split_size` in bytes; none for unlimited.
    pub max_split_size: Option<u64>,
    /// `garbage_collection_threshold`; 0 is off.
    pub garbage_collection_threshold: f64,
    /// `expandable_segments`.
    pub expandable_segments: bool,
    /// `roundup_power2_divisions`: pairs of a size in MiB and the divisions that hold from it on.
    pub roundup_power2_divisions: Vec<(u64, u64)>,
    /// Every setting as written, by name, for showing.
    pub all: Vec<(String, String)>,
}

impl Settings {
    /// The size of the block that serves a request, before the decision whether to split; the request itself where
    /// 64 bits do not hold that size.
    pub fn round(settings: Option<&Self>, request: u64) -> u64 {
        // Only the one number is looked up: this is asked for every event.
        let mib = Divisions::mib(Divisions::slot(request));
        let divisions =
            settings.and_then(|s| s.roundup_power2_divisions.iter().find(|pair| Some(pair.0) == mib));
        Divisions::round_by(divisions.map_or(0, |pair| pair.1), request).unwrap_or(request)
    }

    /// `roundup_power2_divisions` as a table.
    pub fn divisions(&self) -> Divisions {
        let mut divisions = Divisions::default();
        for (slot, number) in divisions.0.iter_mut().enumerate() {
            let mib = Divisions::mib(slot);
            let stated = self.roundup_power2_divisions.iter().find(|pair| Some(pair.0) == mib);
            *number = stated.map_or(0, |pair| pair.1);
        }
        divisions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(divisions: &[(u64, u64)], request: u64, want: u64) {
        let settings = Settings { roundup_power2_divisions: divisions.to_vec(), ..Settings::default() };
        assert_eq!(Settings::round(Some(&settings), request), want, "{divisions:?}");
        assert_eq!(settings.divisions().round(request).unwrap_or(request), want, "{divisions:?} as a table");
    }

    #[test]
    fn stated_divisions_round_as_the_table_does() {
        check(&[], 84 << 20, 84 << 20);
        check(&[(64, 4)], 84 << 20, 96 << 20);
        check(&[(64, 4), (128, 8)], 84 << 20, 96 << 20);
        check(&[(128, 8), (64, 4)], 84 << 20, 96 << 20);
        check(&[(1, 4)], 4097, 5120);
        check(&[(3, 4), (65_536, 4)], 84 << 20, 84 << 20);
        check(&[(32_768, 4)], (1 << 40) + 1, (1 << 40) + (1 << 38));
        check(&[(32_768, 4)], u64::MAX, u64::MAX);
    }

    #[test]
    fn without_settings_sizes_are_rounded_to_512_bytes() {
        assert_eq!(Settings::round(None, 0), 512);
        assert_eq!(Settings::round(None, 1_048_577), 1_049_088);
        assert_eq!(Settings::round(None, u64::MAX), u64::MAX);
    }
}
