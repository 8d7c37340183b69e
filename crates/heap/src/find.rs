//! All of it, one step after the other.

use crate::chain::{Marks, chain};
use crate::cuts::{Cutter, Sharing, is_asked, is_of_module};
use crate::dominators::dominated;
use crate::entries::Entries;
use crate::graph::{BlockState, Heap, Role};
use crate::holders::{Class, Holders, NO_STORAGE, Options, PENDING_FREE, Through};
use crate::kept::{Kept, NONE, edges_are_sound};
use crate::names::{Names, ObjectKind};
use crate::node_set::NodeSet;
use crate::others::Asked;
use crate::paths::{PathId, Paths};
use crate::roles::roles;
use crate::roots::keep_from_roots;
use crate::rows::{Held, rows};
use crate::search::{Origin, Search};
use crate::trace::{Ground, Kinds, Trace};
use crate::unreached::Unreached;

/// Finds who holds each block.
///
/// Every block gets one holder, by the best path that leads to it: a path of Python references before one through the autograd graph, then by the
/// kind of its root in the order of [`RootKind`](crate::RootKind), then one round what is to be avoided, then the one with fewer references, then the one with lower numbers. No path runs through two
/// roots. What no root reaches is held by C code if it hangs on [`Heap::held_outside`] or on an object without any reference to it, and else it
/// is garbage, attributed to the topmost cycle that it hangs on.
///
/// Takes time in proportion to the number of references, nearly; names are asked for only where a path runs.
pub fn find_holders(heap: &Heap, names: &dyn Names, options: &Options) -> Holders {
    let mut warnings = Vec::new();
    let refused;
    let heap = if edges_are_sound(heap) {
        heap
    } else {
        warnings.push("the references of the heap do not fit together and were left out".to_owned());
        refused = Heap { edges: crate::graph::Edges::default(), ..heap.clone() };
        &refused
    };
    warnings.extend(outside_of(heap));
    let hidden = NodeSet::of(heap.n_nodes, heap.hidden.iter().copied()).0;
    let (kept, roots) = keep_from_roots(heap, &hidden);
    let autograd = kept.set_of(heap.autograd.iter().copied());
    let lists = lists_of_parameters(heap, &kept, names, &autograd);
    let kinds = Kinds {
        autograd,
        storages: kept.set_of(heap.storages.iter().copied()),
        avoided: kept.set_of(heap.avoided.iter().copied().chain(lists)),
        modules: kept.set_of(heap.modules.iter().copied()),
    };

    let outside = heap.held_outside.iter().filter_map(|&node| kept.find(node)).collect();
    let mut entries = Entries { roots, outside, ..Entries::default() };
    let mut search = Search::new(&kept.graph, &kinds.autograd, &kinds.avoided);
    entries.enter(&mut search);
    let unreached = Unreached::of(&kept, names, &search);
    (entries.orphans, entries.cycles) = (unreached.orphans, unreached.cycles);
    entries.enter_unreached(&mut search);
    let cycles = entries.cycles_by_end();

    let ground = Ground { kept: &kept, names, kinds: &kinds, search: &search, cycles: &cycles };
    let nodes: Vec<Option<u32>> = heap
        .blocks
        .iter()
        .map(|block| kept.find(block.node).filter(|_| block.state == BlockState::Allocated))
        .collect();
    let mut paths = Paths::new();
    let trace = Trace::to(&ground, nodes.iter().copied().flatten(), &mut paths);
    let marks = Marks {
        dead: heap.dead.iter().filter_map(|(node, reason)| Some((kept.find(*node)?, &reason[..]))).collect(),
        roles: roles(heap, &kept, &kinds.storages),
    };

    let mut holders = Holders::default();
    let mut bytes = vec![0_u64; kept.len() as usize];
    let mut held = Vec::with_capacity(heap.blocks.len());
    let mut cutter = Cutter::default();
    for (block, &node) in heap.blocks.iter().zip(&nodes) {
        let this = match node {
            _ if block.state == BlockState::PendingFree => alone(paths.text(PENDING_FREE), Class::Pending),
            Some(node) if !is_unexplained(&ground, node) => {
                let at = node as usize;
                bytes[at] = bytes[at].saturating_add(block.bytes.0);
                let reach = search.reach[at];
                let class = class(reach.origin, reach.through, marks.roles[at]);
                let object = Cutter::object(&trace, node, is_of_module(class));
                Held {
                    path: trace.path[at],
                    through: reach.through.then_some(Through::Autograd),
                    class,
                    holding: trace.holding[at],
                    cut: is_asked(class).then(|| cutter.cut(&ground, &trace, object)),
                }
            }
            _ => {
                holders.unexplained += block.bytes;
                alone(paths.text(NO_STORAGE), Class::CppHeld)
            }
        };
        holders.total += block.bytes;
        holders.classes.add(this.class, block.bytes);
        held.push(this);
    }

    let at_entries = entries.all();
    let dominated = dominated(&kept.graph, &at_entries, bytes);
    let cuts = held.iter().filter_map(|held| held.cut);
    let sharing = Sharing::of(&ground, &at_entries, &dominated, cuts);
    let others = Asked {
        heap,
        ground: &ground,
        trace: &trace,
        entries: &entries,
        held: &held,
        nodes: &nodes,
        sharing: &sharing,
    };
    (holders.holders, holders.blocks) = rows(&others, &mut paths, &dominated, options, |at| {
        let node = nodes[at].filter(|_| held[at].holding != NONE)?;
        Some(chain(&ground, &trace, &marks, node))
    });
    let n_shared = holders.blocks.windows(2).filter(|pair| pair[0].address == pair[1].address).count();
    if n_shared > 0 {
        warnings.push(format!("{n_shared} blocks have the address of another"));
    }
    holders.warnings = warnings;
    holders
}

