//! How the size of a block follows from the size of a request.

/// How many sizes have a number of divisions of their own: the powers of two from 1 MiB to 32 GiB.
pub const N_DIVISIONS: usize = 16;

/// The smallest block, and what sizes are rounded to where no divisions hold.
const MIN_BLOCK: u64 = 512;

/// Into how many parts the span from each power of two to the next is divided for rounding (`roundup_power2_divisions`),
/// from 1 MiB on. The first number serves all that is smaller, too, and the last all that is larger; 0 and 1 mean
/// rounding to 512 bytes.
///
/// Source: the allocator reference, §3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Divisions(pub [u64; N_DIVISIONS]);

impl Divisions {
    /// The same number for all sizes.
    pub fn uniform(divisions: u64) -> Self {
        Self([divisions; N_DIVISIONS])
    }

    /// Which of the numbers serves a size in bytes.
    pub fn slot(size: u64) -> usize {
        (size.max(1).ilog2() as usize).saturating_sub(20).min(N_DIVISIONS - 1)
    }

    /// The size in MiB from which on a number holds; none if there is no such number.
    pub fn mib(slot: usize) -> Option<u64> {
        (slot < N_DIVISIONS).then(|| 1 << slot)
    }

    /// The divisions that hold for a request of that many bytes.
    pub fn of(&self, request: u64) -> u64 {
        self.0.get(Self::slot(request)).copied().unwrap_or(0)
    }

    /// The size in bytes of the block that serves a request, before the decision whether to split; none where 64 bits
    /// do not hold it.
    pub fn round(&self, request: u64) -> Option<u64> {
        Self::round_by(self.of(request), request)
    }

    /// The same where the number of divisions is known.
    pub(crate) fn round_by(divisions: u64, request: u64) -> Option<u64> {
        if request < MIN_BLOCK {
            return Some(MIN_BLOCK);
        }
        if divisions <= 1 || request <= MIN_BLOCK.saturating_mul(divisions) {
            return request.checked_next_multiple_of(MIN_BLOCK);
        }
        let power = 1u64 << request.ilog2();
        if power == request {
            return Some(request);
        }
        // At least 256, as the request is larger than 512 times the divisions.
        request.checked_next_multiple_of(power / divisions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_follows_the_reference_table() {
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
            for (divisions, want) in [(0, plain), (1, plain), (4, by_four), (8, by_eight)] {
                assert_eq!(
                    Divisions::uniform(divisions).round(request),
                    Some(want),
                    "{request} by {divisions}"
                );
            }
        }
    }

    #[test]
    fn each_size_has_its_own_divisions() {
        let mut divisions = Divisions::default();
        divisions.0[6] = 8;
        divisions.0[7] = 2;
        divisions.0[15] = 4;
        assert_eq!(divisions.round(84 << 20), Some(88 << 20));
        assert_eq!(divisions.round(200 << 20), Some(256 << 20));
        assert_eq!(divisions.round(300 << 20), Some(300 << 20));
        assert_eq!(
            divisions.round((1 << 40) + 1),
            Some((1 << 40) + (1 << 38)),
            "the last serves all that is larger"
        );
    }

    #[test]
    fn more_parts_than_a_size_can_have_mean_512_bytes() {
        assert_eq!(Divisions::uniform(1 << 60).round((1 << 40) + 1), Some((1 << 40) + 512));
        assert_eq!(Divisions::uniform(1 << 31).round((1 << 40) + 1), Some((1 << 40) + 512));
    }

    #[test]
    fn what_64_bits_do_not_hold_is_nothing() {
        assert_eq!(Divisions::default().round(u64::MAX), None);
        assert_eq!(Divisions::uniform(4).round(u64::MAX), None);
        assert_eq!(Divisions::uniform(4).round((1 << 63) + 1), Some((1 << 63) + (1 << 61)));
    }
}
