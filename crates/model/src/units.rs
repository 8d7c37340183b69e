//! Quantities that must not be mixed up.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};

/// A number of bytes of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

impl Bytes {
    /// No bytes.
    pub const ZERO: Self = Self(0);

    /// The difference, or nothing where it would be negative.
    #[must_use]
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Bytes {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.saturating_sub(other)
    }
}

impl SubAssign for Bytes {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

/// A place in a device's trace: the number of events before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventIdx(pub u32);

impl EventIdx {
    /// As an index into columns.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Microseconds since 1970-01-01 UTC, as the recording process read its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeUs(pub i64);

impl TimeUs {
    /// Stands in columns for an event without a time (snapshots made before torch 2.2).
    pub const UNKNOWN: Self = Self(i64::MIN);

    /// The time, if it was recorded.
    #[inline]
    pub fn known(self) -> Option<Self> {
        (self != Self::UNKNOWN).then_some(self)
    }
}

/// Binary units with one decimal, whole bytes below 1 KiB: "512 B", "4.0 MiB".
impl std::fmt::Display for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        if self.0 < 1024 {
            return write!(f, "{} B", self.0);
        }
        let mut value = self.0 as f64 / 1024.0;
        let mut unit = 0;
        // What would be rounded up to 1024.0 is one of the next unit.
        while value >= 1023.95 && unit + 1 < UNITS.len() {
            value /= 1024.0;
            unit += 1;
        }
        write!(f, "{value:.1} {}", UNITS[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_read_as_people_write_them() {
        let check = |bytes: u64, want: &str| assert_eq!(Bytes(bytes).to_string(), want);
        check(0, "0 B");
        check(512, "512 B");
        check(1024, "1.0 KiB");
        check(1536, "1.5 KiB");
        check((1 << 20) - 1, "1.0 MiB");
        check(1 << 20, "1.0 MiB");
        check(1_677_721_600, "1.6 GiB");
        check(u64::MAX, "16.0 EiB");
    }
}
