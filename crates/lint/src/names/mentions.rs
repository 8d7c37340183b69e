//! Mentions, put together by what is mentioned.

use std::hash::Hash;

use rustc_hash::FxHashMap;

use super::Use;

/// Mentions in the order of the walk, each of something with a key.
pub(super) struct Mentions<'a, K> {
    numbers: FxHashMap<K, u32>,
    each: Vec<(u32, Use<'a>)>,
}

impl<K> Default for Mentions<'_, K> {
    fn default() -> Self {
        Self { numbers: FxHashMap::default(), each: Vec::new() }
    }
}

impl<'a, K: Copy + Eq + Hash> Mentions<'a, K> {
    pub(super) fn add(&mut self, key: K, one_use: Use<'a>) {
        let next = self.numbers.len() as u32;
        let number = *self.numbers.entry(key).or_insert(next);
        self.each.push((number, one_use));
    }

    /// The mentions of each owner, where several keys may stand for one owner, and some for none.
    ///
    /// They are counted first: there is a list for every name of a program, and none should be larger than what is in it.
    pub(super) fn by_owner<O: Copy + Eq + Hash>(
        self,
        owner_of: impl Fn(K) -> Option<O>,
    ) -> impl Iterator<Item = (O, Box<[Use<'a>]>)> {
        let mut lists: FxHashMap<O, u32> = FxHashMap::default();
        let mut list_of = vec![None; self.numbers.len()];
        #[expect(
            clippy::iter_over_hash_type,
            reason = "lists are told apart by their numbers, whatever those are"
        )]
        for (key, number) in self.numbers {
            if let Some(owner) = owner_of(key) {
                let next = lists.len() as u32;
                list_of[number as usize] = Some(*lists.entry(owner).or_insert(next));
            }
        }
        let list_of = |number: u32| list_of.get(number as usize).copied().flatten();
        let mut counts = vec![0_usize; lists.len()];
        for list in self.each.iter().filter_map(|(number, _)| list_of(*number)) {
            counts[list as usize] += 1;
        }
        let mut filled: Vec<Vec<Use<'a>>> = counts.into_iter().map(Vec::with_capacity).collect();
        for (number, one_use) in self.each {
            if let Some(list) = list_of(number) {
                filled[list as usize].push(one_use);
            }
        }
        lists
            .into_iter()
            .map(move |(owner, list)| (owner, std::mem::take(&mut filled[list as usize]).into_boxed_slice()))
    }
}
