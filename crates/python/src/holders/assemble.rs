//! From what was found to the graph that is searched.

use std::mem::take;

use rustc_hash::FxHashMap;
use vramscope_heap::{Block, BlockState, Heap};
use vramscope_view::holders::Bytes;

use super::Blocks;
use super::allocator::{AllocatorBlock, Choice};
use super::joined::Joined;
use super::{roles, tag};
use crate::cpython::Address;
use crate::torch::graph::{Device, Node, Owners};

/// torch's numbers for kinds of devices.
const CPU: i8 = 0;
const CUDA: i8 = 1;

/// The graph, and what was seen on the way.
pub(super) struct Assembled {
    pub(super) heap: Heap,
    pub(super) warnings: Vec<String>,
}

/// Puts it together. The walk's columns go into the graph: those of a large heap are not copied while the program waits.
pub(super) fn assemble(
    joined: &mut Joined<'_>,
    blocks: &Blocks,
    choice: Choice,
    watched: &[(Address, String)],
) -> Assembled {
    let mut warnings = Vec::new();
    let mut more_edges = take(&mut joined.walk.more_edges);
    more_edges.extend(
        joined.torch.edges.iter().filter_map(|edge| Some((joined.node(edge.from)?, joined.node(edge.to)?))),
    );
    more_edges.extend(joined.storage_objects());
    let mut memory = match blocks {
        Some(blocks) => of_allocator(joined, blocks, &mut warnings),
        None => of_storages(joined, choice),
    };
    more_edges.append(&mut memory.edges);
    let dead = watched
        .iter()
        .filter_map(|(address, reason)| Some((joined.walk.node_at(*address)?, reason.clone())))
        .collect();
    let optimizers = joined.walk.instances.iter().filter(|(_, tag)| *tag == tag::OPTIMIZER);
    let modules = joined.walk.instances.iter().filter(|(_, tag)| *tag == tag::MODULE);
    let heap = Heap {
        n_nodes: joined.n_nodes().saturating_add(memory.blocks.len() as u32),
        more_edges,
        blocks: memory.blocks,
        held_outside: held_outside(joined),
        roles: roles::roles(joined),
        storages: joined.storages().map(|(node, _)| node).collect(),
        autograd: joined.functions(),
        registries: joined.walk.registries().collect(),
        modules: modules.map(|&(node, _)| node).collect(),
        avoided: optimizers.map(|&(node, _)| node).collect(),
        dead,
        roots: take(&mut joined.walk.roots),
        hidden: take(&mut joined.walk.hidden),
        // Last, as roles are found by them.
        edges: take(&mut joined.walk.edges),
    };
    Assembled { heap, warnings }
}

#[derive(Default)]
struct Memory {
    blocks: Vec<Block>,
    edges: Vec<(u32, u32)>,
}

/// Blocks of the allocator, each referred to by the storages that lie in it.
fn of_allocator(joined: &Joined<'_>, blocks: &[AllocatorBlock], warnings: &mut Vec<String>) -> Memory {
    let first = joined.n_nodes();
    let mut memory = Memory::default();
    for (index, block) in blocks.iter().enumerate() {
        memory.blocks.push(Block {
            node: first.saturating_add(index as u32),
            address: block.address,
            bytes: Bytes(block.bytes),
            device: Some(block.device),
            state: if block.pending { BlockState::PendingFree } else { BlockState::Allocated },
            born: None,
        });
    }
    let (mut n_foreign, mut foreign_bytes) = (0_u64, 0_u64);
    for (node, storage) in joined.storages() {
        let Some(device) = cuda_device(storage.device) else { continue };
        if storage.data == 0 || storage.bytes == 0 {
            continue;
        }
        let at = storage.data as u64;
        let before = blocks.partition_point(|b| (b.device, b.address) <= (device, at));
        let index = before.checked_sub(1);
        match index.and_then(|i| Some((i, blocks.get(i)?))) {
            Some((index, block))
                if block.device == device && at < block.address.saturating_add(block.bytes) =>
            {
                memory.edges.push((node, first.saturating_add(index as u32)));
            }
            _ => {
                n_foreign += 1;
                foreign_bytes += storage.bytes;
            }
        }
    }
    if n_foreign > 0 {
        warnings.push(format!(
            "{n_foreign} storages of {} in all are not in PyTorch's caching allocator (another device, another allocator, memory of another process) and are not counted",
            Bytes(foreign_bytes)
        ));
    }
    memory
}

