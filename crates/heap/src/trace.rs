//! What the paths to blocks say: how they are spelled, and which object holds.

use crate::cycles::Cycle;
use crate::holders::CPP;
use crate::kept::{Kept, NONE};
use crate::names::{Names, Object, ObjectKind, Reference};
use crate::node_set::NodeSet;
use crate::paths::{PathId, Paths};
use crate::search::{Origin, Search};
use rustc_hash::FxHashMap;

/// Which nodes are what, in numbers of the kept graph.
#[derive(Debug)]
pub(crate) struct Kinds {
    /// Nodes of the autograd graph.
    pub(crate) autograd: NodeSet,
    /// Storages.
    pub(crate) storages: NodeSet,
    /// What paths go round.
    pub(crate) avoided: NodeSet,
    /// Modules of a neural network.
    pub(crate) modules: NodeSet,
}

/// What is asked for while paths are followed.
pub(crate) struct Ground<'a> {
    pub(crate) kept: &'a Kept,
    pub(crate) names: &'a dyn Names,
    pub(crate) kinds: &'a Kinds,
    pub(crate) search: &'a Search<'a>,
    /// Cycles of garbage by both ends of their closing reference.
    pub(crate) cycles: &'a FxHashMap<u32, Cycle>,
}

impl Ground<'_> {
    /// What a node is.
    pub(crate) fn object(&self, node: u32) -> Object {
        self.names.object(self.kept.heap_node(node))
    }

    /// How the node before on its path refers to a node; nothing if no node is before.
    pub(crate) fn reference(&self, node: u32) -> Option<Reference> {
        let from = self.before(node)?;
        if self.kinds.storages.contains(node) || self.kinds.storages.contains(from) {
            // Storages and blocks have no names of their own.
            return Some(Reference::Hidden);
        }
        let heap_node = |node| self.kept.heap_node(node);
        Some(self.names.reference(self.before(from).map(heap_node), heap_node(from), heap_node(node)))
    }

    /// All names by which the node before on its path refers to a node.
    fn names(&self, node: u32) -> Vec<Reference> {
        let Some(from) = self.before(node) else { return Vec::new() };
        let is_repeated = self.kept.graph.out(from).iter().filter(|&&to| to == node).nth(1).is_some();
        if !is_repeated || self.kinds.storages.contains(node) || self.kinds.storages.contains(from) {
            return self.reference(node).into_iter().collect();
        }
        let heap_node = |node| self.kept.heap_node(node);
        self.names.names(self.before(from).map(heap_node), heap_node(from), heap_node(node))
    }

    /// Whether the node before on its path refers to a node by names that are spelled differently.
    pub(crate) fn has_several_names(&self, node: u32) -> bool {
        let names = self.names(node);
        names.iter().skip(1).any(|name| name.spelling() != names[0].spelling())
    }

    /// The node before on the path to a node.
    pub(crate) fn before(&self, node: u32) -> Option<u32> {
        let parent = self.search.parent[node as usize];
        (parent != NONE).then_some(parent)
    }
}

/// What is known of the paths to some nodes, by node. Nodes that are on none of them have no meaning in here.
pub(crate) struct Trace {
    /// How the path is spelled.
    pub(crate) path: Vec<PathId>,
    /// The object that the path names.
    pub(crate) object: Vec<u32>,
    /// The object that holds: the one that the path names, or if that is an item, its container.
    pub(crate) holding: Vec<u32>,
    /// Where the path begins.
    pub(crate) origin: Vec<u32>,
    /// The first object after the origin that the path names; [`NONE`] if it names no other.
    pub(crate) named_first: Vec<u32>,
    /// The container of the last item at or above the object that the path names; [`NONE`] if there is no item.
    pub(crate) container: Vec<u32>,
    /// The first module of a neural network that the path comes to, as the path names it; [`NONE`] if it comes to none.
    pub(crate) module: Vec<u32>,
    /// The first of the autograd nodes that follow each other up to this one; of others themselves.
    pub(crate) run: Vec<u32>,
}

