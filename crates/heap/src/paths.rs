//! Spelled paths, each beginning once.
//!
//! A path is a number: that of its last part, which knows the path before it. A million blocks that hang on one list take a million small steps and
//! no texts. Paths become finite where objects do not: linked lists and nested containers are folded, and very long paths are cut.

use rustc_hash::FxHashMap;

use crate::names::Reference;

/// A path. The empty one is [`Paths::EMPTY`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PathId(u32);

/// How often references must repeat to be folded: `.next.next.next` becomes `.next…`.
const REPEATS: usize = 3;
/// The same for items, which nest more often for good reasons: `[*][*][*]` is the state of an optimizer.
const REPEATS_OF_ITEMS: usize = 4;
/// So many references may repeat together: three, as in `.left.children[*]`.
const LONGEST_PERIOD: usize = 3;
/// Paths of more spelled references are cut.
const DEEPEST: u32 = 64;

#[derive(Clone, Debug)]
enum Part {
    /// The beginning of everything.
    Start,
    /// A text that begins a path.
    Text(String),
    /// A reference, by its number in [`Paths::references`].
    Reference(u32),
    /// References that repeat, by their numbers.
    Repeat(Vec<u32>),
    /// More references than are spelled.
    Cut,
}

#[derive(Debug)]
struct Entry {
    /// The path before.
    parent: PathId,
    part: Part,
    /// References from the beginning.
    depth: u32,
    /// The folded path that this one turned out to be the beginning of.
    folded: Option<PathId>,
}

/// All paths that were met.
#[derive(Debug)]
pub(crate) struct Paths {
    entries: Vec<Entry>,
    references: Vec<Reference>,
    numbers: FxHashMap<Reference, u32>,
    steps: FxHashMap<(PathId, u32), PathId>,
    repeats: FxHashMap<(PathId, Vec<u32>), PathId>,
    texts: FxHashMap<String, PathId>,
    cuts: FxHashMap<PathId, PathId>,
}

/// The number of [`Reference::Item`].
const ITEM: u32 = 0;

impl Paths {
    /// The path of no parts.
    pub(crate) const EMPTY: PathId = PathId(0);

    /// No paths but the empty one.
    pub(crate) fn new() -> Self {
        let start = Entry { parent: Self::EMPTY, part: Part::Start, depth: 0, folded: None };
        Self {
            entries: vec![start],
            references: vec![Reference::Item],
            numbers: FxHashMap::default(),
            steps: FxHashMap::default(),
            repeats: FxHashMap::default(),
            texts: FxHashMap::default(),
            cuts: FxHashMap::default(),
        }
    }

    /// The path that is a text.
    pub(crate) fn text(&mut self, text: &str) -> PathId {
        if let Some(&path) = self.texts.get(text) {
            return path;
        }
        let path = self.add(Self::EMPTY, Part::Text(text.to_owned()), 0);
        self.texts.insert(text.to_owned(), path);
        path
    }

    /// The path with a reference more. References that are not spelled change nothing.
    pub(crate) fn step(&mut self, path: PathId, reference: Reference) -> PathId {
        let number = match reference {
            Reference::Hidden | Reference::Autograd(_) => return path,
            Reference::Item => ITEM,
            ref numbered if numbered.spelling() == "[*]" => ITEM,
            other => *self.numbers.entry(other).or_insert_with_key(|new| {
                self.references.push(new.clone());
                self.references.len() as u32 - 1
            }),
        };
        self.step_by_number(path, number)
    }

    fn step_by_number(&mut self, path: PathId, number: u32) -> PathId {
        let begins_anew = self.references[number as usize].begins_anew();
        let path = if begins_anew { Self::EMPTY } else { path };
        if let Some(&known) = self.steps.get(&(path, number)) {
            return known;
        }
        let entry = &self.entries[path.0 as usize];
        let found = match entry.part {
            Part::Cut => path,
            _ if entry.depth >= DEEPEST => self.cut(path),
            _ => {
                let depth = entry.depth + 1;
                match self.fold(path, number) {
                    Some(folded) => folded,
                    None => self.add(path, Part::Reference(number), depth),
                }
            }
        };
        self.steps.insert((path, number), found);
        found
    }

    /// The folded path, if a path with a reference more ends in repetitions.
    fn fold(&mut self, path: PathId, number: u32) -> Option<PathId> {
        // The last references, from behind, and the path before each.
        let mut last = vec![number];
        let mut before = vec![path];
        let mut at = path;
        while last.len() < LONGEST_PERIOD * REPEATS {
            let entry = &self.entries[at.0 as usize];
            let Part::Reference(found) = entry.part else { break };
            at = entry.parent;
            last.push(found);
            before.push(at);
        }
        for period in 1..=LONGEST_PERIOD.min(last.len()) {
            let repeated = last[..period].iter().rev().copied().collect::<Vec<u32>>();
            let before_it = before[period - 1];
            if matches!(&self.entries[before_it.0 as usize].part, Part::Repeat(folded) if *folded == repeated)
            {
                return Some(before_it);
            }
            let is_one = repeated.iter().all(|&each| each == number);
            let repeats = if period == 1 && number == ITEM { REPEATS_OF_ITEMS } else { REPEATS };
            let n = period * repeats;
            let is_repeated = last.len() >= n && (period..n).all(|i| last[i] == last[i - period]);
            if is_repeated && (period == 1 || !is_one) {
                let begins: Vec<PathId> =
                    before[..n].iter().skip(period - 1).step_by(period).copied().collect();
                let (&first, later) = begins.split_last()?;
                let folded = self.repeat(first, repeated);
                for begin in later {
                    self.entries[begin.0 as usize].folded = Some(folded);
                }
                return Some(folded);
            }
        }
        None
    }

