//! Which file of one run is which of another, when the program lay in different folders.

use rustc_hash::{FxHashMap, FxHashSet};
use vramscope_model::{StringId, Symbols};

/// Files of `before` and the file of `after` that each is: the same path, else the one whose path ends alike over
/// the most folders, if each is the other's only best.
pub(super) fn same_files(
    before: &[StringId],
    after: &[StringId],
    symbols: &Symbols,
) -> FxHashMap<StringId, StringId> {
    let (ends_before, ends_after) = (Ends::new(before, symbols), Ends::new(after, symbols));
    let known: FxHashSet<StringId> = after.iter().copied().collect();
    let mut same = FxHashMap::default();
    for &file in before {
        let partner = if known.contains(&file) {
            Some(file)
        } else {
            ends_after
                .only_best(symbols.str(file))
                .filter(|&b| ends_before.only_best(symbols.str(b)) == Some(file))
        };
        if let Some(partner) = partner {
            same.insert(file, partner);
        }
    }
    same
}

/// Paths in the order of their parts from the end, so that those that end alike lie side by side.
struct Ends<'a>(Vec<(&'a str, StringId)>);

impl<'a> Ends<'a> {
    fn new(files: &[StringId], symbols: &'a Symbols) -> Self {
        let mut paths: Vec<(&str, StringId)> = files.iter().map(|&file| (symbols.str(file), file)).collect();
        paths.sort_by(|(a, _), (b, _)| parts(a).cmp(parts(b)));
        Self(paths)
    }

    /// The path that shares the longest end with `path`, if only one does. The file's name must be in that end.
    fn only_best(&self, path: &str) -> Option<StringId> {
        let place = self.0.partition_point(|(other, _)| parts(other).lt(parts(path)));
        // The nearest share the most, so the best and the next best are among two on either side.
        let near = self.0.get(place.saturating_sub(2)..self.0.len().min(place + 2))?;
        let shared = |&(other, file): &(&str, StringId)| (common_tail(path, other), file);
        let best = near.iter().map(shared).map(|(n, _)| n).max().filter(|&n| n > 0)?;
        let mut winners = near.iter().map(shared).filter(|&(n, _)| n == best);
        let (_, winner) = winners.next()?;
        winners.next().is_none().then_some(winner)
    }
}

/// How many parts of two paths agree, counted from their ends.
pub(super) fn common_tail(a: &str, b: &str) -> usize {
    parts(a).zip(parts(b)).take_while(|(a, b)| a == b).count()
}

/// The parts of a path from its end.
fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.rsplit(['/', '\\'])
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn check(before: &[&str], after: &[&str], want: &[(&str, &str)]) {
        let mut symbols = Symbols::default();
        let a: Vec<StringId> = before.iter().map(|p| symbols.string(p)).collect();
        let b: Vec<StringId> = after.iter().map(|p| symbols.string(p)).collect();
        let same = same_files(&a, &b, &symbols);
        let mut got: Vec<(&str, &str)> =
            same.iter().map(|(&a, &b)| (symbols.str(a), symbols.str(b))).collect();
        got.sort_unstable();
        assert_eq!(got, want);
    }

    #[test]
    fn files_are_matched_by_the_longest_common_end() {
        check(&["/home/a/x.py"], &["/srv/b/x.py"], &[("/home/a/x.py", "/srv/b/x.py")]);
        check(
            &["/a/model/__init__.py", "/a/data/__init__.py"],
            &["C:\\b\\model\\__init__.py", "C:\\b\\data\\__init__.py"],
            &[
                ("/a/data/__init__.py", "C:\\b\\data\\__init__.py"),
                ("/a/model/__init__.py", "C:\\b\\model\\__init__.py"),
            ],
        );
    }

    #[test]
    fn what_is_not_certain_is_not_matched() {
        check(&["/a/x.py"], &["/b/x.py", "/c/x.py"], &[]);
        check(&["/b/x.py", "/c/x.py"], &["/a/x.py"], &[]);
        check(&["/a/x.py"], &["/b/y.py"], &[]);
        check(&["/a/x.py"], &["/a/x.py", "/c/x.py"], &[("/a/x.py", "/a/x.py")]);
        // The two best lie on one side, on the other, and on both.
        check(&["/m/z/x.py"], &["/a/z/x.py", "/b/z/x.py", "/a/y/x.py"], &[]);
        check(&["/a/z/x.py"], &["/m/z/x.py", "/n/z/x.py", "/a/y/x.py"], &[]);
        check(&["/m/z/x.py"], &["/a/z/x.py", "/n/z/x.py", "/a/y/x.py"], &[]);
        check(&["/m/z/x.py"], &["/n/z/x.py", "/a/y/x.py"], &[("/m/z/x.py", "/n/z/x.py")]);
    }

    #[test]
    fn many_files_of_one_name_are_matched_in_time() {
        const N: usize = 50_000;
        let mut symbols = Symbols::default();
        let mut files = |root: &str| -> Vec<StringId> {
            (0..N).map(|i| symbols.string(&format!("/{root}/x{i}/a.py"))).collect()
        };
        let (a, b) = (files("home"), files("srv"));
        let begin = Instant::now();
        let same = same_files(&a, &b, &symbols);
        assert!(begin.elapsed() < Duration::from_secs(10), "took {:?}", begin.elapsed());
        assert_eq!(same.len(), N);
        assert!(a.iter().zip(&b).all(|(a, b)| same.get(a) == Some(b)));
    }
}
