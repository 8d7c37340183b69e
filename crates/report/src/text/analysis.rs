//! `analyze` for a terminal.

use vramscope_view::analysis::{Analysis, DeviceAnalysis, Finding, Peak, Severity};

use super::{INDENT, Layout, balance, files, finding, left_out, pattern, recorded};
use crate::bytes::{counted, grouped, human, share, signed};
use crate::clock;
use crate::page::Page;
use crate::place::Places;
use crate::settings;
use crate::sparkline;
use crate::style::{Role, Span};
use crate::table::{Align, Table};
use crate::words;

/// How many findings are told with their reasons; the others only with their figures.
const TOLD_WHOLE: usize = 2;
/// How many of the caveats and phases are shown first.
const FEW: usize = 4;

/// The answer as terminal text.
pub fn render(analysis: &Analysis, layout: &Layout<'_>) -> String {
    let mut page = Page::new(layout.palette, layout.width);
    let places = words::places(analysis);
    let (word, role) = words::verdict(analysis.verdict);
    let sure = analysis.confidence.map(|c| format!(" ({})", words::confidence(c))).unwrap_or_default();
    page.paragraph(Span::new(role, word), word.chars().count() + 2, &format!("{}{sure}", analysis.headline));
    page.gap();
    read(&mut page, analysis);
    recorded::write(&mut page, analysis, layout);
    page.gap();
    if analysis.devices.len() > 1 {
        overview(&mut page, &analysis.devices);
        page.gap();
    }
    let main = main_device(analysis);
    let shown: Vec<&DeviceAnalysis> = match main {
        _ if layout.verbose => analysis.devices.iter().collect(),
        Some(device) => vec![device],
        None => Vec::new(),
    };
    for device in &shown {
        one_device(&mut page, analysis, device, layout, &places);
        page.gap();
    }
    findings(&mut page, analysis, layout, &places);
    page.gap();
    pattern::write_harmless(&mut page, &analysis.harmless, layout.top);
    page.gap();
    caveats(&mut page, analysis, layout);
    page.gap();
    if layout.verbose {
        files(&mut page, &places);
        page.gap();
    }
    more(&mut page, analysis, layout);
    page.finish()
}

/// What was read.
fn read(page: &mut Page, analysis: &Analysis) {
    if analysis.inputs.is_empty() && !analysis.recorded.is_empty() {
        let names: Vec<&str> = analysis.recorded.iter().map(|recorded| recorded.path.as_str()).collect();
        page.paragraph(
            Span::new(Role::Dim, "read"),
            INDENT,
            &format!("{}, without any snapshot", names.join(", ")),
        );
        return;
    }
    let mut label = Span::new(Role::Dim, "read");
    let names = words::input_names(&analysis.inputs);
    let text = format!("{}: {names}", words::inputs(&analysis.inputs));
    page.paragraph(std::mem::take(&mut label), INDENT, &text);
    let events: u64 = analysis.devices.iter().map(|device| device.events).sum();
    let mut facts = vec![counted(events, "event")];
    let span = analysis.devices.iter().filter_map(|device| device.duration_us).max();
    facts.extend(span.map(|us| format!("over {}", clock::span(us))));
    facts.extend(
        analysis
            .inputs
            .iter()
            .filter_map(|i| i.last_us)
            .max()
            .map(|us| format!("until {}", clock::moment(us))),
    );
    let warnings: usize = analysis.inputs.iter().map(|input| input.warnings.len()).sum();
    if warnings > 0 {
        facts.push(format!("({} about the files)", counted(warnings as u64, "warning")));
    }
    page.paragraph(label, INDENT, &facts.join(" "));
}

/// The device of the worst finding, else the one that holds most.
pub(crate) fn main_device(analysis: &Analysis) -> Option<&DeviceAnalysis> {
    let blamed = analysis.findings.first().and_then(|finding| {
        analysis.devices.iter().find(|d| d.device == finding.device && d.rank == finding.rank)
    });
    blamed.or_else(|| analysis.devices.iter().max_by_key(|device| device.balance.allocated))
}

