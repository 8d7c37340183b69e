//! The sums of a device as a tree: the children of each line add up to it, to the byte.

use vramscope_view::analysis::{DeviceAnalysis, SiteBytes};

use crate::bytes::{counted, grouped, human, share};
use crate::page::Page;
use crate::place::Places;
use crate::style::{Role, Span, wrapped};
use crate::table::{Align, Table};
use crate::words;

/// One line of the tree.
struct Line {
    name: String,
    role: Role,
    bytes: u64,
    note: String,
    children: Vec<Line>,
}

impl Line {
    fn leaf(name: impl Into<String>, bytes: u64, note: impl Into<String>) -> Self {
        Self { name: name.into(), role: Role::Plain, bytes, note: note.into(), children: Vec::new() }
    }

    fn with(mut self, children: Vec<Self>) -> Self {
        self.children = children;
        self
    }
}

/// Writes the sums, with at most `top` places.
pub(super) fn write(page: &mut Page, title: &str, device: &DeviceAnalysis, places: &Places, top: usize) {
    let tree = tree(device, places, top);
    let mut table = Table::new(&[Align::Left, Align::Right, Align::Right, Align::Right, Align::Left]);
    table.row(vec![
        Span::new(Role::Heading, title),
        Span::default(),
        Span::new(Role::Dim, "bytes"),
        Span::new(Role::Dim, "share"),
    ]);
    // Long names would push the figures out of sight.
    let room = page.width().saturating_sub(59).max(30);
    add(&mut table, &tree, "", "", device.balance.reserved, room);
    table.write(page, 0);
}

fn tree(device: &DeviceAnalysis, places: &Places, top: usize) -> Line {
    let balance = &device.balance;
    let mut held: Vec<Line> = Vec::new();
    let (shown, rest) = balance.sites.split_at(top.min(balance.sites.len()));
    for site in shown {
        held.push(Line {
            role: if site.site.is_some() { Role::Path } else { Role::Plain },
            ..Line::leaf(
                places.or_label(site.site.as_ref(), &site.label),
                site.bytes,
                counted(site.blocks, "block"),
            )
        });
    }
    if !rest.is_empty() {
        held.push(Line::leaf(
            counted(rest.len() as u64, "other place"),
            sum(rest),
            counted(rest.iter().map(|s| s.blocks).sum(), "block"),
        ));
    }
    if balance.before_recording > 0 {
        held.push(Line::leaf(words::before(device), balance.before_recording, ""));
    }
    if let Some(rounding) = balance.rounding.filter(|&bytes| bytes > 0) {
        held.push(Line::leaf("rounding up to block sizes", rounding, ""));
    }
    let known: u64 = held.iter().map(|line| line.bytes).sum();
    if known < balance.allocated {
        held.push(Line::leaf("not accounted for", balance.allocated - known, ""));
    }
    let mut parts = vec![Line::leaf("allocated", balance.allocated, "").with(held)];
    if balance.pending > 0 {
        parts.push(Line::leaf("pending free", balance.pending, "held by another stream"));
    }
    let mut free = Line::leaf("free, to be used again", balance.free, "");
    let halves = [
        Line::leaf("releasable", balance.releasable, "empty_cache() frees it"),
        Line::leaf("stranded", balance.stranded, "segments partly in use"),
    ];
    let mut halves: Vec<Line> = halves.into_iter().filter(|line| line.bytes > 0).collect();
    // An only child says nothing that its parent could not.
    if let [only] = halves.as_mut_slice() {
        free.name = format!("free, {}", only.name);
        free.note = std::mem::take(&mut only.note);
    } else {
        free.children = halves;
    }
    parts.push(free);
    Line::leaf("reserved from the driver", balance.reserved, counted(balance.segments, "segment")).with(parts)
}

fn add(table: &mut Table, line: &Line, lead: &str, branch: &str, whole: u64, room: usize) {
    let below = match branch {
        "" => String::new(),
        "└─ " => format!("{lead}   "),
        _ => format!("{lead}│  "),
    };
    let mut names = wrapped(&line.name, room.saturating_sub(below.chars().count())).into_iter();
    let name = format!("{lead}{branch}{}", names.next().unwrap_or_default());
    let exact = grouped(line.bytes);
    table.row(vec![
        Span::new(line.role, name),
        human(line.bytes).into(),
        exact.into(),
        Span::new(Role::Dim, share(line.bytes, whole)),
        Span::new(Role::Dim, &line.note),
    ]);
    for rest in names {
        table.row(vec![Span::new(line.role, format!("{below}{rest}"))]);
    }
    for (i, child) in line.children.iter().enumerate() {
        let branch = if i + 1 == line.children.len() { "└─ " } else { "├─ " };
        add(table, child, &below, branch, whole, room);
    }
}

fn sum(sites: &[SiteBytes]) -> u64 {
    sites.iter().map(|site| site.bytes).sum()
}
