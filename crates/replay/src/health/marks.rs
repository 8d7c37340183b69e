//! Whether marks in time open and close in turn.

use rustc_hash::FxHashMap;
use vramscope_model::{Annotation, Stage, StringId};

/// How marks open and close.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MarkHealth {
    /// Marks of every kind.
    pub marks: u64,
    /// Distinct names.
    pub names: u64,
    /// Regions that begin and do not end.
    pub unclosed: u64,
    /// Regions that end and do not begin.
    pub unopened: u64,
    /// Regions that end while one that began later is still open: they cannot be of one thread.
    pub crossing: u64,
}

/// Follows marks in time order.
pub(super) fn check(marks: &[Annotation]) -> MarkHealth {
    let mut health = MarkHealth { marks: marks.len() as u64, ..MarkHealth::default() };
    // Whether each region that began is still open; those at the end always are.
    let mut begun: Vec<bool> = Vec::new();
    // Places in `begun` of the open regions of each name. There may be as many open regions as marks, so none is
    // searched for.
    let mut open: FxHashMap<StringId, Vec<usize>> = FxHashMap::default();
    for mark in marks {
        let named = open.entry(mark.name).or_default();
        match mark.stage {
            Stage::Start => {
                named.push(begun.len());
                begun.push(true);
            }
            Stage::End => match named.pop() {
                Some(at) => {
                    health.crossing += u64::from(at + 1 != begun.len());
                    if let Some(place) = begun.get_mut(at) {
                        *place = false;
                    }
                    while begun.last() == Some(&false) {
                        begun.pop();
                    }
                }
                None => health.unopened += 1,
            },
            Stage::Other => {}
        }
    }
    health.unclosed = begun.iter().filter(|&&is_open| is_open).count() as u64;
    health.names = open.len() as u64;
    health
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use vramscope_model::{Symbols, TimeUs, script};

    use super::*;

    #[test]
    fn regions_nest_or_are_counted() {
        let check = |text: &str, want: (u64, u64, u64)| {
            let snapshot = script::snapshot(&mut Symbols::default(), text).unwrap();
            let health = check(&snapshot.annotations);
            assert_eq!((health.unclosed, health.unopened, health.crossing), want, "{text}");
        };
        check("start a\nstart b\nend b\nend a", (0, 0, 0));
        check("start a\nstart b\nend a\nend b", (0, 0, 1));
        check("end a\nstart a", (1, 1, 0));
        check("start a\nstart a\nend a\nend a", (0, 0, 0));
        // What closed out of turn is out of the way of what is closed next.
        check("start a\nstart b\nstart c\nend b\nend c\nend a\nend b", (0, 1, 1));
        check("start a\nstart b\nstart a\nend b\nend a", (1, 0, 1));
    }

    #[test]
    fn many_open_regions_are_not_searched() {
        const N: i64 = 500_000;
        let mut symbols = Symbols::default();
        let (a, b) = (symbols.string("a"), symbols.string("b"));
        let mark = |name, stage, time| Annotation { name, stage, device: 0, time: TimeUs(time) };
        let mut marks = vec![mark(a, Stage::Start, 0)];
        marks.extend((0..N).map(|t| mark(b, Stage::Start, t)));
        marks.extend((0..N).map(|t| mark(a, Stage::End, N + t)));
        let begin = Instant::now();
        let health = check(&marks);
        assert!(begin.elapsed() < Duration::from_secs(10), "took {:?}", begin.elapsed());
        assert_eq!((health.names, health.crossing), (2, 1));
        assert_eq!((health.unclosed, health.unopened), (N as u64, N as u64 - 1));
    }
}
