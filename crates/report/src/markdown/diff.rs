//! `diff` as Markdown.

use vramscope_view::diff::{Diff, GroupDiff};

use super::{code, escaped, place, sentence, table};
use crate::bytes::{change, counted, grouped, human};
use crate::text::diff::{changed, places, together};

/// The comparison as Markdown with at most `top` places a device.
pub fn render(diff: &Diff, top: usize) -> String {
    let places = places(diff);
    let mut out = format!("{}.\n\n", sentence(&diff.matching_reason));
    for part in &diff.parts {
        out.push_str(&format!("## {} → {}\n\n", code(&part.before), code(&part.after)));
        for device in &part.devices {
            let both = |(before, after): (u64, u64)| {
                format!("{} → {} (**{}**)", human(before), human(after), change(before, after))
            };
            out.push_str(&format!(
                "### cuda:{}\n\nAllocated {}, reserved {}.",
                device.device,
                both(device.allocated),
                both(device.reserved)
            ));
            if let (Some(born), Some(died), Some(persisted)) = (device.born, device.died, device.persisted) {
                out.push_str(&format!(
                    " {} born since and still held, {} died, {} held both times.",
                    human(born),
                    human(died),
                    human(persisted)
                ));
            }
            out.push_str("\n\n");
            let groups: Vec<&GroupDiff> = changed(device).collect();
            let mut rows: Vec<Vec<String>> = groups
                .iter()
                .take(top)
                .map(|group| row(place(&places, group.site.as_ref(), &group.label), group))
                .collect();
            if let Some(rest) = groups.get(top..).filter(|rest| !rest.is_empty()) {
                rows.push(row(escaped(&counted(rest.len() as u64, "more place")), &together(rest)));
            }
            if rows.is_empty() {
                out.push_str("No place holds more or less than before.\n\n");
            } else {
                out.push_str(&table(&["allocated at", "change", "before", "after", "blocks"], &rows));
                out.push('\n');
            }
        }
    }
    for caveat in &diff.caveats {
        out.push_str(&format!("- {}\n", sentence(caveat)));
    }
    out
}

fn row(name: String, group: &GroupDiff) -> Vec<String> {
    vec![
        name,
        change(group.bytes.0, group.bytes.1),
        human(group.bytes.0),
        human(group.bytes.1),
        format!("{} → {}", grouped(group.blocks.0), grouped(group.blocks.1)),
    ]
}
