//! What the allocator has done so far, in bytes and in calls.

/// What happened to a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum SegmentAction {
    /// `cudaMalloc`.
    Alloc,
    /// `cudaFree`.
    Free,
    /// Memory was put behind addresses of an expandable segment.
    Map,
    /// It was taken away.
    Unmap,
}

/// One change of what is reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct SegmentEvent {
    pub(super) action: SegmentAction,
    pub(super) addr: u64,
    pub(super) size: u64,
}

/// Sums and counts. All but the log cost nothing to keep.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) reserved: u64,
    pub(super) allocated: u64,
    pub(super) peak_reserved: u64,
    /// What was allocated when the most was reserved.
    pub(super) allocated_at_peak: u64,
    /// The event at that moment.
    pub(super) peak_event: u32,
    pub(super) peak_allocated: u64,
    pub(super) peak_segments: u64,
    /// Calls by [`SegmentAction`].
    pub(super) calls: [u64; 4],
    pub(super) retries: u64,
    pub(super) collections: u64,
    /// The event that is being replayed.
    pub(super) now: u32,
    /// Every change of what is reserved, where that is wanted.
    pub(super) log: Option<Vec<SegmentEvent>>,
    /// Bytes reserved and allocated in pools that are taken as recorded.
    pub(super) private: (u64, u64),
}

impl Tally {
    /// A block is handed out.
    #[inline]
    pub(super) fn hold(&mut self, bytes: u64) {
        self.allocated = self.allocated.saturating_add(bytes);
        self.peak_allocated = self.peak_allocated.max(self.total_allocated());
    }

    /// The program gives a block back.
    #[inline]
    pub(super) fn give_back(&mut self, bytes: u64) {
        self.allocated = self.allocated.saturating_sub(bytes);
    }

    /// Something happened to a segment; there are `n_segments` now.
    pub(super) fn segment(&mut self, event: SegmentEvent, n_segments: usize) {
        self.calls[event.action as usize] += 1;
        match event.action {
            SegmentAction::Alloc | SegmentAction::Map => {
                self.reserved = self.reserved.saturating_add(event.size);
            }
            SegmentAction::Free | SegmentAction::Unmap => {
                self.reserved = self.reserved.saturating_sub(event.size);
            }
        }
        self.peak_segments = self.peak_segments.max(n_segments as u64);
        self.note_peak();
        if let Some(log) = &mut self.log {
            log.push(event);
        }
    }

    /// Calls until now were made before the recording began.
    pub(super) fn forget_calls(&mut self) {
        self.calls = [0; 4];
        self.retries = 0;
        self.collections = 0;
    }

    /// What is reserved from the beginning, in how many segments.
    pub(super) fn begin(&mut self, reserved: u64, n_segments: usize) {
        self.reserved = reserved;
        self.peak_segments = n_segments as u64;
        self.note_peak();
    }

    /// Takes over what pools that are not replayed hold now.
    pub(super) fn set_private(&mut self, reserved: u64, allocated: u64) {
        self.private = (reserved, allocated);
        self.peak_allocated = self.peak_allocated.max(self.total_allocated());
        self.note_peak();
    }

    /// What is reserved, private pools included.
    pub(super) fn total_reserved(&self) -> u64 {
        self.reserved.saturating_add(self.private.0)
    }

    /// What the program holds, private pools included.
    pub(super) fn total_allocated(&self) -> u64 {
        self.allocated.saturating_add(self.private.1)
    }

    fn note_peak(&mut self) {
        let reserved = self.total_reserved();
        if reserved > self.peak_reserved {
            self.peak_reserved = reserved;
            self.allocated_at_peak = self.total_allocated();
            self.peak_event = self.now;
        }
    }
}