/// Where no allocator tells of its blocks, the memory of a storage is taken for one.
fn of_storages(joined: &Joined<'_>, choice: Choice) -> Memory {
    let mut memory = Memory::default();
    let mut storages: Vec<(Option<u32>, u64, u64, u32)> = joined
        .storages()
        .filter(|(_, storage)| storage.data != 0 && storage.bytes != 0)
        .filter_map(|(node, storage)| {
            let device = match choice {
                Choice::Cpu if storage.device.kind == CPU => None,
                Choice::Cpu => return None,
                Choice::Cuda(_) => {
                    Some(cuda_device(storage.device).filter(|&device| choice.includes(device))?)
                }
            };
            Some((device, storage.data as u64, storage.bytes, node))
        })
        .collect();
    storages.sort_unstable();
    // Several storages can be of the same memory: what is shared with numpy is.
    let mut node = joined.n_nodes();
    for (device, address, bytes, storage) in storages {
        match memory.blocks.last_mut() {
            Some(last) if last.device == device && address < last.address.saturating_add(last.bytes.0) => {
                let end = address.saturating_add(bytes).max(last.address.saturating_add(last.bytes.0));
                last.bytes = Bytes(end - last.address);
            }
            _ => {
                memory.blocks.push(Block {
                    node,
                    address,
                    bytes: Bytes(bytes),
                    device,
                    state: BlockState::Allocated,
                    born: None,
                });
                node = node.saturating_add(1);
            }
        }
        if let Some(block) = memory.blocks.last() {
            memory.edges.push((storage, block.node));
        }
    }
    memory
}

/// -1 is the only device there is.
fn cuda_device(device: Device) -> Option<u32> {
    (device.kind == CUDA).then(|| u32::try_from(device.index).unwrap_or(0))
}

/// Nodes that something holds which is neither a Python object nor one of torch's that was read.
///
/// Of objects that torch's C++ holds, the walk sees a reference that it cannot explain; where all owners of the C++ object were found, it is explained.
fn held_outside(joined: &Joined<'_>) -> Vec<u32> {
    let owners = |node: u32| -> Option<Owners> {
        match joined.origin(node)? {
            Node::Tensor(index) => joined.torch.tensors.get(index as usize).map(|t| t.owners),
            Node::Storage(index) => joined.torch.storages.get(index as usize).map(|s| s.owners),
            Node::Function(index) => joined.torch.functions.get(index as usize).map(|f| f.owners),
            Node::Object(_) => None,
        }
    };
    let by_torch = objects_of_torch(joined);
    let mut held: Vec<u32> = joined
        .walk
        .held_outside
        .iter()
        .copied()
        .filter(|&node| match owners(node) {
            None => joined.walk.unexplained(node) > by_torch.get(&node).copied().unwrap_or(0),
            // One reference is that of the C++ object.
            Some(found) => joined.walk.unexplained(node) > 1 || found.unexplained() > 0,
        })
        .collect();
    let python = joined.walk.n_nodes();
    held.extend(
        (python..joined.n_nodes()).filter(|&node| owners(node).is_some_and(|found| found.unexplained() > 0)),
    );
    held
}

/// How many references torch's C++ objects have to Python objects that are no tensors or functions: what hooks made of saved tensors, the
/// hooks themselves, and the Python object of a storage that C++ keeps for it.
fn objects_of_torch(joined: &Joined<'_>) -> FxHashMap<u32, u32> {
    let mut counts = FxHashMap::default();
    let hooks = joined.torch.edges.iter().filter_map(|edge| match edge.to {
        Node::Object(number) => Some(number),
        _ => None,
    });
    let kept = joined.torch.storages.iter().filter(|storage| storage.owners.keep_object);
    for number in hooks.chain(kept.filter_map(|storage| storage.object)) {
        *counts.entry(number).or_insert(0) += 1;
    }
    counts
}
