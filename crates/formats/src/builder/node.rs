//! What became of each container, in half a word: a snapshot has more containers than anything but references to them.

use vramscope_model::{FrameId, PoolId, StackId};

/// What became of a container. Numbers are places in the builder's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    /// A dict or list that holds nothing yet.
    Empty,
    /// A dict that has not shown what it is, or whose items are wanted as they are (settings).
    Items(u32),
    /// A list of values that is neither a stack nor a trace.
    Values(u32),
    Frame(FrameId),
    /// A stack that came in one piece.
    Stack(StackId),
    /// A stack that comes frame by frame.
    Growing(u32),
    Event(u32),
    /// A list of events, as ranges of the event columns.
    Trace(u32),
    Block(u32),
    History(u32),
    Segment(u32),
    Annotation(u32),
    Pool(PoolId),
    Root(u32),
}

/// Every container's node, by its number.
#[derive(Default)]
pub(super) struct Nodes(Vec<u32>);

const TAG_BITS: u32 = 4;
const TAG: u32 = (1 << TAG_BITS) - 1;
/// The most containers: their places must fit beside the tag.
pub(super) const MOST: usize = 1 << (32 - TAG_BITS);

impl Nodes {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds a node and returns its number.
    #[inline]
    pub(super) fn push(&mut self, node: Node) -> u32 {
        self.0.push(pack(node));
        self.0.len() as u32 - 1
    }

    /// The node of that number; empty for a number that was never given out.
    #[inline]
    pub(super) fn get(&self, number: u32) -> Node {
        self.0.get(number as usize).map_or(Node::Empty, |&packed| unpack(packed))
    }

    #[inline]
    pub(super) fn set(&mut self, number: u32, node: Node) {
        if let Some(place) = self.0.get_mut(number as usize) {
            *place = pack(node);
        }
    }
}

#[inline]
fn pack(node: Node) -> u32 {
    let (tag, index) = match node {
        Node::Empty => (0, 0),
        Node::Items(i) => (1, i),
        Node::Values(i) => (2, i),
        Node::Frame(FrameId(i)) => (3, i),
        Node::Stack(StackId(i)) => (4, i),
        Node::Growing(i) => (5, i),
        Node::Event(i) => (6, i),
        Node::Trace(i) => (7, i),
        Node::Block(i) => (8, i),
        Node::History(i) => (9, i),
        Node::Segment(i) => (10, i),
        Node::Annotation(i) => (11, i),
        Node::Pool(PoolId(i)) => (12, u32::from(i)),
        Node::Root(i) => (13, i),
    };
    // No table is longer than there are containers, and those are bounded.
    debug_assert!((index as usize) < MOST, "a place beyond what is accepted");
    (index << TAG_BITS) | tag
}

#[inline]
fn unpack(packed: u32) -> Node {
    let i = packed >> TAG_BITS;
    match packed & TAG {
        1 => Node::Items(i),
        2 => Node::Values(i),
        3 => Node::Frame(FrameId(i)),
        4 => Node::Stack(StackId(i)),
        5 => Node::Growing(i),
        6 => Node::Event(i),
        7 => Node::Trace(i),
        8 => Node::Block(i),
        9 => Node::History(i),
        10 => Node::Segment(i),
        11 => Node::Annotation(i),
        12 => Node::Pool(PoolId(i as u16)),
        13 => Node::Root(i),
        _ => Node::Empty,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_come_back_as_they_were() {
        let most = MOST as u32 - 1;
        let mut nodes = Nodes::default();
        for node in [
            Node::Empty,
            Node::Items(most),
            Node::Values(1),
            Node::Frame(FrameId(2)),
            Node::Stack(StackId(most)),
            Node::Growing(3),
            Node::Event(most),
            Node::Trace(4),
            Node::Block(5),
            Node::History(6),
            Node::Segment(7),
            Node::Annotation(8),
            Node::Pool(PoolId(u16::MAX)),
            Node::Root(9),
        ] {
            let number = nodes.push(Node::Empty);
            nodes.set(number, node);
            assert_eq!(nodes.get(number), node);
        }
        assert_eq!(nodes.get(1000), Node::Empty);
    }
}
