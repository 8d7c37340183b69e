//! The allocator's settings while it was recorded.

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
    /// The size of the block that serves a request, before the decision whether to split.
    ///
    /// Source: `round_size` of PyTorch's `CUDACachingAllocator.cpp`; see the allocator reference, §3.
    pub fn round(settings: Option<&Self>, request: u64) -> u64 {
        const MIN: u64 = 512;
        if request < MIN {
            return MIN;
        }
        let divisions = settings.map_or(0, |s| s.divisions(request));
        if divisions > 1 && request > MIN.saturating_mul(divisions) {
            let power = 1u64 << request.ilog2();
            if power == request {
                return request;
            }
            let step = power / divisions;
            if step == 0 {
                return power.saturating_mul(2);
            }
            return request.checked_next_multiple_of(step).unwrap_or(request);
        }
        request.checked_next_multiple_of(MIN).unwrap_or(request)
    }

    /// The table has 16 entries, for sizes from 1 MiB to 32 GiB; the first serves all that is smaller, the last
    /// all that is larger.
    fn divisions(&self, request: u64) -> u64 {
        let slot = request.ilog2().saturating_sub(20).min(15);
        self.roundup_power2_divisions.iter().find(|&&(mib, _)| mib == 1 << slot).map_or(0, |&(_, d)| d)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_follows_the_reference_table() {
        let scalar = |d| Settings {
            roundup_power2_divisions: (0..16).map(|i| (1 << i, d)).collect(),
            ..Settings::default()
        };
        let (four, eight) = (scalar(4), scalar(8));
        for (request, plain, by_four, by_eight) in [
            (1, 512, 512, 512),
            (511, 512, 512, 512),
            (512, 512, 512, 512),
            (513, 1024, 1024, 1024),
            (1200, 1536, 1536, 1536),
            (2049, 2560, 2560, 2560),
            (4097, 4608, 5120, 4608),
            (1_048_577, 1_049_088, 1_310_720, 1_179_648),
            (3_145_729, 3_146_240, 3_670_016, 3_407_872),
            (84 << 20, 84 << 20, 96 << 20, 88 << 20),
        ] {
            assert_eq!(Settings::round(None, request), plain, "{request}");
            assert_eq!(Settings::round(Some(&four), request), by_four, "{request} by 4");
            assert_eq!(Settings::round(Some(&eight), request), by_eight, "{request} by 8");
        }
        assert_eq!(Settings::round(None, u64::MAX), u64::MAX);
    }
}
