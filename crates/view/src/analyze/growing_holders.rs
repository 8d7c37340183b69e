//! Holders that hold more each time somebody looked.

use std::collections::BTreeMap;

use vramscope_model::Bytes;

use crate::analysis::{Finding, Severity};
use crate::holders::{Class, FoundHolder, Holder, HoldersFile, Joined, OTHER_HOLDERS};
use crate::recorded::RecorderFiles;

/// The code of these findings.
pub(super) const CODE: &str = "growing-holder";
/// Between two moments anything may have grown.
const MIN_FILES: usize = 3;
/// At most so many are told.
const MOST: usize = 5;

/// Holders that hold more in each file than in the one before, without those that `found` names already.
pub(super) fn find(files: &RecorderFiles, found: &[Finding]) -> Vec<Finding> {
    let moments = moments(files);
    if moments.len() < MIN_FILES {
        return Vec::new();
    }
    // Bytes by moment; not to be there is to hold nothing.
    let mut series: BTreeMap<(&str, bool), Vec<Bytes>> = BTreeMap::new();
    for (i, file) in moments.iter().enumerate() {
        for holder in file.holders.holders.iter().filter(|holder| is_told(holder)) {
            let held = series.entry(key(holder)).or_insert_with(|| vec![Bytes::ZERO; moments.len()]);
            if let Some(held) = held.get_mut(i) {
                *held += holder.bytes;
            }
        }
    }
    let mut findings: Vec<Finding> = series
        .into_iter()
        .filter(|(_, held)| grows(held))
        .filter(|(key, _)| {
            !found.iter().filter_map(|f| f.holder.as_ref()).any(|f| self::key(&f.holder) == *key)
        })
        .filter_map(|(key, held)| finding(files, key, &held))
        .collect();
    findings.sort_by_key(|f| std::cmp::Reverse(f.bytes));
    findings.truncate(MOST);
    findings
}

/// The looks, the last one of those that came after the same step.
fn moments(files: &RecorderFiles) -> Vec<&HoldersFile> {
    let mut moments: Vec<&HoldersFile> = Vec::new();
    for file in &files.holders {
        if moments.last().is_some_and(|last| last.step.is_some() && last.step == file.step) {
            moments.pop();
        }
        moments.push(file);
    }
    moments
}

fn key(holder: &Holder) -> (&str, bool) {
    (&holder.path, holder.through.is_some())
}

/// Whether a row stands for an object.
fn is_told(holder: &Holder) -> bool {
    holder.path != OTHER_HOLDERS && holder.class != Class::Pending
}

fn grows(held: &[Bytes]) -> bool {
    let present = held.iter().filter(|bytes| bytes.0 > 0).count();
    present >= MIN_FILES && held.windows(2).all(|pair| matches!(pair, [a, b] if a < b))
}

fn finding(files: &RecorderFiles, key: (&str, bool), held: &[Bytes]) -> Option<Finding> {
    let last = files.holders.last()?;
    let holder = last.holders.holders.iter().find(|holder| self::key(holder) == key)?;
    let (before, now) = (*held.first()?, *held.last()?);
    let steps = steps_between(files).filter(|&n| n > 0);
    let shown: Vec<String> = held.iter().map(ToString::to_string).collect();
    let mut evidence = vec![format!("it held {}, each time that somebody looked", shown.join(", "))];
    evidence.extend(steps.map(|n| format!("{n} steps lie between the first look and the last")));
    Some(Finding {
        code: CODE.to_owned(),
        kind: "growing".to_owned(),
        severity: Severity::Warning,
        confidence: (0.5 + 0.05 * (held.len() - MIN_FILES) as f64).min(0.8),
        title: match holder.class {
            Class::CycleGarbage => "more waits for Python's collector each time; it may yet be collected",
            _ => "one object holds more each time; it may be a cache that is not full yet",
        }
        .to_owned(),
        device: device_of(last, holder),
        rank: files.rank,
        site: None,
        label: key.0.to_owned(),
        stack: Vec::new(),
        bytes: now.0,
        blocks: holder.blocks,
        block_size: None,
        bytes_per_step: steps.map(|n| now.saturating_sub(before).0 as f64 / n as f64),
        blocks_per_step: None,
        steps_to_oom: None,
        first_us: None,
        last_us: None,
        evidence,
        advice: vec![advice(files, holder).to_owned()],
        companions: Vec::new(),
        holder: Some(FoundHolder { holder: holder.clone(), file: last.path.clone(), joined: Joined::ByPath }),
        pattern: None,
        related: Vec::new(),
        shortage: None,
        shortfall: None,
        fragmentation: None,
        settings: None,
    })
}

fn advice(files: &RecorderFiles, holder: &Holder) -> &'static str {
    let has_devices = files.holders.iter().any(|file| !file.devices.is_empty());
    match (holder.class, has_devices) {
        (Class::CycleGarbage, _) => "break the cycle, or let `gc.collect()` run now and then",
        (_, true) => {
            "record more steps to tell a leak from a cache that is filling up, with the history of the allocator to see the \
             lines that allocate: `vramscope run --always`"
        }
        (_, false) => {
            "run more steps to tell a leak from a cache that is filling up; the lines that allocate are seen on a GPU only"
        }
    }
}

/// The steps between the first look and the last. Where the files do not tell, the readings of the counters do, though they leave
/// steps out.
fn steps_between(files: &RecorderFiles) -> Option<u64> {
    let (first, last) = (files.holders.first()?, files.holders.last()?);
    if let (Some(first), Some(last)) = (&first.step, &last.step)
        && first.source == last.source
    {
        return last.number.checked_sub(first.number);
    }
    let (first, last) = (first.time_us?, last.time_us?);
    let ends = files.statistics.step_ends();
    let before = |at: i64| ends.iter().filter(|(_, time)| time.0 <= at).map(|&(step, _)| step).max();
    before(last)?.checked_sub(before(first)?)
}

fn device_of(file: &HoldersFile, holder: &Holder) -> u32 {
    let index = file.holders.holders.iter().position(|other| other == holder);
    let held = file.holders.blocks.iter().find(|block| index == Some(block.holder as usize));
    held.and_then(|block| block.device).or_else(|| file.devices.first().copied()).unwrap_or(0)
}
