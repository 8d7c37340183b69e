//! What is cut when a path is given up, and what is still reached then.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::dominators::Dominated;
use crate::holders::Class;
use crate::kept::NONE;
use crate::names::ObjectKind;
use crate::node_set::NodeSet;
use crate::trace::{Ground, Trace};

/// What is taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Cut {
    /// All references of a node, as if it were not there.
    Node(u32),
    /// The references from one node to another.
    Reference(u32, u32),
}

impl Cut {
    /// What hangs on the other side.
    pub(crate) fn beyond(self) -> u32 {
        match self {
            Self::Node(node) | Self::Reference(_, node) => node,
        }
    }
}

/// Finds the cuts of paths; remembers those of containers, so that a list of a million tensors is asked for once.
#[derive(Default)]
pub(crate) struct Cutter {
    containers: FxHashMap<u32, Cut>,
}

impl Cutter {
    /// The object of which the path to a node is given up: the module of parameters and buffers, else the one that the path names.
    pub(crate) fn object(trace: &Trace, node: u32, of_module: bool) -> u32 {
        match trace.module[node as usize] {
            module if of_module && module != NONE => module,
            _ => trace.object[node as usize],
        }
    }

    /// The cut that gives up the path to an object that it names.
    pub(crate) fn cut(&mut self, ground: &Ground<'_>, trace: &Trace, object: u32) -> Cut {
        let holding = trace.holding[object as usize];
        match ground.before(object) {
            None => Cut::Node(object),
            Some(before) if holding == object => Cut::Reference(before, object),
            Some(_) => {
                if let Some(&known) = self.containers.get(&holding) {
                    return known;
                }
                let cut = of_items(ground, trace, holding);
                self.containers.insert(holding, cut);
                cut
            }
        }
    }
}

/// The cut that takes the items of a container away.
fn of_items(ground: &Ground<'_>, trace: &Trace, container: u32) -> Cut {
    let mut at = container;
    loop {
        let object = ground.object(at);
        let is_fixed =
            object.kind == ObjectKind::Container && matches!(&object.type_name[..], "tuple" | "frozenset");
        let Some(before) = ground.before(at).filter(|_| is_fixed) else { return Cut::Node(at) };
        match trace.holding[at as usize] {
            holding if holding == at || holding == NONE => return Cut::Reference(before, at),
            holding => at = holding,
        }
    }
}

/// Whether it is said who else holds memory of a class.
pub(crate) fn is_asked(class: Class) -> bool {
    matches!(class, Class::UserHeld | Class::Activations) || is_of_module(class)
}

/// Whether memory of a class is given up with its module.
pub(crate) fn is_of_module(class: Class) -> bool {
    matches!(class, Class::Parameters | Class::Buffers)
}

/// Which nodes are still reached after a single cut.
pub(crate) struct Sharing<'a> {
    dominated: &'a Dominated,
    /// What is reached, too, otherwise than by the reference that is cut.
    others: NodeSet,
    /// What that reference leads to by other names, too. They are not cut.
    several: NodeSet,
}

/// So many nodes are asked for other names, where more than one reference leads from one node to another.
const MOST_WITH_NAMES: usize = 4096;

impl<'a> Sharing<'a> {
    /// For some cuts in the kept graph, which is entered at some nodes.
    pub(crate) fn of(
        ground: &Ground<'_>,
        entries: &[u32],
        dominated: &'a Dominated,
        cuts: impl Iterator<Item = Cut>,
    ) -> Self {
        let graph = &ground.kept.graph;
        let mut sources: FxHashMap<u32, u32> = FxHashMap::default();
        let mut targets = NodeSet::empty(graph.len());
        for cut in cuts {
            if let Cut::Reference(from, to) = cut {
                targets.insert(to);
                sources.insert(to, from);
            }
        }
        let mut others = NodeSet::empty(graph.len());
        for &entry in entries.iter().filter(|&&entry| targets.contains(entry)) {
            others.insert(entry);
        }
        let (mut met, mut repeated) = (NodeSet::empty(graph.len()), NodeSet::empty(graph.len()));
        for from in 0..graph.len() {
            for &to in graph.out(from).iter().filter(|&&to| targets.contains(to)) {
                if sources.get(&to) == Some(&from) {
                    if !met.insert(to) {
                        repeated.insert(to);
                    }
                } else if !dominated.dominates(to, from) {
                    others.insert(to);
                }
            }
        }
        let mut several = NodeSet::empty(graph.len());
        for to in repeated.iter().take(MOST_WITH_NAMES).filter(|&to| ground.has_several_names(to)) {
            others.insert(to);
            several.insert(to);
        }
        Self { dominated, others, several }
    }

    /// Whether a cut leaves other names of what it cuts.
    pub(crate) fn leaves_names(&self, cut: Cut) -> bool {
        matches!(cut, Cut::Reference(_, to) if self.several.contains(to))
    }

    /// Whether a node is still reached after a cut.
    pub(crate) fn is_kept(&self, cut: Cut, node: u32) -> bool {
        let others = matches!(cut, Cut::Reference(_, to) if self.others.contains(to));
        others || !self.dominated.dominates(cut.beyond(), node)
    }
}

/// Several cuts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cuts {
    nodes: FxHashSet<u32>,
    references: FxHashSet<(u32, u32)>,
}

impl Cuts {
    /// Adds one.
    pub(crate) fn add(&mut self, cut: Cut) {
        match cut {
            Cut::Node(node) => self.nodes.insert(node),
            Cut::Reference(from, to) => self.references.insert((from, to)),
        };
    }

    /// Takes back what cuts the same references as others.
    pub(crate) fn restore(&mut self, others: &Self) {
        self.references.retain(|reference| !others.references.contains(reference));
    }

    /// Whether a node is as if it were not there.
    #[inline]
    pub(crate) fn takes_node(&self, node: u32) -> bool {
        self.nodes.contains(&node)
    }

    /// Whether a reference is as if it were not there.
    #[inline]
    pub(crate) fn takes(&self, from: u32, to: u32) -> bool {
        self.takes_node(from) || self.takes_node(to) || self.references.contains(&(from, to))
    }
}

impl Extend<Cut> for Cuts {
    fn extend<T: IntoIterator<Item = Cut>>(&mut self, cuts: T) {
        for cut in cuts {
            self.add(cut);
        }
    }
}
