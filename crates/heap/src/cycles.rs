//! Cycles of garbage, and the reference that closes each.

use crate::components::Components;
use crate::kept::{Kept, NONE};
use crate::names::{Names, ObjectKind, Reference};
use crate::node_set::NodeSet;

/// A cycle that nothing alive refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cycle {
    /// Where the closing reference leads.
    pub(crate) start: u32,
    /// The object that the closing reference belongs to.
    pub(crate) owner: u32,
    /// `unreachable: Node.me`
    pub(crate) path: String,
    /// The reference as it is shown behind its owner: `.me`. Empty if no reference of the cycle is spelled.
    pub(crate) reference: String,
}

/// How far a name is sought back along a cycle.
const FARTHEST: usize = 64;

/// Finds the closing references of components that are cycles.
pub(crate) struct Closing<'a> {
    pub(crate) kept: &'a Kept,
    pub(crate) names: &'a dyn Names,
    pub(crate) components: &'a Components,
    /// Nodes that were passed; components have none in common.
    seen: NodeSet,
}

impl<'a> Closing<'a> {
    /// For the components of a graph.
    pub(crate) fn new(kept: &'a Kept, names: &'a dyn Names, components: &'a Components) -> Self {
        Self { kept, names, components, seen: NodeSet::empty(kept.len()) }
    }

    /// The first cycle that a search depth first from the oldest object of a component finds, named by the reference that closes it.
    ///
    /// An instance and its `__dict__` are one, and so the last reference that is spelled closes the cycle, wherever in it the oldest object lies.
    pub(crate) fn cycle(&mut self, component: u32) -> Option<Cycle> {
        let start = *self.components.members(component).first()?;
        let nodes = self.first_cycle(start);
        let n = nodes.len();
        let node = |i: usize| nodes[i % n];
        // Counting from n keeps what lies before the start above zero; no name is sought more than once round.
        let reference = |i: usize| {
            let at = |i: usize| self.kept.heap_node(node(i));
            self.names.reference(Some(at(i + n - 1)), at(i), at(i + 1))
        };
        let lowest = n.saturating_sub(FARTHEST);
        let Some(closing) = (lowest..n).rev().find(|&i| !reference(i).spelling().is_empty()) else {
            let path = format!("unreachable: {}", self.object(start).type_name);
            return Some(Cycle { start, owner: start, path, reference: String::new() });
        };
        let closing_reference = reference(closing);
        let mut spelled = closing_reference.spelling().into_owned();
        let mut owner = closing;
        let mut is_anew = closing_reference.begins_anew();
        // Up to the owner: lists, dicts and cells belong to whatever they are a part of.
        for i in (closing + 1..closing + n).rev().take(FARTHEST) {
            let is_part = matches!(
                self.object(node(owner)).kind,
                ObjectKind::Container | ObjectKind::Namespace | ObjectKind::Cell
            );
            if is_anew || !is_part {
                break;
            }
            let before: Reference = reference(i);
            spelled.insert_str(0, &before.spelling());
            is_anew = before.begins_anew();
            owner = i;
        }
        let is_part =
            |i: usize| matches!(self.object(node(i)).kind, ObjectKind::Container | ObjectKind::Namespace);
        if !is_anew && is_part(owner) {
            // Containers all round.
            owner = closing;
            spelled = closing_reference.spelling().into_owned();
        }
        let path = if is_anew {
            format!("unreachable: {spelled}")
        } else {
            let object = self.object(node(owner));
            // Not by its metaclass.
            let is_named_class = object.kind == ObjectKind::Class && !object.detail.is_empty();
            let name = if is_named_class { object.detail } else { object.type_name };
            let name = name.strip_prefix("class ").unwrap_or(&name);
            format!("unreachable: {name}{spelled}")
        };
        let owner = node(owner);
        let reference = if is_anew { closing_reference.step().into_owned() } else { spelled };
        Some(Cycle { start: node(closing + 1), owner, path, reference })
    }

    fn object(&self, node: u32) -> crate::names::Object {
        self.names.object(self.kept.heap_node(node))
    }

    /// The nodes of a cycle through a node of a component, beginning with it.
    fn first_cycle(&mut self, start: u32) -> Vec<u32> {
        let component = self.components.of[start as usize];
        let mut path: Vec<(u32, usize)> = vec![(start, 0)];
        while let Some((node, followed)) = path.last_mut() {
            let Some(&to) = self.kept.graph.out(*node).get(*followed) else {
                path.pop();
                continue;
            };
            *followed += 1;
            if to == start {
                break;
            }
            if component != NONE && self.components.of[to as usize] == component && self.seen.insert(to) {
                path.push((to, 0));
            }
        }
        if path.is_empty() { vec![start] } else { path.into_iter().map(|(node, _)| node).collect() }
    }
}
