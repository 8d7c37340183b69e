//! Every check that a file goes through, and how each is put into words.
//!
//! To add one, write a function that returns what was seen, and list it under its name. A check that has nothing to
//! speak of in this file returns nothing. Each problem is said by one check only.

mod file;
mod state;
mod trace;

use vramscope_model::{Device, Features};
use vramscope_replay::health::{DeviceHealth, MarkHealth, StackUse};

use super::{Check, Health, InspectInput};

/// What a check saw.
struct Outcome {
    health: Health,
    seen: String,
    meaning: String,
}

impl Outcome {
    fn good(seen: impl Into<String>) -> Self {
        Self { health: Health::Good, seen: seen.into(), meaning: String::new() }
    }

    /// All is well, and there is something to know about it.
    fn note(seen: impl Into<String>, meaning: impl Into<String>) -> Self {
        Self { health: Health::Good, seen: seen.into(), meaning: meaning.into() }
    }

    fn limited(seen: impl Into<String>, meaning: impl Into<String>) -> Self {
        Self { health: Health::Limited, seen: seen.into(), meaning: meaning.into() }
    }

    fn bad(seen: impl Into<String>, meaning: impl Into<String>) -> Self {
        Self { health: Health::Bad, seen: seen.into(), meaning: meaning.into() }
    }

    fn not_applicable(seen: impl Into<String>, meaning: impl Into<String>) -> Self {
        Self { health: Health::NotApplicable, seen: seen.into(), meaning: meaning.into() }
    }
}

/// A device to check.
struct DeviceSubject<'a> {
    device: &'a Device,
    health: &'a DeviceHealth,
    features: Features,
    truncated: bool,
}

/// A file to check.
struct FileSubject<'a> {
    input: &'a InspectInput<'a>,
    stacks: &'a StackUse,
    marks: &'a MarkHealth,
    /// Events on all devices.
    events: u64,
    /// Held blocks without a stack that are older than the trace.
    older_blocks: u64,
}

type DeviceCheck = fn(&DeviceSubject<'_>) -> Option<Outcome>;
type FileCheck = fn(&FileSubject<'_>) -> Option<Outcome>;

const OF_DEVICES: &[(&str, DeviceCheck)] = &[
    ("blocks tile their segments", state::tiling),
    ("stated sizes of segments", state::stated_sizes),
    ("history", trace::history),
    ("beginning of the trace", trace::beginning),
    ("blocks older than the trace", trace::older_blocks),
    ("trace against segments", trace::agreement),
    ("frees are recorded", trace::frees),
    ("allocations and frees alternate", trace::order),
    ("times", trace::times),
    ("failed requests", trace::failed_requests),
    ("pending frees", state::pending),
    ("expandable segments", state::expandable),
    ("private pools", state::private_pools),
];

const OF_FILES: &[(&str, FileCheck)] = &[
    ("stacks of allocations", file::stacks_of_allocations),
    ("stacks of held blocks", file::stacks_of_blocks),
    ("kinds of frames", file::kinds_of_frames),
    ("marks in time", file::marks),
    ("threads", file::threads),
];

/// Runs every check.
pub(super) fn run(
    input: &InspectInput<'_>,
    devices: &[DeviceHealth],
    stacks: &StackUse,
    marks: &MarkHealth,
) -> Vec<Check> {
    let snapshot = input.snapshot;
    let subjects: Vec<DeviceSubject<'_>> = snapshot
        .devices
        .iter()
        .zip(devices)
        .map(|(device, health)| DeviceSubject {
            device,
            health,
            features: snapshot.features,
            truncated: snapshot.truncated,
        })
        // A device that the process merely looked at.
        .filter(|s| !s.device.segments.is_empty() || s.health.trace.allocs > 0)
        .collect();
    let mut checks = file::reading(input);
    for (name, check) in OF_DEVICES {
        let seen: Vec<(u32, Outcome)> =
            subjects.iter().filter_map(|s| Some((s.device.ordinal, check(s)?))).collect();
        checks.extend(merge(name, seen, subjects.len()));
    }
    let events = snapshot.n_events() as u64;
    let older_blocks = devices
        .iter()
        .filter_map(|d| d.agreement.as_ref())
        .map(|a| a.older.blocks - a.older_with_stack.blocks)
        .sum();
    let subject = FileSubject { input, stacks, marks, events, older_blocks };
    for (name, check) in OF_FILES {
        checks.extend(check(&subject).map(|seen| into_check(name, seen)));
    }
    checks
}

fn into_check(name: &str, seen: Outcome) -> Check {
    Check { name: name.to_owned(), health: seen.health, seen: seen.seen, meaning: seen.meaning }
}

/// One check for all devices: what was seen where it is not as it should be, or else everywhere.
fn merge(name: &str, mut seen: Vec<(u32, Outcome)>, devices: usize) -> Option<Check> {
    let worst = seen.iter().map(|(_, one)| one.health).max_by_key(|&h| severity(h))?;
    if worst != Health::Good {
        seen.retain(|(_, one)| one.health != Health::Good);
    }
    // Of several devices with the same trouble the meaning is that of the first with the worst.
    let meaning = seen
        .iter()
        .filter(|(_, one)| one.health == worst)
        .map(|(_, one)| one.meaning.clone())
        .find(|meaning| !meaning.is_empty())
        .unwrap_or_default();
    let first = seen.first()?.1.seen.clone();
    let text = if devices == 1 {
        first
    } else if seen.len() == devices && seen.iter().all(|(_, one)| one.seen == first) {
        format!("each device: {first}")
    } else {
        let parts: Vec<String> =
            seen.iter().map(|(device, one)| format!("device {device}: {}", one.seen)).collect();
        parts.join("; ")
    };
    Some(into_check(name, Outcome { health: worst, seen: text, meaning }))
}

fn severity(health: Health) -> u8 {
    match health {
        Health::Good => 0,
        Health::NotApplicable => 1,
        Health::Limited => 2,
        Health::Bad => 3,
    }
}
