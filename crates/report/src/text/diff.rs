//! `diff` for a terminal.

use vramscope_view::diff::{DeviceDiff, Diff, DiffPart, GroupDiff};

use super::{INDENT, Layout, files, left_out};
use crate::bytes::{change, grouped, human};
use crate::page::Page;
use crate::place::Places;
use crate::style::{Role, Span};
use crate::table::{Align, Table};
use crate::words;

/// How many stacks of a place are shown with `-v`.
const STACKS: usize = 3;

/// The comparison as terminal text.
pub fn render(diff: &Diff, layout: &Layout<'_>) -> String {
    let mut page = Page::new(layout.palette, layout.width);
    let places = places(diff);
    page.paragraph(Span::new(Role::Heading, "compared"), INDENT + 2, &diff.matching_reason);
    for part in &diff.parts {
        page.gap();
        one_part(&mut page, part, layout, &places);
    }
    page.gap();
    let mut label = Span::new(Role::Dim, "mind");
    for caveat in &diff.caveats {
        page.paragraph(std::mem::take(&mut label), INDENT, caveat);
    }
    page.gap();
    if layout.verbose {
        files(&mut page, &places);
        page.gap();
    }
    let mut ways: Vec<&str> = Vec::new();
    if diff.parts.iter().flat_map(|p| &p.devices).any(|d| changed(d).count() > layout.top) {
        ways.push("--top N (more places),");
    }
    if !layout.verbose {
        ways.push("-v (stacks and whole paths),");
    }
    ways.push("--format json (everything, for programs)");
    page.pieces(Span::new(Role::Dim, "more"), INDENT, Role::Dim, &ways);
    page.finish()
}

/// Every place that may be shown.
pub(crate) fn places(diff: &Diff) -> Places {
    let groups = diff.parts.iter().flat_map(|part| &part.devices).flat_map(|device| &device.groups);
    let files = groups.clone().flat_map(|group| {
        let stacks = group.stacks.iter().flat_map(|(frames, _, _)| frames).map(|frame| &frame.location);
        group.site.iter().chain(stacks).map(|location| location.file.as_str())
    });
    let sites = groups.filter_map(|group| group.site.as_ref()).map(|site| site.file.as_str());
    Places::of(files).with_user_files(sites)
}

/// The places that changed.
pub(crate) fn changed(device: &DeviceDiff) -> impl Iterator<Item = &GroupDiff> {
    device.groups.iter().filter(|group| {
        group.bytes.0 != group.bytes.1
            || group.blocks.0 != group.blocks.1
            || group.born_died_persisted.is_some_and(|(born, died, _)| born + died > 0)
    })
}

fn one_part(page: &mut Page, part: &DiffPart, layout: &Layout<'_>, places: &Places) {
    page.line([Span::new(Role::Path, &part.before), " → ".into(), Span::new(Role::Path, &part.after)]);
    for device in &part.devices {
        one_device(page, device, layout, places);
        page.gap();
    }
}

