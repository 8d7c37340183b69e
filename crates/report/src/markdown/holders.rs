//! `holders` as Markdown.

use vramscope_view::holders::{Class, Holder, HoldersFile};

use super::{block, code, escaped, sentence, table, table_by_last};
use crate::bytes::{counted, grouped, human, share};
use crate::chain;
use crate::clock;
use crate::style::{Palette, Span};
use crate::words;

/// How many chains are shown first.
const CHAINS: usize = 2;
/// Columns of the pictures of chains.
const WIDTH: usize = 100;

/// The answer as Markdown with at most `top` holders; all their chains if it is `verbose`.
pub fn render(files: &[HoldersFile], top: usize, verbose: bool) -> String {
    files.iter().map(|file| one_file(file, top, verbose)).collect::<Vec<_>>().join("\n")
}

fn one_file(file: &HoldersFile, top: usize, verbose: bool) -> String {
    let holders = &file.holders;
    let mut out = format!("## Held: {}\n\n", escaped(&chain::sum(holders.total.0, &holders.classes)));
    let mut facts = Vec::new();
    if !file.path.is_empty() {
        facts.push(code(&file.path));
    }
    facts.extend(file.rank.map(|rank| format!("rank {rank}")));
    facts.extend(file.devices.iter().map(|&device| words::device(None, device)));
    facts.extend(file.time_us.map(clock::moment));
    if !facts.is_empty() {
        out.push_str(&format!("{}\n\n", facts.join(", ")));
    }
    let mut rows =
        vec![vec!["live".to_owned(), human(holders.total.0), grouped(holders.total.0), share(1, 1)]];
    for (class, bytes) in chain::classes(&holders.classes) {
        let mut name = format!("– {}, {}", chain::class(class), chain::meaning(class));
        if class == Class::CppHeld && holders.unexplained.0 > 0 {
            name.push_str(&format!("; of {} nothing is known", human(holders.unexplained.0)));
        }
        rows.push(vec![name, human(bytes), grouped(bytes), share(bytes, holders.total.0)]);
    }
    out.push_str(&table(&["", "", "bytes", "share"], &rows));
    out.push('\n');
    let rows: Vec<Vec<String>> = holders
        .holders
        .iter()
        .take(top)
        .map(|holder| {
            vec![
                human(holder.bytes.0),
                human(holder.exclusive_bytes.0),
                grouped(holder.blocks),
                chain::class(holder.class).to_owned(),
                format!("{}{}", code(&holder.path), chain::through(holder)),
            ]
        })
        .collect();
    if !rows.is_empty() {
        out.push_str(&table_by_last(&["holds", "fixing frees", "blocks", "class", "by"], &rows));
        if holders.holders.len() > top {
            let more = counted((holders.holders.len() - top) as u64, "more holder");
            out.push_str(&format!("\n{more} left out (`--top {}`).\n", holders.holders.len()));
        }
        out.push('\n');
    }
    let chains = if verbose { top } else { CHAINS.min(top) };
    for (_, holder) in chain::shown(holders, chains, verbose) {
        out.push_str(&format!("### {}{}\n\n", code(&holder.path), chain::through(holder)));
        out.push_str(&format!("{}\n\n", escaped(&chain::figures(holder))));
        out.push_str(&others(holder));
        out.push_str(&format!("{}\n", picture(holder, verbose)));
    }
    for warning in &holders.warnings {
        out.push_str(&format!("- {}\n", sentence(warning)));
    }
    out
}

/// Who else holds the memory, as a list.
pub(super) fn others(holder: &Holder) -> String {
    let lines: Vec<String> = chain::others(holder)
        .into_iter()
        .map(|[before, path, behind]| {
            let path = if path.is_empty() { path } else { code(&path) };
            format!("- {}{path}{}\n", escaped(&before), escaped(&behind))
        })
        .collect();
    if lines.is_empty() { String::new() } else { format!("{}\n", lines.concat()) }
}

/// The chain as a block of text, with its fingerprint.
pub(super) fn picture(holder: &Holder, whole: bool) -> String {
    let written = |spans: Vec<Span>| {
        let mut line = String::new();
        for span in &spans {
            Palette::Plain.write(&mut line, span);
        }
        line.trim_end().to_owned()
    };
    let mut lines: Vec<String> = chain::lines(&holder.chain, whole, WIDTH).into_iter().map(written).collect();
    if !holder.fingerprint.is_empty() {
        lines.push(format!("fingerprint {}", holder.fingerprint));
    }
    block("text", &lines.join("\n"))
}
