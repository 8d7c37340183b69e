//! Tables of what was measured under several settings, and of what was predicted.

use crate::predictions::{Program, Run};

const MIB: u64 = 1 << 20;

/// Every program, in the order of the tables, and what it does in a few words.
const PROGRAMS: [(&str, &str); 14] = [
    ("fragmentation_varlen", "a transformer layer on sequences that grow"),
    ("checkpointed", "activation checkpointing, batches that grow"),
    ("detection", "images of all sizes, all pairs of boxes"),
    ("epochs_emptied", "batches of all sizes, `empty_cache()` after each epoch"),
    ("prefetcher", "a second stream prepares batches of all sizes"),
    ("late_recording", "an LSTM on sequences of all lengths"),
    ("accumulation", "bfloat16, micro-batches of all shapes"),
    ("feature_cache", "a cache of 500 MiB in pieces of all sizes"),
    ("varlen_adam", "a transformer on batches of all lengths"),
    ("kv_cache", "generation with caches that grow"),
    ("gpt_train", "a small GPT, always the same sizes"),
    ("conv_benchmark", "four image sizes under `cudnn.benchmark`"),
    ("clean_resnet", "a ResNet under `cudnn.benchmark`"),
    ("feature_pyramid", "keeps features of every step"),
];

/// The part of that name, if there is one.
pub(super) fn part(name: &str, programs: &[Program]) -> Option<String> {
    let sorted: Vec<(&str, &Program)> = PROGRAMS
        .iter()
        .filter_map(|(name, what)| Some((*what, programs.iter().find(|p| p.name == *name)?)))
        .collect();
    match name {
        "measured" => Some(measured(&sorted)),
        "limited" => Some(limited(&sorted)),
        "cases" => Some(cases(&sorted)),
        "others" => Some(others(&sorted)),
        _ => None,
    }
}

/// A run without a limit under that setting.
fn run<'a>(program: &'a Program, conf: &str) -> Option<&'a Run> {
    program.runs.iter().find(|run| run.conf == conf && run.fraction.is_none())
}

/// The settings of the first table and what stands above them.
const COMPARED: [(&str, &str); 4] = [
    ("expandable_segments:True", "expandable"),
    ("roundup_power2_divisions:8", "round 8"),
    ("expandable_segments:True,roundup_power2_divisions:8", "both"),
    ("max_split_size_mb:64", "split 64"),
];

fn measured(programs: &[(&str, &Program)]) -> String {
    let heads = COMPARED.map(|(_, head)| head).join(" | ");
    let mut text = format!("| program | in use | defaults | {heads} |\n|---|--:|--:|--:|--:|--:|--:|\n");
    for (what, program) in programs {
        let Some(own) = run(program, "") else { continue };
        let cells = COMPARED.map(|(conf, _)| {
            let cell = run(program, conf).map_or_else(|| "–".to_owned(), |run| compared(own, run));
            if program.recommended.as_deref() == Some(conf) { format!("**{cell}**") } else { cell }
        });
        text.push_str(&format!(
            "| `{}`: {what} | {} | {} | {} |\n",
            program.name,
            mib(own.allocated),
            mib(own.measured),
            cells.join(" | ")
        ));
    }
    let recommended: Vec<&Run> =
        programs.iter().filter_map(|(_, program)| run(program, program.recommended.as_deref()?)).collect();
    let exact = recommended.iter().filter(|run| run.is_exact()).count();
    text + &format!(
        "\nBold is what `vramscope whatif` recommends from the recording of the run under the defaults: a setting for {} of the {} \
         programs. In {} the measured peak is the predicted one, to the byte.\n",
        recommended.len(),
        programs.len(),
        share(exact, recommended.len(), "of these cases")
    )
}

/// The peak of a run and how much more or less it is than another.
fn compared(own: &Run, run: &Run) -> String {
    match percent(run.measured as f64 - own.measured as f64, own.measured).as_str() {
        "0 %" => mib(run.measured),
        change => format!("{} ({change})", mib(run.measured)),
    }
}

/// What limits are set to in the runs that have one, as shares of what is reserved under the defaults without one.
const SCARCE: f64 = 0.9;
const AMPLE: f64 = 1.25;

fn limited(programs: &[(&str, &Program)]) -> String {
    let mut text = String::from(
        "| program | defaults, no limit | defaults, 90 % | expandable, 90 % | split 64, 90 % | collect 0.6, 125 % |\n|---|--:|--:|--:|--:|--:|\n",
    );
    for (_, program) in programs {
        let Some(own) = run(program, "") else { continue };
        let at = |share: f64, conf: &str| {
            let is_that = |run: &&Run| run.conf == conf && is_share(run, own, share);
            program.runs.iter().find(is_that).map(outcome)
        };
        let cells = [
            Some(outcome(own)),
            at(SCARCE, ""),
            at(SCARCE, "expandable_segments:True"),
            at(SCARCE, "max_split_size_mb:64"),
            at(AMPLE, "garbage_collection_threshold:0.6"),
        ];
        let Some(cells) = cells.into_iter().collect::<Option<Vec<String>>>() else { continue };
        text.push_str(&format!("| `{}` | {} |\n", program.name, cells.join(" | ")));
    }
    text
}

/// Whether a run is limited to that share of what another reserves.
fn is_share(run: &Run, of: &Run, share: f64) -> bool {
    run.limit().is_some_and(|limit| (limit as f64 / of.measured as f64 - share).abs() < 0.01)
}