/// Containers that refer to parameters, other than those that modules keep them in: `list(model.parameters())`, the copy that a wrapper
/// has for itself. In numbers of the heap.
fn lists_of_parameters(heap: &Heap, kept: &Kept, names: &dyn Names, autograd: &NodeSet) -> Vec<u32> {
    let registries = kept.set_of(heap.registries.iter().copied());
    let parameters = heap.roles.iter().filter(|(_, role)| *role == Role::Parameter).map(|&(node, _)| node);
    let parameters = kept.set_of(parameters);
    if registries.iter().next().is_none() {
        return Vec::new();
    }
    (0..kept.len())
        .filter(|&node| !registries.contains(node) && !autograd.contains(node) && !parameters.contains(node))
        .filter(|&node| kept.graph.out(node).iter().any(|&to| parameters.contains(to)))
        .map(|node| kept.heap_node(node))
        .filter(|&node| names.object(node).kind == ObjectKind::Container)
        .collect()
}

/// A block that no path leads to.
fn alone(path: PathId, class: Class) -> Held {
    Held { path, through: None, class, holding: NONE, cut: None }
}

/// Whether nothing at all refers to a block, not even a storage.
fn is_unexplained(ground: &Ground<'_>, node: u32) -> bool {
    let origin = ground.search.reach[node as usize].origin;
    let is_outside = !matches!(origin, Origin::Root(_) | Origin::Garbage);
    ground.before(node).is_none() && is_outside && !ground.kinds.storages.contains(node)
}

fn class(origin: Origin, through: bool, role: Option<Role>) -> Class {
    match (origin, role) {
        (Origin::Garbage, _) => Class::CycleGarbage,
        (_, Some(Role::Parameter)) => Class::Parameters,
        (_, Some(Role::Gradient)) => Class::Gradients,
        (_, Some(Role::OptimizerState)) => Class::OptimizerState,
        (_, Some(Role::Buffer)) => Class::Buffers,
        (Origin::Root(_), None) if through => Class::Activations,
        (Origin::Root(_), None) => Class::UserHeld,
        (Origin::Outside | Origin::Orphan | Origin::Nowhere, None) => Class::CppHeld,
    }
}

/// What of the heap speaks of nodes that it does not have.
fn outside_of(heap: &Heap) -> Option<String> {
    let exists = |node: &u32| *node < heap.n_nodes;
    let targets = heap.edges.targets.iter().filter(|node| !exists(node)).count();
    let ends = heap.more_edges.iter().filter(|(from, to)| !exists(from) || !exists(to)).count();
    let lists: [(&str, usize); 9] = [
        ("references", targets + ends),
        ("roots", heap.roots.iter().filter(|root| !exists(&root.node)).count()),
        ("blocks", heap.blocks.iter().filter(|block| !exists(&block.node)).count()),
        ("nodes held by C code", heap.held_outside.iter().filter(|node| !exists(node)).count()),
        ("roles", heap.roles.iter().filter(|(node, _)| !exists(node)).count()),
        ("storages", heap.storages.iter().filter(|node| !exists(node)).count()),
        ("autograd nodes", heap.autograd.iter().filter(|node| !exists(node)).count()),
        ("modules", heap.modules.iter().chain(&heap.registries).filter(|node| !exists(node)).count()),
        ("dead, avoided or hidden nodes", {
            let dead = heap.dead.iter().filter(|(node, _)| !exists(node)).count();
            let avoided = heap.avoided.iter().filter(|node| !exists(node)).count();
            dead + avoided + heap.hidden.iter().filter(|node| !exists(node)).count()
        }),
    ];
    let wrong: Vec<String> =
        lists.into_iter().filter(|&(_, n)| n > 0).map(|(what, n)| format!("{what} ({n})")).collect();
    let has_wrong = !wrong.is_empty();
    has_wrong.then(|| {
        format!("left out for lying outside the heap of {} nodes: {}", heap.n_nodes, wrong.join(", "))
    })
}
