//! `holders` for a terminal: the sum, who holds most, and by which references.

use vramscope_view::holders::{Holder, HoldersFile, OTHER_HOLDERS};

use super::{INDENT, Layout, left_out};
use crate::bytes::{grouped, human, share};
use crate::chain;
use crate::clock;
use crate::page::Page;
use crate::style::{Role, Span};
use crate::table::{Align, Table};
use crate::words;

/// How many chains are shown first.
const CHAINS: usize = 2;

/// The answer as terminal text: each file by itself.
pub fn render(files: &[HoldersFile], layout: &Layout<'_>) -> String {
    let mut page = Page::new(layout.palette, layout.width);
    for file in files {
        page.gap();
        one_file(&mut page, file, layout);
    }
    page.gap();
    more(&mut page, files, layout);
    page.finish()
}

fn one_file(page: &mut Page, file: &HoldersFile, layout: &Layout<'_>) {
    let holders = &file.holders;
    page.paragraph(Span::new(Role::Heading, "HELD"), 6, &chain::sum(holders.total.0, &holders.classes));
    page.gap();
    let facts = facts(file);
    if !facts.is_empty() {
        page.paragraph(Span::new(Role::Dim, "read"), INDENT, &facts.join(", "));
        page.gap();
    }
    sums(page, file);
    page.gap();
    table(page, &holders.holders, layout.top);
    let chains = if layout.verbose { layout.top } else { CHAINS.min(layout.top) };
    let shown = chain::shown(holders, chains, layout.verbose);
    if shown.iter().any(|(_, holder)| chain::has_suspects(holder)) {
        page.gap();
        page.paragraph(Span::default(), 0, "References underlined with ~~~ are the likely causes.");
    }
    for (i, holder) in shown {
        page.gap();
        let number = Span::new(Role::Heading, format!("{}  ", i + 1));
        page.line([number, Span::new(Role::Path, &holder.path), chain::through(holder).into()]);
        page.paragraph(Span::default(), 3, &chain::figures(holder));
        write_others(page, holder, 3);
        write_chain(page, holder, layout.verbose, 3);
    }
    page.gap();
    for warning in &holders.warnings {
        page.paragraph(Span::new(Role::Warn, "warning"), INDENT + 2, warning);
    }
}

/// Where it is from, of what, and when.
fn facts(file: &HoldersFile) -> Vec<String> {
    let devices: Vec<String> = match file.devices.as_slice() {
        [] => vec!["memory of the CPU".to_owned()],
        devices => devices.iter().map(|&device| words::device(None, device)).collect(),
    };
    let path = Some(file.path.clone()).filter(|path| !path.is_empty());
    let rank = file.rank.map(|rank| format!("rank {rank}"));
    let time = file.time_us.map(clock::moment);
    path.into_iter().chain(rank).chain(devices).chain(time).collect()
}

/// The sums as a tree, to the byte.
fn sums(page: &mut Page, file: &HoldersFile) {
    let holders = &file.holders;
    let mut table = Table::new(&[Align::Left, Align::Right, Align::Right, Align::Right, Align::Left]);
    let mut row = |role: Role, name: String, bytes: u64, note: &str| {
        table.row(vec![
            Span::new(role, name),
            human(bytes).into(),
            grouped(bytes).into(),
            Span::new(Role::Dim, share(bytes, holders.total.0)),
            Span::new(Role::Dim, note),
        ]);
    };
    row(Role::Heading, "live".to_owned(), holders.total.0, "");
    let classes = chain::classes(&holders.classes);
    let known: u64 = classes.iter().fold(0, |sum, (_, bytes)| sum.saturating_add(*bytes));
    let missing = holders.total.0.saturating_sub(known);
    let last = classes.len().saturating_sub(1);
    for (i, &(class, bytes)) in classes.iter().enumerate() {
        let branch = if i == last && missing == 0 { "└─" } else { "├─" };
        let mut note = chain::meaning(class).to_owned();
        if class == vramscope_view::holders::Class::CppHeld && holders.unexplained.0 > 0 {
            note = format!("{note}; of {} nothing is known", human(holders.unexplained.0));
        }
        row(Role::Plain, format!("{branch} {}", chain::class(class)), bytes, &note);
    }
    if missing > 0 {
        row(Role::Warn, "└─ not accounted for".to_owned(), missing, "");
    }
    table.write(page, 0);
}

/// Those that hold most.
pub(super) fn table(page: &mut Page, holders: &[Holder], top: usize) {
    if holders.is_empty() {
        return;
    }
    let columns = [Align::Right, Align::Right, Align::Right, Align::Right, Align::Left, Align::Left];
    let mut table = Table::new(&columns);
    table.head(&["", "holds", "fixing frees", "blocks", "class", "by"]);
    for (i, holder) in holders.iter().take(top).enumerate() {
        let is_named = holder.path != OTHER_HOLDERS;
        table.row(vec![
            Span::new(Role::Heading, (i + 1).to_string()),
            human(holder.bytes.0).into(),
            if is_named { human(holder.exclusive_bytes.0) } else { String::new() }.into(),
            grouped(holder.blocks).into(),
            chain::class(holder.class).into(),
            Span::new(if is_named { Role::Path } else { Role::Dim }, chain::who(holder)),
        ]);
    }
    if let (Some(more), Some(rest)) = (left_out(holders.len(), top, "holder"), holders.get(top..)) {
        let sum = |of: fn(&Holder) -> u64| rest.iter().map(of).fold(0, u64::saturating_add);
        table.row(vec![
            Span::default(),
            human(sum(|h| h.bytes.0)).into(),
            Span::default(),
            grouped(sum(|h| h.blocks)).into(),
            Span::default(),
            Span::new(Role::Dim, more),
        ]);
    }
    table.write(page, 0);
}

/// Who else holds the memory.
pub(super) fn write_others(page: &mut Page, holder: &Holder, indent: usize) {
    for line in chain::others(holder) {
        page.paragraph(Span::default(), indent, &line.concat());
    }
}

/// The picture of a chain and its fingerprint.
pub(super) fn write_chain(page: &mut Page, holder: &Holder, whole: bool, indent: usize) {
    for line in chain::lines(&holder.chain, whole, page.width().saturating_sub(indent)) {
        let pad: Span = " ".repeat(indent).into();
        page.line(std::iter::once(pad).chain(line));
    }
    if !holder.fingerprint.is_empty() && !holder.chain.is_empty() {
        let label = format!("{}fingerprint {}", " ".repeat(indent), holder.fingerprint);
        page.line([Span::new(Role::Dim, label)]);
    }
}

/// How to see what is not shown.
fn more(page: &mut Page, files: &[HoldersFile], layout: &Layout<'_>) {
    let mut ways = Vec::new();
    let most = files.iter().map(|file| file.holders.holders.len()).max().unwrap_or(0);
    if most > layout.top {
        ways.push(format!("--top {most} (every holder),"));
    }
    let with_chain = |file: &HoldersFile| file.holders.holders.iter().any(|h| !h.chain.is_empty());
    if !layout.verbose && files.iter().any(with_chain) {
        ways.push("-v (every chain, whole),".to_owned());
    }
    ways.push("--format json (everything, for programs)".to_owned());
    page.pieces(Span::new(Role::Dim, "more"), INDENT, Role::Dim, &ways);
}