fn one_device(page: &mut Page, device: &DeviceDiff, layout: &Layout<'_>, places: &Places) {
    let both = |name: &str, (before, after): (u64, u64)| {
        format!("{name} {} → {} ({})", human(before), human(after), change(before, after))
    };
    let text = format!("{} · {}", both("allocated", device.allocated), both("reserved", device.reserved));
    page.paragraph(Span::new(Role::Heading, format!("cuda:{}", device.device)), INDENT, &text);
    if let (Some(born), Some(died), Some(persisted)) = (device.born, device.died, device.persisted) {
        let text = format!(
            "{} born since and still held, {} died, {} held both times",
            human(born),
            human(died),
            human(persisted)
        );
        page.paragraph(Span::default(), INDENT, &text);
    }
    let groups: Vec<&GroupDiff> = changed(device).collect();
    if groups.is_empty() {
        page.paragraph(Span::default(), INDENT, "no place holds more or less than before");
        return;
    }
    page.gap();
    let with_births = groups.iter().any(|group| group.born_died_persisted.is_some());
    let mut columns = vec![Align::Right, Align::Right, Align::Right, Align::Right];
    let mut head = vec!["change", "before", "after", "blocks"];
    if with_births {
        columns.extend([Align::Right, Align::Right]);
        head.extend(["born", "died"]);
    }
    columns.push(Align::Left);
    head.push(if groups.iter().any(|group| group.site.is_some()) { "allocated at" } else { "what" });
    let mut table = Table::new(&columns);
    table.head(&head);
    for group in groups.iter().take(layout.top) {
        let mut cells = figures(group, with_births);
        let role = if group.site.is_some() { Role::Path } else { Role::Plain };
        cells.push(Span::new(role, places.or_label(group.site.as_ref(), &group.label)));
        table.row(cells);
    }
    let rest = groups.get(layout.top..).unwrap_or(&[]);
    if let Some(others) = left_out(groups.len(), layout.top, "place") {
        let mut cells = figures(&together(rest), with_births);
        cells.push(Span::new(Role::Dim, others));
        table.row(cells);
    }
    table.write(page, 2);
    if layout.verbose {
        for group in groups.iter().take(layout.top) {
            stacks(page, group, places);
        }
    }
}

/// The figures of a place, as cells.
fn figures(group: &GroupDiff, with_births: bool) -> Vec<Span> {
    let role = match group.bytes.0.cmp(&group.bytes.1) {
        std::cmp::Ordering::Less => Role::Warn,
        std::cmp::Ordering::Equal => Role::Plain,
        std::cmp::Ordering::Greater => Role::Good,
    };
    let blocks = if group.blocks.0 == group.blocks.1 {
        grouped(group.blocks.1)
    } else {
        format!("{} → {}", grouped(group.blocks.0), grouped(group.blocks.1))
    };
    let mut cells = vec![
        Span::new(role, change(group.bytes.0, group.bytes.1)),
        human(group.bytes.0).into(),
        human(group.bytes.1).into(),
        blocks.into(),
    ];
    if with_births {
        let births = group.born_died_persisted.map(|(born, died, _)| [human(born), human(died)]);
        cells.extend(births.unwrap_or_default().map(Span::from));
    }
    cells
}

/// Several places as one.
pub(crate) fn together(groups: &[&GroupDiff]) -> GroupDiff {
    let mut sum = GroupDiff {
        site: None,
        label: String::new(),
        bytes: (0, 0),
        blocks: (0, 0),
        born_died_persisted: None,
        stacks: Vec::new(),
    };
    for group in groups {
        sum.bytes = (sum.bytes.0 + group.bytes.0, sum.bytes.1 + group.bytes.1);
        sum.blocks = (sum.blocks.0 + group.blocks.0, sum.blocks.1 + group.blocks.1);
        if let Some((born, died, persisted)) = group.born_died_persisted {
            let (b, d, p) = sum.born_died_persisted.unwrap_or_default();
            sum.born_died_persisted = Some((b + born, d + died, p + persisted));
        }
    }
    sum
}

/// The stacks of a place that changed most.
fn stacks(page: &mut Page, group: &GroupDiff, places: &Places) {
    if group.stacks.is_empty() {
        return;
    }
    page.gap();
    page.line([Span::new(Role::Path, places.or_label(group.site.as_ref(), &group.label))]);
    for (frames, before, after) in group.stacks.iter().take(STACKS) {
        let mut pieces = words::callers(frames, places, 0);
        if frames.is_empty() {
            pieces.push("no stack recorded".to_owned());
        }
        page.pieces(
            Span::new(Role::Plain, format!("  {}", change(*before, *after))),
            15,
            Role::Plain,
            &pieces,
        );
    }
    if let Some(more) = left_out(group.stacks.len(), STACKS, "stack") {
        page.line([format!("  {more}")]);
    }
}
