//! `fix` for a terminal: what was done about each leak.

use vramscope_view::analysis::{Analysis, Verdict};
use vramscope_view::pattern::{Outcome, Treated};

use super::{INDENT, Layout, finding, pattern};
use crate::bytes::counted;
use crate::page::Page;
use crate::style::{Role, Span};
use crate::words;

/// What was done about each leak. `are_written` if its fix is in the file now; else diffs follow. `note` is what else is to be kept in
/// mind.
pub fn render(
    analysis: &Analysis,
    treated: &[Treated],
    are_written: bool,
    note: Option<&str>,
    layout: &Layout<'_>,
) -> String {
    let mut page = Page::new(layout.palette, layout.width);
    let places = words::places(analysis);
    let (word, role) = words::verdict(analysis.verdict);
    page.paragraph(Span::new(role, word), word.chars().count() + 2, &analysis.headline);
    if let Some(note) = note {
        page.gap();
        page.paragraph(Span::new(Role::Dim, "mind"), INDENT, note);
    }
    let context =
        finding::Context { analysis, layout, places: &places, many_devices: analysis.devices.len() > 1 };
    for one in treated {
        let Some(found) = analysis.findings.get(one.finding) else { continue };
        page.gap();
        finding::write_short(&mut page, one.finding + 1, found, &context);
        let label = match one.outcome {
            Outcome::Made => Span::new(Role::Good, "   fix"),
            _ => Span::new(Role::Warn, "   left"),
        };
        let fix = found.pattern.as_ref().and_then(|pattern| pattern.found.fix.as_ref());
        let what = fix.map(|fix| format!("{} ({})", fix.message, fix.applicability.name()));
        let mut sentences = vec![match (&one.outcome, what) {
            (Outcome::Made, Some(what)) => what,
            (Outcome::Made, None) => "made".to_owned(),
            (Outcome::NeedsLeave, what) => {
                format!(
                    "{}; it may change what the program does: add `--unsafe-fixes`",
                    what.unwrap_or_default()
                )
            }
            (Outcome::LeavesData, _) => words::LEAVES_DATA.to_owned(),
            (Outcome::ByHand, Some(what)) => format!("{what}: by hand, it needs judgement"),
            (Outcome::ByHand, None) => "this pattern has no fix: by hand".to_owned(),
            (Outcome::NoPattern(_), _) => {
                "no pattern in the source code is tied to this leak: by hand".to_owned()
            }
            (Outcome::Failed(why), _) => format!("not fixed: {why}"),
        }];
        if matches!(
            one.outcome,
            Outcome::LeavesData | Outcome::ByHand | Outcome::NoPattern(_) | Outcome::Failed(_)
        ) {
            let advice = found.pattern.as_ref().and_then(|pattern| pattern.found.advice.clone());
            sentences.extend(advice.filter(|_| one.outcome != Outcome::LeavesData));
            sentences.extend(found.advice.iter().cloned());
        }
        if let Outcome::NoPattern(seen) = &one.outcome
            && !seen.is_empty()
        {
            sentences.push(format!(
                "nothing proves that it is this leak, but `vramscope check` warns of {}",
                seen.join(", ")
            ));
        }
        let mut label = label;
        for sentence in &sentences {
            page.paragraph(std::mem::take(&mut label), INDENT + 2, sentence);
        }
    }
    page.gap();
    pattern::write_left_alone(&mut page, &analysis.harmless);
    page.gap();
    let made = treated.iter().filter(|one| one.outcome == Outcome::Made).count() as u64;
    let of = counted(treated.len() as u64, "leak");
    let last = match (treated.len(), made, are_written) {
        (0, ..) if analysis.verdict == Verdict::InsufficientData => {
            "no leak is convicted yet, so nothing can be fixed".to_owned()
        }
        (0, ..) => "no leak is convicted, so nothing is to be fixed".to_owned(),
        (_, 0, _) => format!("none of {of} fixed"),
        (_, made, true) => format!("{made} of {of} fixed; run the program again to see it gone"),
        (_, made, false) => format!("{made} of {of} fixed by the changes below; `--apply` writes them"),
    };
    page.line([last]);
    page.finish()
}
