//! The operations whose results a function computes, as autograd would record them, and which of them a backward releases.

use super::value::Nodes;
use crate::names::LoopId;

/// All operations that were seen in one file.
#[derive(Default)]
pub(crate) struct Tape {
    operations: Vec<Operation>,
}

struct Operation {
    /// The operations whose results it used.
    inputs: Nodes,
    /// Whether a backward pass frees what it saved.
    released: bool,
    /// It stands for what a name held when this loop began another round.
    carried_around: Option<LoopId>,
}

impl Tape {
    /// Records an operation. What is computed from a graph that a backward pass has freed adds nothing to it that is worth
    /// speaking of.
    pub(crate) fn record(&mut self, inputs: Nodes) -> u32 {
        let released = self.are_released(&inputs);
        let id = self.push(inputs, None);
        if let Some(operation) = self.operations.get_mut(id as usize) {
            operation.released = released;
        }
        id
    }

    /// Records that a value comes from the round before.
    pub(crate) fn carry(&mut self, inputs: Nodes, around: LoopId) -> u32 {
        self.push(inputs, Some(around))
    }

    fn push(&mut self, inputs: Nodes, carried_around: Option<LoopId>) -> u32 {
        let id = self.operations.len() as u32;
        self.operations.push(Operation { inputs, released: false, carried_around });
        id
    }

    /// A backward pass from `roots`: it frees what they and all that they were computed from have saved.
    pub(crate) fn release(&mut self, roots: &[u32]) {
        let mut waiting: Vec<u32> = roots.to_vec();
        while let Some(id) = waiting.pop() {
            let Some(operation) = self.operations.get_mut(id as usize) else { continue };
            if !std::mem::replace(&mut operation.released, true) {
                waiting.extend(&operation.inputs);
            }
        }
    }

    /// Whether a backward pass freed all that these operations saved.
    pub(crate) fn are_released(&self, nodes: &[u32]) -> bool {
        !nodes.is_empty()
            && nodes.iter().all(|it| {
                self.operations.get(*it as usize).is_some_and(|it| it.released || it.carried_around.is_some())
            })
    }

    /// Whether `nodes` were computed from what was carried around `the_loop`.
    pub(crate) fn reach_round_before(&self, nodes: &[u32], carried: u32, the_loop: LoopId) -> bool {
        let mut seen = vec![false; self.operations.len()];
        let mut waiting: Vec<u32> = nodes.to_vec();
        while let Some(id) = waiting.pop() {
            if id == carried {
                return self
                    .operations
                    .get(id as usize)
                    .is_some_and(|it| it.carried_around == Some(the_loop));
            }
            let Some(operation) = self.operations.get(id as usize) else { continue };
            if !std::mem::replace(&mut seen[id as usize], true) {
                waiting.extend(&operation.inputs);
            }
        }
        false
    }
}
