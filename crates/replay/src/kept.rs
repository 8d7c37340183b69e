//! Which blocks are kept, and which only pass.
//!
//! What a step allocates for itself is gone by the next one: it makes no lasting holes, whatever its size. A block is *kept*
//! if it lives through a whole step at least. Where no steps are known, a twentieth of the trace stands for one.

use vramscope_model::EventIdx;

use crate::lifetimes::{AllocId, BEFORE, Lifetimes, UNRECORDED};
use crate::steps::Steps;

/// With fewer steps, equal parts of the trace are the better clock.
const MIN_STEPS: usize = 6;
/// Into how many parts a trace without steps is divided.
const PARTS: u64 = 20;

/// Tells blocks that are kept from those that pass.
#[derive(Clone, Debug)]
pub struct Kept {
    /// Ends of steps or parts, ascending.
    ends: Vec<EventIdx>,
}

impl Kept {
    /// By the steps of a trace.
    pub fn by(steps: &Steps, lifetimes: &Lifetimes) -> Self {
        if steps.count() >= MIN_STEPS {
            return Self { ends: steps.ends().to_vec() };
        }
        let n = u64::from(lifetimes.n_events().0);
        Self { ends: (1..=PARTS).map(|i| EventIdx((n * i / PARTS) as u32)).collect() }
    }

    /// Whether a block lives through a whole step: over the ends of two.
    pub fn is_kept(&self, lifetimes: &Lifetimes, id: AllocId) -> bool {
        let (birth, death) = (lifetimes.birth[id.index()], lifetimes.death[id.index()]);
        if death == UNRECORDED {
            return false;
        }
        let before_birth = if birth == BEFORE { 0 } else { self.ends.partition_point(|e| e.0 <= birth) };
        self.ends.partition_point(|e| e.0 <= death) >= before_birth + 2
    }
}