/// All devices, a line each.
fn overview(page: &mut Page, devices: &[DeviceAnalysis]) {
    let mut table = Table::new(&[
        Align::Left,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Left,
    ]);
    table.head(&["device", "reserved", "allocated", "peak", "events", "steps", "allocated over time"]);
    for device in devices {
        table.row(vec![
            words::device(device.rank, device.device).into(),
            human(device.balance.reserved).into(),
            human(device.balance.allocated).into(),
            device.peak.as_ref().map_or_else(|| "unknown".to_owned(), |peak| human(peak.allocated)).into(),
            grouped(device.events).into(),
            grouped(device.steps.count).into(),
            sparkline::sparkline(&device.allocated_at_steps, 24).into(),
        ]);
    }
    table.write(page, 0);
}

/// The sums, the peak, the steps of one device.
fn one_device(
    page: &mut Page,
    analysis: &Analysis,
    device: &DeviceAnalysis,
    layout: &Layout<'_>,
    places: &Places,
) {
    let whole = !analysis.verdict.is_trouble() || layout.verbose;
    let top = if whole { layout.top } else { layout.top.div_ceil(2) };
    let title = format!("{} at the end", words::device(device.rank, device.device));
    balance::write(page, &title, device, places, top);
    page.gap();
    if let Some(peak) = &device.peak {
        write_peak(page, device, peak, places, if whole { layout.top } else { 0 });
    }
    if let Some(text) = device.capacity.as_ref().and_then(words::capacity) {
        page.paragraph(Span::new(Role::Dim, "room"), INDENT, &text);
    }
    steps(page, device);
    if whole {
        phases(page, device, layout);
    }
    changed_settings(page, device, whole);
}

/// When the peak was and what it was made of.
fn write_peak(page: &mut Page, device: &DeviceAnalysis, peak: &Peak, places: &Places, top: usize) {
    let when = words::peak_moment(device, peak);
    let mut text =
        format!("{} allocated {when}, when {} was reserved", human(peak.allocated), human(peak.reserved));
    if peak.max_reserved > peak.reserved {
        text.push_str(&format!("; at most {} was reserved", human(peak.max_reserved)));
    }
    if top == 0 {
        if let Some(most) = peak.sites.first() {
            let place = places.or_label(most.site.as_ref(), &most.label);
            text.push_str(&format!("; most of it, {}, by {place}", human(most.bytes)));
        }
        page.paragraph(Span::new(Role::Dim, "peak"), INDENT, &text);
        return;
    }
    if !peak.sites.is_empty() {
        // The sums above are of bytes as asked for, with the rounding apart.
        text.push_str("; by place, rounded up to whole blocks:");
    }
    page.paragraph(Span::new(Role::Dim, "peak"), INDENT, &text);
    let mut table = Table::new(&[Align::Right, Align::Right, Align::Right, Align::Left]);
    let mut row = |bytes: u64, blocks: u64, place: Span| {
        let share = share(bytes, peak.allocated);
        let [share, blocks] = [share, counted(blocks, "block")].map(|text| Span::new(Role::Dim, text));
        table.row(vec![human(bytes).into(), share, blocks, place]);
    };
    for site in peak.sites.iter().take(top) {
        row(site.bytes, site.blocks, Span::new(Role::Path, places.or_label(site.site.as_ref(), &site.label)));
    }
    if let Some(others) = left_out(peak.sites.len(), top, "place") {
        let rest = peak.sites.get(top..).unwrap_or(&[]);
        row(rest.iter().map(|s| s.bytes).sum(), rest.iter().map(|s| s.blocks).sum(), others.into());
    }
    table.write(page, INDENT);
}

/// The steps, and allocated bytes at their ends as a curve and in numbers.
fn steps(page: &mut Page, device: &DeviceAnalysis) {
    let values = &device.allocated_at_steps;
    let steps = &device.steps;
    let text = match steps.count {
        0 => "none found".to_owned(),
        n => format!("{}, by {}", grouped(n), steps.source),
    };
    page.paragraph(Span::new(Role::Dim, "steps"), INDENT, &text);
    let (Some((low, high)), Some(first), Some(last)) =
        (sparkline::range(values), values.first(), values.last())
    else {
        return;
    };
    let at = if steps.count > 0 { "at step ends" } else { "over the recording" };
    let mut pieces = vec![sparkline::sparkline(values, 30)];
    if low == high {
        pieces.push(format!("always {} {at}", human(low)));
    } else {
        pieces.extend([
            format!("{at}:"),
            format!("first {},", human(*first)),
            format!("last {}", human(*last)),
        ]);
    }
    // Of a curve that only rises or falls, the ends say it all.
    if [low, high] != [*first.min(last), *first.max(last)] {
        pieces.extend([format!("(lowest {},", human(low)), format!("highest {})", human(high))]);
    }
    let steady = device.fluctuation_pct.filter(|_| low < high);
    pieces.extend(steady.map(|percent| format!("{} once steady", words::fluctuation(percent))));
    page.pieces(Span::default(), INDENT, Role::Plain, &pieces);
}

