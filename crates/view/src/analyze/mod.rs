//! Puts together what `analyze` says.

mod device;
mod explained;
mod findings;
mod sites;
mod verdict;
mod window;

use vramscope_model::{Action, Recording, Symbols};

use crate::analysis::{Analysis, Finding, Input, Options};

/// Analyzes recordings: each a process, with the files it was made of.
///
/// `symbols` must be the tables that the files were read with.
pub fn analyze(recordings: &[(Recording, Vec<Input>)], symbols: &Symbols, options: &Options) -> Analysis {
    let mut devices = Vec::new();
    let mut findings: Vec<Finding> = Vec::new();
    let mut evidence = verdict::Evidence::default();
    let mut caveats: Vec<String> = Vec::new();
    for (recording, _) in recordings {
        for device in &recording.devices {
            let idle = device.states.iter().all(|s| s.segments.is_empty())
                && device.events.actions().iter().all(|&a| a == Action::Snapshot);
            if idle || options.device.is_some_and(|d| d != device.ordinal) {
                continue;
            }
            let outcome = device::analyze(recording, device, symbols, options);
            devices.push(outcome.analysis);
            findings.extend(outcome.findings);
            evidence.add(outcome.history);
            for caveat in outcome.caveats {
                if !caveats.contains(&caveat) {
                    caveats.push(caveat);
                }
            }
        }
    }
    findings.extend(verdict::rank_skew(&devices, &findings));
    findings::sort(&mut findings);
    if devices.is_empty() {
        caveats.push(match options.device {
            Some(d) => format!("no device {d} in these files did or holds anything"),
            None => "no device in these files did or holds anything".to_owned(),
        });
    }
    let verdict = verdict::of(&findings, evidence);
    let headline = verdict::headline(verdict, &findings, &devices, evidence);
    let confidence = findings.iter().find(|f| f.kind == verdict.name()).map(|f| f.confidence);
    let inputs = recordings.iter().flat_map(|(_, inputs)| inputs.iter().cloned()).collect();
    Analysis { inputs, verdict, headline, confidence, devices, findings, caveats }
}
