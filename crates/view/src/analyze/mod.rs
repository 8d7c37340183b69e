//! Puts together what `analyze` says.

mod device;
mod explained;
mod findings;
mod give_up;
mod growing_holders;
mod joined_holder;
mod sites;
mod turnover;
mod verdict;
mod window;

use vramscope_model::{Action, DeviceRecording, Recording, Symbols};

use crate::analysis::{Analysis, Finding, Input, Options, Verdict};
use crate::recorded::{Recorded, RecorderFiles, Run};

/// Analyzes recordings: each a process, with the files it was made of.
///
/// `symbols` must be the tables that the files were read with.
pub fn analyze(recordings: &[(Recording, Vec<Input>)], symbols: &Symbols, options: &Options) -> Analysis {
    let processes = recordings.iter().map(|(recording, inputs)| (recording, inputs.as_slice(), None));
    analyze_processes(&processes.collect::<Vec<_>>(), symbols, options)
}

/// Analyzes recordings together with what the recorder wrote down beside their snapshots. There need not be any
/// snapshot.
///
/// `symbols` must be the tables that the files were read with; recordings must be [completed](crate::recorded::completed)
/// by the files.
pub fn analyze_runs(runs: &[Run], symbols: &Symbols, options: &Options) -> Analysis {
    let processes = runs.iter().map(|run| (&run.recording, run.inputs.as_slice(), run.files.as_ref()));
    analyze_processes(&processes.collect::<Vec<_>>(), symbols, options)
}

/// A process: its snapshots put together, their files, and the recorder's others.
type Process<'a> = (&'a Recording, &'a [Input], Option<&'a RecorderFiles>);

fn analyze_processes(processes: &[Process<'_>], symbols: &Symbols, options: &Options) -> Analysis {
    let mut devices = Vec::new();
    let mut findings: Vec<Finding> = Vec::new();
    let mut evidence = verdict::Evidence::default();
    let mut caveats: Vec<String> = Vec::new();
    let mut turnovers = turnover::Sums::default();
    for &(recording, _, files) in processes {
        let mut found: Vec<Finding> = Vec::new();
        let holders = files.map_or(&[][..], |files| &files.holders);
        for device in &recording.devices {
            if is_idle(device) || options.device.is_some_and(|d| d != device.ordinal) {
                continue;
            }
            let outcome = device::analyze(recording, device, symbols, options, holders);
            devices.push(outcome.analysis);
            found.extend(outcome.findings);
            evidence.add(outcome.history);
            turnovers.add(outcome.turnover);
            for caveat in outcome.caveats {
                if !caveats.contains(&caveat) {
                    caveats.push(caveat);
                }
            }
        }
        turnovers.end_process(recording.devices.iter().all(is_idle));
        if let Some(files) = files {
            let more = growing_holders::find(files, &found);
            found.extend(more.into_iter().filter(|f| options.device.is_none_or(|d| d == f.device)));
        }
        give_up::advise(&mut found, !holders.is_empty());
        findings.extend(found);
    }
    findings.extend(verdict::rank_skew(&devices, &findings));
    findings::sort(&mut findings);
    let recorded: Vec<Recorded> =
        processes.iter().filter_map(|(.., files)| files.map(Recorded::of)).collect();
    if devices.is_empty() && (recorded.is_empty() || options.device.is_some()) {
        caveats.push(match options.device {
            Some(d) => format!("no device {d} in these files did or holds anything"),
            None => "no device in these files did or holds anything".to_owned(),
        });
    }
    let verdict = verdict::of(&findings, &devices, evidence);
    let headline = verdict::headline(verdict, &findings, &devices, evidence, &recorded);
    let confidence = findings.iter().find(|f| f.kind == verdict.name()).map(|f| f.confidence);
    let inputs: Vec<Input> = processes.iter().flat_map(|(_, inputs, _)| inputs.iter().cloned()).collect();
    let is_whole = options.device.is_none() && inputs.iter().all(|input| input.warnings.is_empty());
    let is_settled = verdict != Verdict::InsufficientData && !findings.iter().any(Finding::is_growth);
    Analysis {
        turnover: if is_whole && is_settled { turnovers.by_line(symbols) } else { Vec::new() },
        harmless: Vec::new(),
        inputs,
        verdict,
        headline,
        confidence,
        devices,
        recorded,
        findings,
        caveats,
    }
}

/// Whether nothing happened on a device.
fn is_idle(device: &DeviceRecording) -> bool {
    device.states.iter().all(|s| s.segments.is_empty())
        && device.events.actions().iter().all(|&a| a == Action::Snapshot)
}
