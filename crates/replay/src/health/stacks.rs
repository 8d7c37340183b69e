//! Which stacks one snapshot uses. Tables of symbols are shared by all files of a run, so their size says nothing
//! about one of them.

use vramscope_model::{Action, BlockState, FrameId, Origin, Snapshot, StackId, Symbols};

/// The stacks and frames that one snapshot uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackUse {
    /// Distinct stacks with at least one frame.
    pub stacks: u64,
    /// Distinct frames in them.
    pub frames: u64,
    /// Those frames by whose code they are: user, library, generated, native.
    pub frames_by_origin: [u64; 4],
    /// Allocations with frames, with an empty stack, without a stack.
    pub allocs: [u64; 3],
    /// Frees with frames, with an empty stack, without a stack.
    pub frees: [u64; 3],
    /// Allocated blocks with frames and without.
    pub blocks: [u64; 2],
    /// Allocations with frames that have no user frame among them.
    pub allocs_without_user_frame: u64,
    /// Allocations by whose code their innermost frame is: user, library, generated, native.
    pub innermost: [u64; 4],
}

/// The place of an origin in the arrays of [`StackUse`].
fn origin_index(origin: Origin) -> usize {
    match origin {
        Origin::User => 0,
        Origin::Library => 1,
        Origin::Generated => 2,
        Origin::Native => 3,
    }
}

impl StackUse {
    /// Looks at every event and block of a snapshot.
    pub fn of(snapshot: &Snapshot, symbols: &Symbols) -> Self {
        let mut used = Self::default();
        let mut seen =
            Seen { stacks: vec![false; symbols.n_stacks()], frames: vec![false; symbols.n_frames()] };
        for device in &snapshot.devices {
            for (&action, &stack) in device.events.actions().iter().zip(device.events.stacks()) {
                used.see(&mut seen, stack, symbols);
                match action {
                    Action::Alloc => used.count_alloc(stack, symbols),
                    Action::FreeRequested | Action::FreeCompleted => used.frees[kind(stack)] += 1,
                    _ => {}
                }
            }
            for segment in &device.segments {
                used.see(&mut seen, segment.stack, symbols);
                for block in &segment.blocks {
                    used.see(&mut seen, block.stack, symbols);
                    if block.state == BlockState::Allocated {
                        used.blocks[usize::from(!block.stack.has_frames())] += 1;
                    }
                }
            }
        }
        used
    }

    fn count_alloc(&mut self, stack: StackId, symbols: &Symbols) {
        self.allocs[kind(stack)] += 1;
        if let Some(&innermost) = symbols.frames(stack).first() {
            self.innermost[origin_index(symbols.get_frame(innermost).origin)] += 1;
            self.allocs_without_user_frame += u64::from(symbols.site(stack).is_none());
        }
    }

    fn see(&mut self, seen: &mut Seen, stack: StackId, symbols: &Symbols) {
        if !stack.has_frames() || !first_time(&mut seen.stacks, stack.0) {
            return;
        }
        self.stacks += 1;
        for &FrameId(frame) in symbols.frames(stack) {
            if first_time(&mut seen.frames, frame) {
                self.frames += 1;
                self.frames_by_origin[origin_index(symbols.get_frame(FrameId(frame)).origin)] += 1;
            }
        }
    }
}

struct Seen {
    stacks: Vec<bool>,
    frames: Vec<bool>,
}

fn first_time(seen: &mut [bool], i: u32) -> bool {
    seen.get_mut(i as usize).is_some_and(|seen| !std::mem::replace(seen, true))
}

fn kind(stack: StackId) -> usize {
    match stack {
        StackId::ABSENT => 2,
        StackId::EMPTY => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use vramscope_model::script;

    use super::*;

    #[test]
    fn only_what_this_snapshot_uses_is_counted() {
        let mut symbols = Symbols::default();
        script::snapshot(&mut symbols, "alloc z 512 @other.py:1:f < other.py:2:g").unwrap();
        let snapshot = script::snapshot(
            &mut symbols,
            "alloc a 512 @/v/site-packages/torch/x.py:1:f < t.py:2:g
             alloc b 512 @/v/site-packages/torch/x.py:1:f < t.py:3:g
             alloc c 512
             free a",
        );
        let used = StackUse::of(&snapshot.unwrap(), &symbols);
        assert_eq!((used.stacks, used.frames), (2, 3));
        assert_eq!(used.frames_by_origin, [2, 1, 0, 0]);
        assert_eq!(used.allocs, [2, 1, 0]);
        assert_eq!(used.frees, [0, 2, 0]);
        assert_eq!(used.blocks, [1, 1]);
        assert_eq!(used.innermost, [0, 2, 0, 0]);
        assert_eq!(used.allocs_without_user_frame, 0);
    }
}
