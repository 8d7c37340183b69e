//! Which tensors are parameters, gradients, state of optimizers and buffers.

use rustc_hash::FxHashSet;
use vramscope_heap::Role;

use super::joined::Joined;
use super::tag;
use crate::torch::graph::{Label, Node};

/// State lies in the dict of each parameter in `Optimizer.state`, and some optimizers keep lists or dicts in it.
const DEEPEST_STATE: usize = 5;

/// All roles that are known.
pub(super) fn roles(joined: &Joined<'_>) -> Vec<(u32, Role)> {
    let walk = &joined.walk;
    let mut roles = Vec::new();
    let is_tensor = |node: u32| matches!(joined.origin(node), Some(Node::Tensor(_)));
    let mut parameters = FxHashSet::default();
    for &(node, tag) in &walk.instances {
        if tag == tag::PARAMETER {
            parameters.insert(node);
        }
    }
    for (module, tag) in walk.instances.iter().copied() {
        if tag != tag::MODULE {
            continue;
        }
        for (registry, role) in [(c"_parameters", Role::Parameter), (c"_buffers", Role::Buffer)] {
            let Some(registry) = walk.own_attribute(module, registry) else { continue };
            for &value in walk.edges.of(registry) {
                if is_tensor(value) {
                    roles.push((value, role));
                    if role == Role::Parameter {
                        parameters.insert(value);
                    }
                }
            }
        }
    }
    for (optimizer, tag) in walk.instances.iter().copied() {
        if tag != tag::OPTIMIZER {
            continue;
        }
        if let Some(state) = walk.own_attribute(optimizer, c"state") {
            // The keys are the parameters themselves.
            let mut seen = parameters.clone();
            let mut level = vec![state];
            for _ in 0..DEEPEST_STATE {
                let mut below = Vec::new();
                for &node in level.iter().flat_map(|&node| walk.edges.of(node)) {
                    if !seen.insert(node) {
                        continue;
                    }
                    if is_tensor(node) {
                        roles.push((node, Role::OptimizerState));
                    } else if walk.is_container(node) {
                        below.push(node);
                    }
                }
                level = below;
            }
        }
    }
    roles.extend(parameters.into_iter().map(|node| (node, Role::Parameter)));
    roles.extend(
        joined
            .torch
            .edges
            .iter()
            .filter(|edge| edge.label == Label::Grad)
            .filter_map(|edge| Some((joined.node(edge.to)?, Role::Gradient))),
    );
    roles.sort_unstable();
    roles.dedup();
    roles
}
