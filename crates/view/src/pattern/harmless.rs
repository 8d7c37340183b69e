//! Patterns that a recording shows to keep nothing.
//!
//! What the linter warns of is a way to keep memory, not a proof that any is kept: a list may be emptied elsewhere, gradients may be
//! off. A recording can tell, for rules whose harm is that blocks on the device pile up from step to step. Of all others it
//! says nothing here: a higher peak, memory of the host, a cache whose keys are yet to come.

use vramscope_lint::{Diagnostic, Severity};

use super::SourceFile;
use super::find::{Look, scopes};
use crate::analysis::{Analysis, LineTurnover};
use crate::check::{self, shown};

/// A pattern that a recording shows to keep nothing on the device.
#[derive(Clone, Debug)]
pub struct Harmless {
    /// What was found, and where.
    pub found: check::Diagnostic,
    /// What would keep memory, as the source spells it.
    pub target: Option<String>,
    /// What came and went at its line; of several lines the one with most allocations.
    pub line: LineTurnover,
}

/// The rules whose harm is that blocks of the device's allocator pile up from step to step.
const PILES_UP: [&str; 24] = [
    "LK101", "LK102", "LK104", "LK105", "LK107", "LK108", "LK110", "LK111", "LK114", "LK121", "LK122",
    "LK202", "LK205", "LK206", "LK207", "LK208", "LK211", "LK301", "LK304", "LK305", "LK313", "LK702",
    "LK703", "LK710",
];

/// The patterns of files that keep nothing on the device, by file and line.
pub fn harmless(analysis: &Analysis, files: &[SourceFile<'_>]) -> Vec<Harmless> {
    if analysis.turnover.is_empty() {
        return Vec::new();
    }
    let scopes = scopes(files);
    let look = Look { files, scopes: &scopes, recorded: &analysis.recorded };
    let lines: Vec<_> =
        analysis.turnover.iter().filter_map(|line| Some((look.frame(&line.place)?, line))).collect();
    let mut found: Vec<Harmless> = Vec::new();
    for candidate in look.candidates().iter().filter(|it| piles_up(it.found)) {
        let here: Vec<&LineTurnover> =
            lines.iter().filter(|(frame, _)| candidate.is_at(frame)).map(|(_, line)| *line).collect();
        let Some(file) = files.get(candidate.file) else { continue };
        let is_settled = here.iter().all(|line| line.is_settled);
        if let Some(most) = here.into_iter().max_by_key(|line| line.allocations).filter(|_| is_settled) {
            let target = candidate.found.target.clone();
            found.push(Harmless { found: shown(file.source, candidate.found), target, line: most.clone() });
        }
    }
    found.sort_by(|a, b| {
        let place = |it: &Harmless| (it.found.start.line, it.found.start.column);
        a.found.file.cmp(&b.found.file).then(place(a).cmp(&place(b)))
    });
    found
}

fn piles_up(found: &Diagnostic) -> bool {
    found.severity >= Severity::Warning && found.rule.default && PILES_UP.contains(&found.rule.code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vramscope_lint::{Framework, find_rule};

    #[test]
    fn what_a_recording_can_acquit_are_rules_about_memory_of_the_device_that_run_by_themselves() {
        for code in PILES_UP {
            let rule = find_rule(code).map(|rule| (rule.default, rule.severity >= Severity::Warning));
            assert_eq!(rule, Some((true, true)), "{code}");
            let is_seen = |it: &Framework| {
                !matches!(it, Framework::TensorFlow | Framework::OnnxRuntime | Framework::Jax)
            };
            assert!(find_rule(code).is_some_and(|rule| rule.frameworks.iter().all(is_seen)), "{code}");
        }
    }
}
