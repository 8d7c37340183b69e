//! Which file of one run is which of another, when the program lay in different folders.

use rustc_hash::FxHashMap;
use vramscope_model::{StringId, Symbols};

/// Files of `before` and the file of `after` that each is: the same path, else the one whose path ends alike over
/// the most folders, if each is the other's only best.
pub(super) fn same_files(
    before: &[StringId],
    after: &[StringId],
    symbols: &Symbols,
) -> FxHashMap<StringId, StringId> {
    let mut by_name: FxHashMap<&str, Vec<StringId>> = FxHashMap::default();
    for &file in after {
        by_name.entry(parts(symbols.str(file)).next().unwrap_or("")).or_default().push(file);
    }
    let mut by_name_before: FxHashMap<&str, Vec<StringId>> = FxHashMap::default();
    for &file in before {
        by_name_before.entry(parts(symbols.str(file)).next().unwrap_or("")).or_default().push(file);
    }
    let candidates = |table: &FxHashMap<&str, Vec<StringId>>, file: StringId| -> Option<StringId> {
        let path = symbols.str(file);
        let all = table.get(parts(path).next()?)?;
        only_best(path, all, symbols)
    };
    let mut same = FxHashMap::default();
    for &file in before {
        let partner = if after.contains(&file) {
            Some(file)
        } else {
            candidates(&by_name, file).filter(|&b| candidates(&by_name_before, b) == Some(file))
        };
        if let Some(partner) = partner {
            same.insert(file, partner);
        }
    }
    same
}

/// The path that shares the longest end with `path`, if only one does.
fn only_best(path: &str, all: &[StringId], symbols: &Symbols) -> Option<StringId> {
    let scored = all.iter().map(|&file| (common_tail(path, symbols.str(file)), file));
    let best = scored.clone().map(|(n, _)| n).max()?;
    let mut winners = scored.filter(|&(n, _)| n == best);
    let (_, winner) = winners.next()?;
    winners.next().is_none().then_some(winner)
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
    }
}
