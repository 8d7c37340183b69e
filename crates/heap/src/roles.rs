//! What memory is known to be.

use crate::graph::{Heap, Role};
use crate::kept::Kept;
use crate::node_set::NodeSet;

/// The role of each node: of the tensors that have one, of their storages, and of the blocks of those.
pub(crate) fn roles(heap: &Heap, kept: &Kept, storages: &NodeSet) -> Vec<Option<Role>> {
    let blocks = kept.set_of(heap.blocks.iter().map(|block| block.node));
    let mut roles: Vec<Option<Role>> = vec![None; kept.len() as usize];
    let better = |at: &mut Option<Role>, role| *at = Some(at.map_or(role, |other| role.min(other)));
    for &(node, role) in &heap.roles {
        let Some(node) = kept.find(node) else { continue };
        better(&mut roles[node as usize], role);
        for &to in kept.graph.out(node) {
            if storages.contains(to) || blocks.contains(to) {
                better(&mut roles[to as usize], role);
            }
        }
    }
    for storage in storages.iter() {
        if let Some(role) = roles[storage as usize] {
            for &to in kept.graph.out(storage).iter().filter(|&&to| blocks.contains(to)) {
                better(&mut roles[to as usize], role);
            }
        }
    }
    roles
}