/// What came of a run.
fn outcome(run: &Run) -> String {
    if run.ended {
        return "**runs out**".to_owned();
    }
    let calls = run.calls.map_or(0, |[obtained, given_back]| obtained + given_back);
    let mut words = format!("{} · {} calls", mib(run.measured), grouped(calls));
    match run.retries {
        0 => {}
        1 => words.push_str(" · 1 flush"),
        n => words.push_str(&format!(" · {n} flushes")),
    }
    words
}

fn cases(programs: &[(&str, &Program)]) -> String {
    let runs = all_runs(programs, true);
    let mut text = format!(
        "{} of {} peaks are predicted to the byte (the table is in MiB):\n\n| program | setting | measured | predicted | off |\n|---|---|--:|--:|--:|\n",
        runs.iter().filter(|(_, run)| run.is_exact()).count(),
        runs.len()
    );
    for (program, run) in runs {
        let (name, setting) = (&program.name, setting(run));
        let (measured, predicted, off) = (mib(run.measured), mib(run.predicted), off(run));
        text.push_str(&format!("| `{name}` | {setting} | {measured} | {predicted} | {off} |\n"));
    }
    text
}

/// What a recording cannot tell of a program, by program.
const REASONS: [(&str, &str); 3] = [
    (
        "late_recording",
        "the recording begins after a warm-up, whose requests are not in it, while the measured runs went through it under the \
         other setting, too",
    ),
    (
        "kv_cache",
        "many free blocks are equally large, and until torch 2.11 the lowest address is taken first: where the driver put segments \
         decides over one of them, and is not known for another run",
    ),
    (
        "conv_benchmark",
        "cuDNN tries algorithms, measures them and takes what fits, so that under other settings the program asks for other \
         workspaces. With a limit it asks for some that it is refused, and goes on; a replay ends there",
    ),
];

fn others(programs: &[(&str, &Program)]) -> String {
    let runs = all_runs(programs, false);
    let count = |is: &dyn Fn(&Run) -> bool| runs.iter().filter(|(_, run)| is(run)).count();
    let n_exact = count(&Run::is_exact);
    let mut wrong: Vec<(&Program, &Run)> = runs.iter().filter(|(_, run)| !run.is_exact()).copied().collect();
    let mut text = format!(
        "Of {} runs, {} with a limit, {n_exact} peaks are predicted to the byte. In {} it is predicted right whether a request fails, which one does \
         in {}. The other {} peaks:\n\n| program | setting | limit | measured | predicted | off |\n|---|---|--:|--:|--:|--:|\n",
        runs.len(),
        count(&|run| run.limit().is_some()),
        share(count(&|run| run.predicted_failed == (run.failed > 0)), runs.len(), "of the runs"),
        count(&|run| run.failed > 0),
        wrong.len(),
    );
    for (program, run) in &wrong {
        // A replay ends at the first request that fails, the program may not.
        let goes_on = run.predicted_failed && !run.ended;
        let predicted = if goes_on { "a request fails".to_owned() } else { mib(run.predicted) };
        let off = if goes_on { "–".to_owned() } else { off(run) };
        let limit = run.limit().map_or_else(|| "–".to_owned(), mib);
        let (name, setting, measured) = (&program.name, setting(run), mib(run.measured));
        text.push_str(&format!("| `{name}` | {setting} | {limit} | {measured} | {predicted} | {off} |\n"));
    }
    text.push('\n');
    wrong.dedup_by_key(|(program, _)| program.name.clone());
    for (program, _) in wrong {
        let why = REASONS.iter().find(|(name, _)| *name == program.name).map_or("not known", |(_, why)| why);
        text.push_str(&format!("- `{}`: {why}.\n", program.name));
    }
    text
}

/// The runs of the corpus' own cases, or of the other programs.
fn all_runs<'a>(programs: &[(&str, &'a Program)], cases: bool) -> Vec<(&'a Program, &'a Run)> {
    let programs = programs.iter().map(|(_, program)| *program).filter(|program| program.is_case == cases);
    programs.flat_map(|program| program.runs.iter().map(move |run| (program, run))).collect()
}

/// Some of them, or all.
fn share(n: usize, of: usize, them: &str) -> String {
    if n == of { format!("all {them}") } else { format!("{n} {them}") }
}

fn setting(run: &Run) -> String {
    if run.conf.is_empty() { "defaults".to_owned() } else { format!("`{}`", run.conf) }
}

fn off(run: &Run) -> String {
    match run.off() {
        0 => "0".to_owned(),
        _ => percent(run.predicted as f64 - run.measured as f64, run.measured),
    }
}

/// A share with its sign.
fn percent(of: f64, whole: u64) -> String {
    let percent = 100.0 * of / whole as f64;
    let rounded = if percent.abs() < 9.95 { format!("{percent:+.1} %") } else { format!("{percent:+.0} %") };
    if percent.abs() < 0.05 { "0 %".to_owned() } else { rounded }
}

/// Bytes in whole MiB, of which memory is always obtained.
fn mib(bytes: u64) -> String {
    grouped((bytes + MIB / 2) / MIB)
}

/// A number with separators between its thousands.
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_is_in_the_tables() {
        let mut found: Vec<String> =
            crate::predictions::programs().unwrap().into_iter().map(|program| program.name).collect();
        let mut named = PROGRAMS.map(|(name, _)| name.to_owned());
        found.sort();
        named.sort();
        assert_eq!(found, named);
    }

    #[test]
    fn figures_are_written_as_people_read_them() {
        assert_eq!((mib(2_673_868_800), mib(1 << 19), mib(0)), ("2,550".into(), "1".into(), "0".into()));
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!((percent(-70.4, 100), percent(1.04, 100)), ("-70 %".into(), "+1.0 %".into()));
        assert_eq!((percent(0.0, 100), percent(-0.04, 100)), ("0 %".into(), "0 %".into()));
    }
}
