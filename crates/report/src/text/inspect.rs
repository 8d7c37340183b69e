//! `inspect` for a terminal.

use vramscope_view::inspect::{Check, DeviceInspection, Health, Inspection};

use super::{INDENT, Layout};
use crate::bytes::{counted, grouped, human};
use crate::clock;
use crate::page::Page;
use crate::settings;
use crate::style::{Role, Span};

/// What files are, as terminal text.
pub fn render(files: &[Inspection], layout: &Layout<'_>) -> String {
    let mut page = Page::new(layout.palette, layout.width);
    for file in files {
        page.gap();
        one_file(&mut page, file, layout);
    }
    page.finish()
}

fn one_file(page: &mut Page, file: &Inspection, layout: &Layout<'_>) {
    page.line([Span::new(Role::Path, &file.path)]);
    let mut say = |label: &str, text: &str| {
        page.paragraph(Span::new(Role::Dim, format!("  {label}")), INDENT + 4, text);
    };
    say("format", &file.format);
    say("torch", &file.torch);
    if let Some(rank) = file.rank {
        say("rank", &rank.to_string());
    }
    say(
        "time",
        &file.time_span_us.map_or_else(
            || "not recorded".to_owned(),
            |(first, last)| {
                format!("{} to {} ({})", clock::moment(first), clock::moment(last), clock::span(last - first))
            },
        ),
    );
    let [user, library, generated, native] = file.frames_by_origin;
    let (stacks, frames) = file.stacks;
    say(
        "stacks",
        &if stacks == 0 {
            "none recorded".to_owned()
        } else {
            format!(
                "{} distinct, of {} ({} yours, {} of libraries, {} generated, {} native)",
                grouped(stacks),
                counted(frames, "distinct frame"),
                grouped(user),
                grouped(library),
                grouped(generated),
                grouped(native)
            )
        },
    );
    let (marks, names) = file.annotations;
    if marks > 0 {
        say("marks", &format!("{} with {}", grouped(marks), counted(names, "distinct name")));
    }
    if let Some((segments, bytes, events)) = file.host {
        say(
            "host",
            &format!(
                "{} pinned in {}, {}",
                human(bytes),
                counted(segments, "segment"),
                counted(events, "event")
            ),
        );
    }
    let changed = settings::changed(&file.settings);
    say(
        "set",
        &match (file.settings.is_empty(), changed.is_empty()) {
            (true, _) => "not recorded".to_owned(),
            (false, true) => "allocator defaults".to_owned(),
            (false, false) => changed.join(", "),
        },
    );
    for device in &file.devices {
        one_device(page, device);
    }
    checks(page, &file.checks, layout);
}

fn one_device(page: &mut Page, device: &DeviceInspection) {
    let (reserved, allocated, pending, free) = device.bytes;
    let (small, large, expandable) = device.segments;
    let (with, empty, without) = device.stacks;
    let total: u64 = device.events.iter().map(|(_, n)| n).sum();
    let indent = INDENT + 4;
    // Taking a snapshot leaves a mark on every device that the process could have used.
    if reserved == 0 && small + large == 0 && device.events.iter().all(|(name, _)| name == "snapshot") {
        page.paragraph(Span::new(Role::Heading, format!("  cuda:{}", device.device)), indent, "not used");
        return;
    }
    page.paragraph(
        Span::new(Role::Heading, format!("  cuda:{}", device.device)),
        indent,
        &format!(
            "{} reserved = {} allocated + {} pending free + {} free",
            human(reserved),
            human(allocated),
            human(pending),
            human(free)
        ),
    );
    let mut pieces = vec![
        format!("{}:", counted(small + large, "segment")),
        format!("{} small,", grouped(small)),
        format!("{} large;", grouped(large)),
        format!("{},", counted(device.blocks, "block")),
        counted(device.streams, "stream"),
    ];
    if expandable > 0 {
        pieces.insert(1, format!("{} expandable,", grouped(expandable)));
    }
    if device.private_pools > 0 {
        pieces.push(format!("and {}", counted(device.private_pools, "private pool")));
    }
    page.pieces(Span::default(), indent, Role::Plain, &pieces);
    if total == 0 {
        page.paragraph(Span::default(), indent, "no events: history was not recorded");
        return;
    }
    let last = device.events.len().saturating_sub(1);
    let actions = device.events.iter().enumerate().map(|(i, (name, n))| {
        let comma = if i < last { "," } else { "" };
        format!("{} {name}{comma}", grouped(*n))
    });
    let pieces: Vec<String> =
        std::iter::once(format!("{}:", counted(total, "event"))).chain(actions).collect();
    page.pieces(Span::default(), indent, Role::Plain, &pieces);
    page.paragraph(
        Span::default(),
        indent,
        &format!(
            "{} with a stack, {} with an empty one, {} without",
            counted(with, "event"),
            grouped(empty),
            grouped(without)
        ),
    );
}

/// Troubles first and in full; what is well in one line, unless all is wanted.
fn checks(page: &mut Page, checks: &[Check], layout: &Layout<'_>) {
    let mut sorted: Vec<&Check> = checks.iter().collect();
    sorted.sort_by_key(|check| std::cmp::Reverse(rank(check.health)));
    let indent = INDENT + 4;
    for check in sorted.iter().filter(|c| layout.verbose || matches!(c.health, Health::Bad | Health::Limited))
    {
        let (word, role) = health(check.health);
        let seen = if check.seen.is_empty() { "" } else { ": " };
        let text = format!("{}{seen}{}", check.name, check.seen);
        page.paragraph(Span::new(role, format!("  {word}")), indent, &text);
        page.paragraph(Span::new(Role::Dim, " ".repeat(indent - 2) + "↳"), indent, &check.meaning);
    }
    if layout.verbose {
        return;
    }
    let names = |wanted: Health| {
        sorted.iter().filter(|c| c.health == wanted).map(|c| c.name.as_str()).collect::<Vec<_>>().join("; ")
    };
    for wanted in [Health::Good, Health::NotApplicable] {
        let (word, role) = health(wanted);
        let names = names(wanted);
        if !names.is_empty() {
            page.paragraph(Span::new(role, format!("  {word}")), indent, &names);
        }
    }
}

/// The word for how a check went.
fn health(health: Health) -> (&'static str, Role) {
    match health {
        Health::Good => ("good", Role::Good),
        Health::Limited => ("limited", Role::Warn),
        Health::Bad => ("bad", Role::Bad),
        Health::NotApplicable => ("skipped", Role::Dim),
    }
}

/// How much it matters.
fn rank(health: Health) -> u8 {
    match health {
        Health::NotApplicable => 0,
        Health::Good => 1,
        Health::Limited => 2,
        Health::Bad => 3,
    }
}
