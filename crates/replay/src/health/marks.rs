//! Whether marks in time open and close in turn.

use rustc_hash::FxHashSet;
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
    let mut names = FxHashSet::default();
    let mut open: Vec<StringId> = Vec::new();
    for mark in marks {
        names.insert(mark.name);
        match mark.stage {
            Stage::Start => open.push(mark.name),
            Stage::End => match open.iter().rposition(|&name| name == mark.name) {
                Some(at) => {
                    health.crossing += u64::from(at + 1 != open.len());
                    open.remove(at);
                }
                None => health.unopened += 1,
            },
            Stage::Other => {}
        }
    }
    health.unclosed = open.len() as u64;
    health.names = names.len() as u64;
    health
}

#[cfg(test)]
mod tests {
    use vramscope_model::{Symbols, script};

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
    }
}
