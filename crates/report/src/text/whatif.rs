//! `whatif` for a terminal.

use vramscope_view::whatif::{ReasonKind, Setting, WhatIf};

use super::{INDENT, Layout, files};
use crate::bytes::{grouped, human};
use crate::page::Page;
use crate::style::{Role, Span};
use crate::table::{Align, Table};
use crate::trials;

/// How many caveats are shown first.
const FEW: usize = 4;

/// The answer as terminal text.
pub fn render(answer: &WhatIf, layout: &Layout<'_>) -> String {
    let mut page = Page::new(layout.palette, layout.width);
    page.paragraph(Span::new(role(answer), "WHAT IF"), INDENT + 1, &answer.headline);
    page.gap();
    recommendation(&mut page, answer);
    page.gap();
    page.paragraph(Span::new(Role::Dim, "read"), INDENT, &trials::subject(answer));
    if let Some(others) = trials::others(answer) {
        page.paragraph(Span::default(), INDENT, &others);
    }
    page.paragraph(Span::new(Role::Dim, "check"), INDENT, &answer.self_check.summary);
    let role = if answer.limits.fraction_binds_below.is_some() { Role::Warn } else { Role::Dim };
    page.paragraph(Span::new(role, "limit"), INDENT, &answer.limits.words);
    page.gap();
    settings(&mut page, answer, layout);
    page.gap();
    ran_out(&mut page, answer, layout);
    if layout.verbose {
        details(&mut page, answer);
        page.gap();
    }
    caveats(&mut page, answer, layout);
    page.gap();
    more(&mut page, answer, layout);
    page.finish()
}

fn role(answer: &WhatIf) -> Role {
    match answer.reason_kind {
        ReasonKind::Lower | ReasonKind::Fits => Role::Good,
        ReasonKind::LiveMemory | ReasonKind::NoGain => Role::Heading,
        ReasonKind::TooMuchAtOnce | ReasonKind::NoneFits => Role::Bad,
        ReasonKind::Unreliable => Role::Warn,
    }
}

/// The table of settings.
fn settings(page: &mut Page, answer: &WhatIf, layout: &Layout<'_>) {
    let mut table = setting_table(&trials::HEADS);
    let base = trials::base(answer);
    let recommended = answer.recommended.and_then(|i| answer.settings.get(i));
    let listing = trials::listing(answer, layout.verbose);
    for setting in listing.rows {
        let is_recommended = recommended.is_some_and(|choice| std::ptr::eq(choice, setting));
        let figures = trials::figures(setting, base);
        let cells: Vec<Span> = figures
            .iter()
            .enumerate()
            .map(|(i, text)| Span::new(figure_role(i, setting, base), text))
            .collect();
        let role = if is_recommended { Role::Good } else { Role::Plain };
        setting_rows(&mut table, cells, setting, role);
    }
    table.write(page, 0);
    if !listing.same.is_empty() {
        let last = listing.same.len() - 1;
        let names: Vec<String> = listing
            .same
            .iter()
            .enumerate()
            .map(|(i, setting)| {
                format!("{}{}", trials::keys(setting).concat(), if i < last { ";" } else { "" })
            })
            .collect();
        page.pieces(Span::new(Role::Dim, "same as recorded: "), 18, Role::Plain, &names);
    }
    page.gap();
    page.paragraph(Span::default(), 0, &trials::legend(answer));
}

fn figure_role(column: usize, setting: &Setting, base: Option<u64>) -> Role {
    let Some(base) = base else { return Role::Plain };
    match column {
        1 if setting.needed() < base => Role::Good,
        1 if setting.needed() > base => Role::Warn,
        2 if setting.oom.is_some() => Role::Bad,
        _ => Role::Plain,
    }
}

/// What to set, why, and what it costs.
fn recommendation(page: &mut Page, answer: &WhatIf) {
    if let Some(choice) = answer.recommended.and_then(|i| answer.settings.get(i)) {
        // Kept whole, so that it can be copied.
        page.pieces(Span::new(Role::Heading, "set"), INDENT, Role::Path, &[trials::to_paste(&choice.conf)]);
    }
    page.paragraph(Span::new(Role::Dim, "why"), INDENT, &answer.reason);
    list(page, "cost", &answer.trade_offs);
}

