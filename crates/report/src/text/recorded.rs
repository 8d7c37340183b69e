//! What the recorder wrote down beside snapshots, as parts of `analyze`.

use vramscope_view::holders::FoundHolder;
use vramscope_view::recorded::{Curve, Recorded};

use super::{INDENT, Layout, holders};
use crate::bytes::human;
use crate::chain;
use crate::page::Page;
use crate::sparkline;
use crate::style::{Role, Span};
use crate::words;

/// How many processes are shown by themselves.
const FEW: usize = 2;

/// The program and its counters, and who held the memory in the end. Where there is no snapshot, who holds it is all
/// there is: then that is shown whole.
pub(super) fn write(page: &mut Page, recorded: &[Recorded], is_all: bool, layout: &Layout<'_>) {
    let most = if layout.verbose { usize::MAX } else { FEW };
    let many = recorded.len() > 1;
    for one in recorded.iter().take(most) {
        let mut facts = words::environment(one);
        if many {
            facts.insert(0, one.path.clone());
        }
        if !facts.is_empty() {
            page.paragraph(Span::new(Role::Dim, "run"), INDENT, &facts.join(", "));
        }
        if layout.verbose {
            for (name, value) in one.environment.iter().flat_map(|environment| &environment.settings) {
                page.paragraph(Span::default(), INDENT, &format!("{name}={value}"));
            }
        }
        for curve in &one.curves {
            write_curve(page, curve, many || one.curves.len() > 1);
        }
        let Some(last) = one.holders.last() else { continue };
        let sum = chain::sum(last.holders.total.0, &last.holders.classes);
        page.paragraph(
            Span::new(Role::Dim, "held"),
            INDENT,
            &format!("{sum}, by `{}`", words::file_name(&last.path)),
        );
        if is_all {
            page.gap();
            holders::table(page, &last.holders.holders, layout.top);
            if let Some(holder) = last.holders.holders.iter().find(|holder| !holder.chain.is_empty()) {
                page.gap();
                page.line([Span::new(Role::Path, chain::who(holder))]);
                holders::write_chain(page, holder, layout.verbose, 0);
            }
            page.gap();
        }
    }
    if let Some(more) = super::left_out(recorded.len(), most, "rank") {
        page.paragraph(Span::new(Role::Dim, "run"), INDENT, &format!("{more} (-v)"));
    }
}

fn write_curve(page: &mut Page, curve: &Curve, is_named: bool) {
    let mut text = words::recorded_steps(curve);
    if let (true, Some(device)) = (is_named, curve.device) {
        text = format!("{}: {text}", words::device(None, device));
    }
    page.paragraph(Span::new(Role::Dim, "count"), INDENT, &text);
    let values = &curve.allocated_at_steps;
    let (Some(first), Some(last)) = (values.first(), values.last()) else { return };
    if values.iter().all(|&bytes| bytes == 0) {
        return;
    }
    let mut pieces = vec![
        sparkline::sparkline(values, 30),
        "at step ends:".to_owned(),
        format!("first {},", human(*first)),
        format!("last {}", human(*last)),
    ];
    pieces.extend(curve.peak_allocated.map(|peak| format!("(highest {})", human(peak))));
    page.pieces(Span::default(), INDENT, Role::Plain, &pieces);
}

/// Who holds the memory of a finding; `whole` with the chain.
pub(super) fn holder(page: &mut Page, found: &FoundHolder, whole: bool, layout: &Layout<'_>) {
    let holder = &found.holder;
    let pieces = [holder.path.clone(), chain::through(holder).trim().to_owned()];
    let pieces: Vec<&String> = pieces.iter().filter(|piece| !piece.is_empty()).collect();
    page.pieces(Span::new(Role::Dim, "   holder"), INDENT + 2, Role::Path, &pieces);
    page.paragraph(
        Span::default(),
        INDENT + 2,
        &format!("{} ({})", chain::figures(holder), words::joined(found)),
    );
    if whole {
        holders::write_chain(page, holder, layout.verbose, INDENT + 2);
    }
}

/// Who holds the memory of a finding that is told with its figures only.
pub(super) fn holder_in_short(page: &mut Page, found: &FoundHolder) {
    let pieces =
        ["held by".to_owned(), found.holder.path.clone(), chain::through(&found.holder).trim().to_owned()];
    let pieces: Vec<&String> = pieces.iter().filter(|piece| !piece.is_empty()).collect();
    page.pieces(Span::new(Role::Plain, "   "), 3, Role::Plain, &pieces);
}
