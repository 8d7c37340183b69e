//! Fragmentation in figures: how often requests failed to fit, how much free memory could not be used, and whose blocks kept it.

use vramscope_model::{Bytes, EventIdx};
use vramscope_replay::{FailedFit, Kept, Stranding};

use crate::Context;

/// What became of free memory in a window.
#[derive(Clone, Debug)]
pub struct Fragmentation {
    /// Free and stranded bytes × time, who pinned them, and every failed fit.
    pub stranding: Stranding,
    /// Failed fits in each of equal parts of the window.
    pub fits_over_time: Vec<u64>,
    /// Failed fits after the first third.
    pub late: u64,
    /// What was obtained because of failed fits.
    pub obtained: Bytes,
    /// The late failed fit for which most was free in vain.
    pub example: Option<FailedFit>,
}

/// Into how many parts a window is divided for counting.
const PARTS: usize = 20;

impl Fragmentation {
    /// Follows the window of a context.
    pub(crate) fn of(cx: &Context<'_>) -> Self {
        let settings = cx.recording.settings.as_ref();
        let kept = Kept::by(cx.steps, cx.lifetimes);
        let stranding = Stranding::of(cx.device, cx.lifetimes, cx.symbols, &kept, settings, cx.window);
        let (from, to) = (u64::from(cx.window.from.0), u64::from(cx.window.to.0));
        let length = to.saturating_sub(from).max(1);
        let mut fits_over_time = vec![0; PARTS];
        for fit in &stranding.fits {
            let part = u64::from(fit.event.0).saturating_sub(from) * PARTS as u64 / length;
            if let Some(n) = fits_over_time.get_mut(part as usize) {
                *n += 1;
            }
        }
        let warm = EventIdx((from + length / 3) as u32);
        let late = stranding.fits.iter().filter(|f| f.event >= warm);
        let example = late.clone().max_by_key(|f| (f.free - f.request, f.event)).copied();
        Self {
            late: late.clone().count() as u64,
            obtained: stranding.fits.iter().map(|f| f.obtained).sum(),
            fits_over_time,
            example,
            stranding,
        }
    }

    /// The failed fits after the first third of the window.
    pub(crate) fn late_fits(&self) -> impl Iterator<Item = &FailedFit> {
        let n = self.stranding.fits.len().saturating_sub(self.late as usize);
        self.stranding.fits.iter().skip(n)
    }
}