/// Where memory ran out under the recording's own settings; with `-v` under all.
fn ran_out(page: &mut Page, answer: &WhatIf, layout: &Layout<'_>) {
    let places = trials::places(answer);
    let mut told = Vec::new();
    for setting in answer.settings.iter().filter(|setting| setting.is_own || layout.verbose) {
        let Some(oom) = &setting.oom else { continue };
        let told_of = trials::oom(oom, &places);
        told.push(if setting.is_own {
            format!("as recorded, {told_of}")
        } else {
            format!("{}: {told_of}", trials::keys(setting).concat())
        });
    }
    list(page, "out", &told);
    if !told.is_empty() {
        if layout.verbose {
            files(page, &places);
        }
        page.gap();
    }
}

/// The figures that the first table adds up or leaves out.
fn details(page: &mut Page, answer: &WhatIf) {
    let mut table = setting_table(&["in use", "step", "malloc", "free", "map", "unmap", "flush", "gc"]);
    for setting in trials::listing(answer, true).rows {
        let counts = [
            setting.segment_allocs,
            setting.segment_frees,
            setting.maps,
            setting.unmaps,
            setting.retries,
            setting.collections,
        ];
        let mut cells: Vec<Span> = vec![
            human(setting.peak_allocated).into(),
            setting.peak_step.map_or_else(|| "–".to_owned(), grouped).into(),
        ];
        cells.extend(counts.map(|n| Span::from(grouped(n))));
        setting_rows(&mut table, cells, setting, Role::Plain);
    }
    table.write(page, 0);
    page.gap();
    let legend = "in use: the most bytes that the program held; step: in which the most was reserved; malloc, free: calls of \
                  cudaMalloc and cudaFree; map, unmap: of memory in expandable segments; flush: all unused memory given back; \
                  gc: unused segments given back";
    page.paragraph(Span::default(), 0, legend);
}

/// A table with figures of settings, which stand in the last column.
fn setting_table(heads: &[&str]) -> Table {
    let mut columns = vec![Align::Right; heads.len()];
    columns.push(Align::Left);
    let mut table = Table::new(&columns);
    let heads: Vec<&str> = heads.iter().copied().chain(["setting"]).collect();
    table.head(&heads);
    table
}

/// The figures of a setting and its keys, each in a row of its own.
fn setting_rows(table: &mut Table, figures: Vec<Span>, setting: &Setting, role: Role) {
    let mut keys = trials::keys(setting).into_iter();
    let below = vec![Span::default(); figures.len()];
    let with = |mut cells: Vec<Span>, key: String| {
        cells.push(Span::new(role, key));
        cells
    };
    table.row(with(figures, keys.next().unwrap_or_default()));
    for key in keys {
        table.row(with(below.clone(), key));
    }
}

fn caveats(page: &mut Page, answer: &WhatIf, layout: &Layout<'_>) {
    let all: Vec<String> = trials::warnings(answer).chain(answer.caveats.iter().cloned()).collect();
    let shown = if layout.verbose { all.len() } else { FEW };
    list(page, "mind", all.get(..shown.min(all.len())).unwrap_or(&all));
    if let Some(more) = super::left_out(all.len(), shown, "remark") {
        page.paragraph(Span::default(), INDENT, &format!("{more} with -v"));
    }
}

/// Sentences below each other, the first beside a label.
fn list(page: &mut Page, label: &str, sentences: &[String]) {
    let mut label = Span::new(Role::Dim, label);
    for sentence in sentences {
        page.paragraph(std::mem::take(&mut label), INDENT, sentence);
    }
}

fn more(page: &mut Page, answer: &WhatIf, layout: &Layout<'_>) {
    let mut ways: Vec<&str> = Vec::new();
    ways.push(if answer.swept { "--conf STRING (a setting of yours)," } else { "--sweep (other settings)," });
    if answer.limits.most().is_none() {
        ways.push("--capacity 80GiB (would it fit?),");
    }
    if !layout.verbose {
        ways.push("-v (each kind of call),");
    }
    ways.push("--format json (everything, for programs)");
    page.pieces(Span::new(Role::Dim, "more"), INDENT, Role::Dim, &ways);
}
