//! Sets of nodes as bits.

/// Some of the nodes from 0 to n. A lookup in it stays in the cache where an array of numbers would not.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeSet {
    words: Vec<u64>,
    n: u32,
}

impl NodeSet {
    /// None of `n` nodes.
    pub(crate) fn empty(n: u32) -> Self {
        Self { words: vec![0; (n as usize).div_ceil(64)], n }
    }

    /// Those of the nodes that exist, and how many do not.
    pub(crate) fn of(n: u32, nodes: impl IntoIterator<Item = u32>) -> (Self, usize) {
        let mut set = Self::empty(n);
        let mut n_outside = 0;
        for node in nodes {
            if node < n {
                set.insert(node);
            } else {
                n_outside += 1;
            }
        }
        (set, n_outside)
    }

    /// Whether a node is in the set.
    #[inline]
    pub(crate) fn contains(&self, node: u32) -> bool {
        self.words.get((node / 64) as usize).is_some_and(|word| word >> (node % 64) & 1 == 1)
    }

    /// Adds a node; whether it is new. Nodes that do not exist are not added.
    #[inline]
    pub(crate) fn insert(&mut self, node: u32) -> bool {
        if node >= self.n {
            return false;
        }
        let Some(word) = self.words.get_mut((node / 64) as usize) else { return false };
        let bit = 1 << (node % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    /// Takes a node out.
    pub(crate) fn remove(&mut self, node: u32) {
        if let Some(word) = self.words.get_mut((node / 64) as usize) {
            *word &= !(1 << (node % 64));
        }
    }

    /// Its nodes in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.words.iter().zip((0..).step_by(64)).flat_map(|(&word, base)| {
            std::iter::successors((word != 0).then_some(word), |&word| {
                let rest = word & (word - 1);
                (rest != 0).then_some(rest)
            })
            .map(move |word| base + word.trailing_zeros())
        })
    }

    /// Numbers its nodes from 0, in order.
    pub(crate) fn numbered(self) -> Numbered {
        let mut count = 0;
        let before = self
            .words
            .iter()
            .map(|word| {
                let before = count;
                count += word.count_ones();
                before
            })
            .collect();
        Numbered { set: self, before, count }
    }
}

/// A set of nodes that are numbered anew from 0, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbered {
    set: NodeSet,
    /// How many nodes of the set there are before each word.
    before: Vec<u32>,
    count: u32,
}

impl Numbered {
    /// How many nodes there are.
    pub(crate) fn len(&self) -> u32 {
        self.count
    }

    /// The number of a node within the set.
    #[inline]
    pub(crate) fn find(&self, node: u32) -> Option<u32> {
        let at = (node / 64) as usize;
        let word = *self.set.words.get(at)?;
        let bit = 1_u64 << (node % 64);
        (word & bit != 0).then(|| self.before.get(at).copied().unwrap_or(0) + (word & (bit - 1)).count_ones())
    }

    /// The nodes, in order.
    pub(crate) fn nodes(&self) -> Vec<u32> {
        self.set.iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_numbered_in_order() {
        let (set, n_outside) = NodeSet::of(200, [130, 3, 64, 3, 200, 63]);
        assert_eq!(n_outside, 1);
        assert_eq!(set.iter().collect::<Vec<_>>(), [3, 63, 64, 130]);
        let numbered = set.numbered();
        assert_eq!(numbered.nodes(), [3, 63, 64, 130]);
        assert_eq!(numbered.len(), 4);
        let found: Vec<_> = [3, 63, 64, 130, 4, 131, 5000].map(|node| numbered.find(node)).into();
        assert_eq!(found, [Some(0), Some(1), Some(2), Some(3), None, None, None]);
    }

    #[test]
    fn what_is_out_of_range_is_not_in_it() {
        let mut set = NodeSet::empty(65);
        assert!(!set.insert(65) && !set.insert(127) && !set.insert(u32::MAX));
        assert!(set.insert(64) && !set.insert(64));
        set.remove(64);
        set.remove(u32::MAX);
        assert_eq!(set.iter().count(), 0);
    }
}
