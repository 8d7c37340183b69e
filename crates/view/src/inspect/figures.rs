//! What a device holds, counted.

use rustc_hash::FxHashSet;
use vramscope_model::{
    Action, BlockState, Bytes, Device, EventIdx, PoolId, PoolKind, Segment, StackId, Symbols,
};

use super::DeviceInspection;

/// Counts what a device holds.
pub(super) fn device(device: &Device, symbols: &Symbols) -> DeviceInspection {
    let segments = || device.segments.iter();
    let count = |wanted: &dyn Fn(&Segment) -> bool| segments().filter(|s| wanted(s)).count() as u64;
    let bytes_in = |state: BlockState| segments().map(|s| s.bytes_in(state)).sum::<Bytes>().0;

    let mut streams: FxHashSet<_> = segments().map(|s| s.stream).collect();
    let mut stacks = (0, 0, 0);
    for event in device.events.iter() {
        if uses_a_stream(event.action) {
            streams.insert(event.stream);
        }
        match event.stack {
            StackId::ABSENT => stacks.2 += 1,
            StackId::EMPTY => stacks.1 += 1,
            _ => stacks.0 += 1,
        }
    }
    let pools: FxHashSet<PoolId> = segments().map(|s| s.pool).filter(|&p| p != PoolId::DEFAULT).collect();
    DeviceInspection {
        device: device.ordinal,
        events: events(device, symbols),
        segments: (
            count(&|s| s.kind == PoolKind::Small),
            count(&|s| s.kind == PoolKind::Large),
            count(&|s| s.expandable),
        ),
        private_pools: pools.len() as u64,
        streams: streams.len() as u64,
        blocks: segments().map(|s| s.blocks.len() as u64).sum(),
        bytes: (
            segments().map(|s| s.size).sum::<Bytes>().0,
            bytes_in(BlockState::Allocated),
            bytes_in(BlockState::PendingFree),
            bytes_in(BlockState::Inactive),
        ),
        stacks,
    }
}

/// Snapshots and failed requests are written with a stream that says nothing.
fn uses_a_stream(action: Action) -> bool {
    matches!(action, Action::Alloc | Action::FreeRequested | Action::FreeCompleted)
}

fn events(device: &Device, symbols: &Symbols) -> Vec<(String, u64)> {
    let counts = device.events.counts();
    let mut events: Vec<(String, u64)> = Action::ALL
        .into_iter()
        .filter(|&action| action != Action::Other)
        .map(|action| (action.name().to_owned(), counts[action as usize]))
        .filter(|&(_, n)| n > 0)
        .collect();
    if counts[Action::Other as usize] > 0 {
        let mut others = std::collections::BTreeMap::<String, u64>::new();
        for (i, _) in device.events.actions().iter().enumerate().filter(|&(_, &a)| a == Action::Other) {
            let name = device.events.note(EventIdx(i as u32)).map_or("other", |note| symbols.str(note));
            *others.entry(name.to_owned()).or_default() += 1;
        }
        events.extend(others);
    }
    events
}
