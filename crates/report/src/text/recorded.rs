//! What the recorder wrote down beside snapshots, as parts of `analyze`.

use vramscope_view::analysis::Analysis;
use vramscope_view::holders::{FoundHolder, Holder};
use vramscope_view::recorded::{Curve, Recorded};

use super::analysis::main_device;
use super::{INDENT, Layout, holders};
use crate::bytes::human;
use crate::chain;
use crate::page::Page;
use crate::sparkline;
use crate::style::{Role, Span};
use crate::words;

/// The program and its counters, and who held the memory in the end. Where there is no snapshot, who holds it is all
/// there is: then that is shown whole. Of several ranks only that of the main device is shown unless all is wanted.
pub(super) fn write(page: &mut Page, analysis: &Analysis, layout: &Layout<'_>) {
    let recorded = &analysis.recorded;
    let main = main_device(analysis).map(|device| device.rank);
    let is_main = |one: &&Recorded| main.is_none_or(|rank| rank == one.rank);
    let shown: Vec<&Recorded> = if layout.verbose {
        recorded.iter().collect()
    } else {
        recorded.iter().find(is_main).or(recorded.first()).into_iter().collect()
    };
    for one in &shown {
        one_process(page, analysis, one, layout);
    }
    if let Some(more) = super::left_out(recorded.len(), shown.len(), "rank") {
        page.paragraph(Span::default(), INDENT, &format!("{more} (-v)"));
    }
}

fn one_process(page: &mut Page, analysis: &Analysis, one: &Recorded, layout: &Layout<'_>) {
    let facts = words::environment(one);
    if !facts.is_empty() {
        page.paragraph(Span::new(Role::Dim, "run"), INDENT, &facts.join(", "));
    }
    if layout.verbose {
        for (name, value) in one.environment.iter().flat_map(|environment| &environment.settings) {
            page.paragraph(Span::default(), INDENT, &format!("{name}={value}"));
        }
    }
    for curve in one.curves.iter().filter(|curve| !is_in_steps(analysis, one, curve)) {
        write_curve(page, curve, one.curves.len() > 1);
    }
    let Some(last) = one.holders.last() else { return };
    let sum = chain::sum(last.holders.total.0, &last.holders.classes);
    page.paragraph(
        Span::new(Role::Dim, "held"),
        INDENT,
        &format!("{sum} ({})", words::file_name(&last.path)),
    );
    for (holder, reason) in watched(&last.holders.holders) {
        let text = format!("{} still holds {}: {reason}", chain::who(holder), human(holder.bytes.0));
        page.paragraph(Span::new(Role::Dim, "watched"), INDENT, &text);
    }
    if !analysis.devices.is_empty() {
        return;
    }
    page.gap();
    holders::table(page, &last.holders.holders, layout.top);
    // Findings show theirs.
    let largest = last.holders.holders.iter().find(|holder| !holder.chain.is_empty());
    if let Some(holder) = largest.filter(|_| analysis.findings.is_empty()) {
        page.gap();
        page.line([Span::new(Role::Path, chain::who(holder))]);
        holders::write_chain(page, holder, layout.verbose, 0);
    }
    page.gap();
}

/// Holders of what the program said should be gone, with what it said.
fn watched(holders: &[Holder]) -> impl Iterator<Item = (&Holder, &str)> {
    holders.iter().filter_map(|holder| {
        let mut reasons = holder.chain.iter().map(|link| link.reason.as_str());
        Some((holder, reasons.find_map(|reason| reason.strip_prefix("watched: "))?))
    })
}

/// Whether all that was counted is among the steps of the trace, which are shown with their device.
fn is_in_steps(analysis: &Analysis, recorded: &Recorded, curve: &Curve) -> bool {
    let mut devices = analysis.devices.iter().filter(|device| device.rank == recorded.rank);
    devices.any(|device| {
        curve.device.is_none_or(|number| number == device.device) && device.steps.count >= curve.steps
    })
}

fn write_curve(page: &mut Page, curve: &Curve, is_named: bool) {
    let mut text = words::recorded_steps(curve);
    if let (true, Some(device)) = (is_named, curve.device) {
        text = format!("{}: {text}", words::device(None, device));
    }
    page.paragraph(Span::new(Role::Dim, "counted"), INDENT, &text);
    let Some((what, values)) = words::recorded_values(curve) else { return };
    let (Some(first), Some(last)) = (values.first(), values.last()) else { return };
    let mut pieces = vec![
        sparkline::sparkline(values, 30),
        format!("{what}:"),
        format!("first {},", human(*first)),
        format!("last {}", human(*last)),
    ];
    let peak = curve.peak_allocated.filter(|&peak| peak > 0);
    pieces.extend(peak.map(|peak| format!("(highest {})", human(peak))));
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
    holders::write_others(page, holder, INDENT + 2);
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