/// What was held in the regions that the program marked.
fn phases(page: &mut Page, device: &DeviceAnalysis, layout: &Layout<'_>) {
    if device.phases.is_empty() {
        return;
    }
    let most = if layout.verbose { usize::MAX } else { FEW };
    let mut table = Table::new(&[Align::Right, Align::Right, Align::Right, Align::Right, Align::Left]);
    table.head(&["runs", "peak", "mean change", "still held", "phase"]);
    for phase in device.phases.iter().take(most) {
        table.row(vec![
            grouped(phase.count).into(),
            human(phase.peak_allocated).into(),
            signed(i128::from(phase.mean_change)).into(),
            human(phase.survived).into(),
            phase.name.as_str().into(),
        ]);
    }
    page.gap();
    table.write(page, INDENT);
    if let Some(more) = left_out(device.phases.len(), most, "phase") {
        page.line([" ".repeat(INDENT), format!("{more} (-v)")]);
    }
    page.gap();
}

/// The settings of the allocator that are not its defaults.
fn changed_settings(page: &mut Page, device: &DeviceAnalysis, whole: bool) {
    if device.settings.is_empty() {
        return;
    }
    let changed = settings::changed(&device.settings);
    if !changed.is_empty() {
        page.paragraph(Span::new(Role::Dim, "set"), INDENT, &changed.join(", "));
    } else if whole {
        page.paragraph(Span::new(Role::Dim, "set"), INDENT, "allocator defaults");
    }
}

fn findings(page: &mut Page, analysis: &Analysis, layout: &Layout<'_>, places: &Places) {
    let context = finding::Context { analysis, layout, places, many_devices: analysis.devices.len() > 1 };
    for (i, found) in analysis.findings.iter().take(layout.top).enumerate() {
        page.gap();
        let whole = layout.verbose || (i < TOLD_WHOLE && found.severity != Severity::Info) || i == 0;
        if whole {
            finding::write(page, i + 1, found, &context);
        } else {
            finding::write_short(page, i + 1, found, &context);
        }
    }
}

fn caveats(page: &mut Page, analysis: &Analysis, layout: &Layout<'_>) {
    let most = if layout.verbose { usize::MAX } else { FEW };
    let mut label = Span::new(Role::Dim, "mind");
    for caveat in analysis.caveats.iter().take(most) {
        page.paragraph(std::mem::take(&mut label), INDENT, caveat);
    }
    if let Some(more) = left_out(analysis.caveats.len(), most, "remark") {
        page.paragraph(label, INDENT, &format!("{more} (-v)"));
    }
}

/// How to see what is not shown.
fn more(page: &mut Page, analysis: &Analysis, layout: &Layout<'_>) {
    let mut ways = Vec::new();
    if let Some(more) = left_out(analysis.findings.len(), layout.top, "finding") {
        ways.push(format!("--top {} ({more}),", analysis.findings.len()));
    }
    if !layout.verbose {
        ways.push(match analysis.devices.len() {
            0 => "-v (whole paths and chains, settings),".to_owned(),
            1 => "-v (whole stacks and paths, phases),".to_owned(),
            _ => "-v (whole stacks and paths, sums of every device, phases),".to_owned(),
        });
    }
    let places = analysis.findings.iter().filter_map(|f| f.site.as_ref());
    if places.clone().next().is_some() && places.into_iter().all(|site| layout.excerpts.get(site).is_none()) {
        ways.push("--source DIR (the lines of code and the pattern that keeps memory),".to_owned());
    }
    let is_open = |f: &Finding| f.bytes_per_step.is_some() && f.steps_to_oom.is_none();
    if !analysis.devices.is_empty() && analysis.findings.iter().any(is_open) {
        ways.push("--capacity 80GiB (in how many steps such a device is full),".to_owned());
    }
    ways.push("--format json (everything, for programs)".to_owned());
    page.pieces(Span::new(Role::Dim, "more"), INDENT, Role::Dim, &ways);
}
