//! `inspect` as Markdown.

use vramscope_view::inspect::{Health, Inspection};

use super::{code, escaped, sentence, table};
use crate::bytes::{grouped, human};
use crate::clock;

/// What files are, as Markdown.
pub fn render(files: &[Inspection]) -> String {
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
        if !file.settings.is_empty() {
            let all: Vec<String> =
                file.settings.iter().map(|(name, value)| code(&format!("{name}={value}"))).collect();
            out.push_str(&format!("- settings: {}\n", all.join(", ")));
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
        let rows: Vec<Vec<String>> = file
            .checks
            .iter()
            .map(|check| {
                let health = match check.health {
                    Health::Good => "good",
                    Health::Limited => "limited",
                    Health::Bad => "bad",
                    Health::NotApplicable => "skipped",
                };
                vec![
                    sentence(&check.name),
                    health.to_owned(),
                    sentence(&check.seen),
                    sentence(&check.meaning),
                ]
            })
            .collect();
        out.push_str(&table(&["check", "health", "seen", "what it means"], &rows));
        out.push('\n');
    }
    out
}
