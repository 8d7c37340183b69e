//! Fixes, with regard to rules that do not hold for some files.

use std::collections::BTreeMap;

use vramscope_lint::{Applicability, Fixed, Selection, Source};

use super::reading::Origin;
use super::settings::Settings;

/// Fixes sources; the answers are in their order.
///
/// Files matter to each other, so all of them are looked at together, once for each set of rules that some files do
/// without, and of each such round the files are taken that it is for.
pub(crate) fn fix(
    sources: Vec<Source>,
    origins: &[Origin],
    settings: &Settings,
    selection: &Selection,
    level: Applicability,
    done: &(dyn Fn() + Sync),
) -> Vec<Fixed> {
    let mut by_ignored: BTreeMap<Vec<&str>, Vec<usize>> = BTreeMap::new();
    for (index, origin) in origins.iter().enumerate() {
        let ignored = selection.rules().filter(|rule| settings.ignores(&origin.real, rule));
        by_ignored.entry(ignored.map(|rule| rule.code).collect()).or_default().push(index);
    }
    let reduced = |ignored: &[&str]| {
        let on: Vec<&str> =
            selection.rules().map(|rule| rule.code).filter(|code| !ignored.contains(code)).collect();
        Selection::of(|rule| on.contains(&rule.code))
    };
    let all_ignored: Vec<&str> = by_ignored.keys().flatten().copied().collect();
    let mut rounds = by_ignored.into_iter();
    let Some((ignored, _)) = rounds.next() else { return Vec::new() };
    let others = rounds.map(|round| Some((round, copies(&sources)?))).collect::<Option<Vec<_>>>();
    let Some(others) = others else {
        // Rather too few fixes than one that was not wanted.
        return vramscope_lint::fix(sources, &reduced(&all_ignored), level, done);
    };
    let mut fixed = vramscope_lint::fix(sources, &reduced(&ignored), level, done);
    for ((ignored, indices), sources) in others {
        let mut of_round: Vec<Option<Fixed>> =
            vramscope_lint::fix(sources, &reduced(&ignored), level, &|| {}).into_iter().map(Some).collect();
        for index in indices {
            let one = of_round.get_mut(index).and_then(Option::take);
            if let (Some(place), Some(one)) = (fixed.get_mut(index), one) {
                *place = one;
            }
        }
    }
    fixed
}

fn copies(sources: &[Source]) -> Option<Vec<Source>> {
    sources.iter().map(|source| Source::read(source.name(), &source.encode().ok()?).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_in_the_order_of_sources_whatever_holds_for_each() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("vramscope.toml"), "[per-file-ignores]\n\"b*\" = [\"LK101\"]\n")
            .unwrap();
        let settings = Settings::of_project(dir.path()).unwrap();
        let real = dir.path().canonicalize().unwrap();
        let names = ["b1.py", "a1.py", "b2.py", "a2.py"];
        let sources = names.iter().map(|name| Source::read(*name, name.as_bytes()).unwrap()).collect();
        let origins: Vec<Origin> =
            names.iter().map(|name| Origin { real: real.join(name), content: None }).collect();
        let done = std::sync::atomic::AtomicUsize::new(0);
        let count = || {
            done.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        };
        let fixed = fix(sources, &origins, &settings, &Selection::default(), Applicability::Safe, &count);
        let found: Vec<&str> = fixed.iter().map(|one| one.source.name()).collect();
        assert_eq!(found, names);
        assert_eq!(done.into_inner(), names.len(), "each file counts once");
    }
}