impl Trace {
    /// Follows the paths to some nodes. Every reference on them is asked for once, however many of the nodes are behind it.
    pub(crate) fn to(ground: &Ground<'_>, nodes: impl Iterator<Item = u32>, paths: &mut Paths) -> Self {
        let n = ground.kept.len() as usize;
        let mut on_path = NodeSet::empty(ground.kept.len());
        for node in nodes {
            let mut at = Some(node);
            while let Some(node) = at.filter(|&node| on_path.insert(node)) {
                at = ground.before(node);
            }
        }
        let mut this = Self {
            path: vec![Paths::EMPTY; n],
            object: vec![NONE; n],
            holding: vec![NONE; n],
            origin: vec![NONE; n],
            named_first: vec![NONE; n],
            container: vec![NONE; n],
            module: vec![NONE; n],
            run: (0..ground.kept.len()).collect(),
        };
        // The path to these does not grow any more.
        let mut ended = NodeSet::empty(ground.kept.len());
        for &node in ground.search.order.iter().filter(|&&node| on_path.contains(node)) {
            let at = node as usize;
            let is_autograd = ground.kinds.autograd.contains(node);
            let Some(before) = ground.before(node) else {
                let (path, ends) = beginning(ground, node, paths);
                this.path[at] = path;
                this.object[at] = node;
                this.holding[at] = ground.cycles.get(&node).map_or(node, |cycle| cycle.start);
                this.origin[at] = node;
                if ends || is_autograd {
                    ended.insert(node);
                }
                continue;
            };
            let from = before as usize;
            this.path[at] = this.path[from];
            this.object[at] = this.object[from];
            this.holding[at] = this.holding[from];
            this.origin[at] = this.origin[from];
            this.named_first[at] = this.named_first[from];
            this.container[at] = this.container[from];
            this.module[at] = this.module[from];
            if is_autograd && ground.kinds.autograd.contains(before) {
                this.run[at] = this.run[from];
            }
            if ended.contains(before) {
                ended.insert(node);
                continue;
            }
            if is_autograd {
                // A variable may name it; else it belongs to the object before.
                ended.insert(node);
            }
            match ground.reference(node) {
                None => {}
                Some(Reference::Hidden | Reference::Autograd(_)) => {
                    // A variable of a closure means its value, not its cell.
                    let is_variable = this.object[from] == before && paths.ends_in_closure(this.path[from]);
                    if is_variable && ground.object(before).kind == ObjectKind::Cell {
                        this.object[at] = node;
                        this.holding[at] = node;
                        this.meet(ground, node);
                    }
                }
                Some(reference) => {
                    this.path[at] = paths.step(this.path[from], reference);
                    this.object[at] = node;
                    if this.named_first[at] == NONE {
                        this.named_first[at] = node;
                    }
                    this.holding[at] = node;
                    if paths.ends_in_item(this.path[at]) {
                        this.holding[at] = this.object[from];
                        this.container[at] = this.object[from];
                    }
                    this.meet(ground, node);
                }
            }
        }
        this
    }

    /// The paths to an object by all names of the reference that leads to `named`, which is the object or what the path to it runs through.
    pub(crate) fn spellings(
        &self,
        ground: &Ground<'_>,
        object: u32,
        named: u32,
        paths: &mut Paths,
    ) -> Vec<PathId> {
        let mut spelled = vec![paths.settled(self.path[object as usize])];
        let mut behind = Vec::new();
        let mut at = object;
        while at != named {
            let Some(before) = ground.before(at) else { return spelled };
            behind.extend(ground.reference(at));
            at = before;
        }
        let Some(before) = ground.before(named) else { return spelled };
        for name in ground.names(named).into_iter().skip(1) {
            let begin = paths.step(self.path[before as usize], name);
            let path = behind.iter().rev().fold(begin, |path, next| paths.step(path, next.clone()));
            let path = paths.settled(path);
            if !spelled.contains(&path) {
                spelled.push(path);
            }
        }
        spelled
    }

    /// Notes the first module.
    fn meet(&mut self, ground: &Ground<'_>, node: u32) {
        let module = &mut self.module[node as usize];
        if *module == NONE && ground.kinds.modules.contains(node) {
            *module = node;
        }
    }
}

/// How a path begins, and whether it ends right there.
fn beginning(ground: &Ground<'_>, node: u32, paths: &mut Paths) -> (PathId, bool) {
    match ground.search.reach[node as usize].origin {
        Origin::Garbage => match ground.cycles.get(&node) {
            Some(cycle) => (paths.text(&cycle.path), true),
            None => (paths.text("unreachable"), true),
        },
        Origin::Outside | Origin::Orphan | Origin::Nowhere => {
            let object = ground.object(node);
            let is_python = !ground.kinds.storages.contains(node)
                && !matches!(
                    object.kind,
                    ObjectKind::Tensor | ObjectKind::Storage | ObjectKind::Block | ObjectKind::Autograd
                );
            if is_python {
                (paths.text(&format!("C code: {}", object.type_name)), false)
            } else {
                (paths.text(CPP), true)
            }
        }
        Origin::Root(_) => {
            // Most often the first reference begins anew.
            let object = ground.object(node);
            let name = if object.detail.is_empty() { object.type_name } else { object.detail };
            (paths.text(&name), false)
        }
    }
}
