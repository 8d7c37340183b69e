//! `inspect` as Markdown.

use vramscope_view::inspect::{Check, Health, Inspection};

use super::{code, escaped, prose_table, sentence, table};
use crate::bytes::{grouped, human};
use crate::clock;
use crate::settings;

/// What files are, as Markdown. What is well is only named, unless it is `verbose`.
pub fn render(files: &[Inspection], verbose: bool) -> String {
    let mut out = String::new();
    for file in files {
        out.push_str(&format!("## {}\n\n", code(&file.path)));
        out.push_str(&format!("- format: {}\n- torch: {}\n", escaped(&file.format), escaped(&file.torch)));
        if let Some(rank) = file.rank {
            out.push_str(&format!("- rank: {rank}\n"));
        }
        if let Some((first, last)) = file.time_span_us {
            let (from, to) = (clock::moment(first), clock::moment(last));
            out.push_str(&format!("- time: {from} to {to} ({})\n", clock::span(last - first)));
        }
        let (stacks, frames) = file.stacks;
        out.push_str(&format!("- stacks: {} distinct, of {} frames\n", grouped(stacks), grouped(frames)));
        let changed: Vec<String> =
            settings::changed(&file.settings).iter().map(|setting| code(setting)).collect();
        if !changed.is_empty() {
            out.push_str(&format!("- settings: {}\n", changed.join(", ")));
        }
        out.push('\n');
        let rows: Vec<Vec<String>> = file
            .devices
            .iter()
            .map(|device| {
                let (reserved, allocated, pending, free) = device.bytes;
                let (small, large, _) = device.segments;
                vec![
                    format!("cuda:{}", device.device),
                    human(reserved),
                    human(allocated),
                    human(pending),
                    human(free),
                    grouped(small + large),
                    grouped(device.blocks),
                    grouped(device.events.iter().map(|(_, n)| n).sum()),
                ]
            })
            .collect();
        let head = ["device", "reserved", "allocated", "pending", "free", "segments", "blocks", "events"];
        out.push_str(&table(&head, &rows));
        out.push('\n');
        checks(&mut out, &file.checks, verbose);
    }
    out
}

fn checks(out: &mut String, checks: &[Check], verbose: bool) {
    let rows: Vec<Vec<String>> = checks
        .iter()
        .filter(|check| verbose || matches!(check.health, Health::Limited | Health::Bad))
        .map(|check| {
            let health = word(check.health).to_owned();
            vec![sentence(&check.name), health, sentence(&check.seen), sentence(&check.meaning)]
        })
        .collect();
    if !rows.is_empty() {
        out.push_str(&prose_table(&["check", "health", "seen", "what it means"], &rows));
        out.push('\n');
    }
    for health in [Health::Good, Health::NotApplicable] {
        let names: Vec<String> =
            checks.iter().filter(|check| check.health == health).map(|check| sentence(&check.name)).collect();
        if !verbose && !names.is_empty() {
            out.push_str(&format!("{}: {}.\n\n", word(health), names.join("; ")));
        }
    }
}

fn word(health: Health) -> &'static str {
    match health {
        Health::Good => "good",
        Health::Limited => "limited",
        Health::Bad => "bad",
        Health::NotApplicable => "skipped",
    }
}