    /// The path with references that repeat.
    fn repeat(&mut self, path: PathId, period: Vec<u32>) -> PathId {
        if let Some(&known) = self.repeats.get(&(path, period.clone())) {
            return known;
        }
        let depth = self.entries[path.0 as usize].depth + period.len() as u32;
        let folded = self.add(path, Part::Repeat(period.clone()), depth);
        self.repeats.insert((path, period), folded);
        folded
    }

    fn cut(&mut self, path: PathId) -> PathId {
        if let Some(&known) = self.cuts.get(&path) {
            return known;
        }
        let cut = self.add(path, Part::Cut, DEEPEST);
        self.cuts.insert(path, cut);
        cut
    }

    fn add(&mut self, parent: PathId, part: Part, depth: u32) -> PathId {
        let path = PathId(self.entries.len() as u32);
        self.entries.push(Entry { parent, part, depth, folded: None });
        path
    }

    /// The path that stands for this one once all are known: the first nodes of a linked list are then told by its folded path too.
    pub(crate) fn settled(&mut self, path: PathId) -> PathId {
        let entry = &self.entries[path.0 as usize];
        if let Some(folded) = entry.folded {
            return self.settled(folded);
        }
        let parent = entry.parent;
        if parent == Self::EMPTY {
            return path;
        }
        // Paths are cut at a depth, and so is this.
        let settled = self.settled(parent);
        if settled == parent {
            return path;
        }
        let found = match self.entries[path.0 as usize].part.clone() {
            Part::Reference(number) => self.step_by_number(settled, number),
            Part::Repeat(period) => self.repeat(settled, period),
            Part::Cut => self.cut(settled),
            Part::Start | Part::Text(_) => return path,
        };
        self.settled(found)
    }

    /// Whether the last part is an item.
    pub(crate) fn ends_in_item(&self, path: PathId) -> bool {
        match &self.entries[path.0 as usize].part {
            Part::Reference(number) => *number == ITEM,
            Part::Repeat(period) => period.last() == Some(&ITEM),
            _ => false,
        }
    }

    /// Whether the last part is a variable of a closure.
    pub(crate) fn ends_in_closure(&self, path: PathId) -> bool {
        matches!(self.entries[path.0 as usize].part, Part::Reference(number)
            if matches!(self.references[number as usize], Reference::Closure { .. }))
    }

    /// The path as people read it.
    pub(crate) fn spelling(&self, path: PathId) -> String {
        let mut parts = Vec::new();
        let mut at = path;
        while at != Self::EMPTY {
            let entry = &self.entries[at.0 as usize];
            parts.push(&entry.part);
            at = entry.parent;
        }
        let mut text = String::new();
        for part in parts.into_iter().rev() {
            let spell = |number: &u32| self.references[*number as usize].spelling();
            match part {
                Part::Start => {}
                Part::Text(begin) => text.push_str(begin),
                Part::Reference(number) => text.push_str(&spell(number)),
                Part::Repeat(period) => {
                    for number in period {
                        text.push_str(&spell(number));
                    }
                    text.push('…');
                }
                Part::Cut => text.push('…'),
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spells a path of references, and those of its beginnings: each once all are known, equal neighbours once.
    fn check(references: &[&str], want: &[&str]) {
        let mut paths = Paths::new();
        let mut path = paths.text("head");
        let mut all = vec![path];
        for reference in references {
            path = paths.step(
                path,
                match *reference {
                    "[*]" => Reference::Item,
                    "global" => Reference::Global { module: "m".into(), name: "g".into() },
                    name => Reference::Attribute(name.into()),
                },
            );
            all.push(path);
        }
        let mut texts: Vec<String> = all
            .into_iter()
            .map(|path| {
                let settled = paths.settled(path);
                assert_eq!(paths.settled(settled), settled, "once is enough");
                paths.spelling(settled)
            })
            .collect();
        texts.dedup();
        assert_eq!(texts, want);
    }

    #[test]
    fn paths_are_spelled() {
        check(&["a", "[*]", "b"], &["head", "head.a", "head.a[*]", "head.a[*].b"]);
        check(
            &["layers", "0", "weight"],
            &["head", "head.layers", "head.layers[*]", "head.layers[*].weight"],
        );
        check(&["a", "global", "b"], &["head", "head.a", "m.g", "m.g.b"]);
    }

    #[test]
    fn linked_lists_fold() {
        check(&["next", "next", "value"], &["head", "head.next", "head.next.next", "head.next.next.value"]);
        check(&["next", "next", "next", "value"], &["head", "head.next…", "head.next….value"]);
        check(&["next"; 1000], &["head", "head.next…"]);
        check(&["[*]"; 3], &["head", "head[*]", "head[*][*]", "head[*][*][*]"]);
        check(&["[*]"; 9], &["head", "head[*]…"]);
        check(&["global"; 9], &["head", "m.g"]);
    }

    #[test]
    fn what_repeats_together_folds() {
        check(&["a", "[*]"].repeat(2), &["head", "head.a", "head.a[*]", "head.a[*].a", "head.a[*].a[*]"]);
        let want =
            [["head", "head.a"].to_vec(), ["head.a[*]…", "head.a[*]….a"].repeat(49), vec!["head.a[*]…"]];
        check(&["a", "[*]"].repeat(50), &want.concat());
    }

    #[test]
    fn deep_paths_are_cut() {
        let names: Vec<String> = (0..100).map(|i| format!("a{i}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut paths = Paths::new();
        let path = names
            .iter()
            .fold(Paths::EMPTY, |path, name| paths.step(path, Reference::Attribute((*name).into())));
        let text = paths.spelling(path);
        assert!(text.ends_with(".a62.a63…"), "{text}");
    }
}
