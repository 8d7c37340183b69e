//! `vramscope fix`.

use std::collections::BTreeMap;

use vramscope_lint::{Applicability, Diagnostic, Fixed, fix_found};
use vramscope_model::Symbols;
use vramscope_report::{Excerpts, text, unified};
use vramscope_view::analysis::{Analysis, Options};
use vramscope_view::pattern::{self, Outcome, Treated, as_stored};

use super::analyze;
use crate::args::{Fix, Format, Global};
use crate::checking::joining::{self, Joined};
use crate::checking::rewriting;
use crate::exit::ExitStatus;
use crate::failure::Failure;
use crate::printer::{Printer, is_same_file};
use crate::source::SourceRoot;

pub(crate) fn run(args: &Fix, global: &Global, printer: &Printer) -> anyhow::Result<ExitStatus> {
    if global.format != Format::Text {
        return Err(Failure::error(
            "`fix` answers in text and diffs only",
            "`vramscope analyze --source DIR --format json` has the diffs of all findings",
        ));
    }
    args.source.iter().try_for_each(SourceRoot::check)?;
    let mut symbols = Symbols::default();
    let runs = analyze::read(&args.paths, args.rank, args.device, &mut symbols, printer)?;
    let options = Options { device: args.device, turnover: true, ..Options::default() };
    let mut analysis = vramscope_view::analyze_runs(&runs, &symbols, &options);
    let joined = joining::join(&mut analysis, &args.source);
    check_output(global, &joined)?;

    let level = if args.unsafe_fixes { Applicability::Unsafe } else { Applicability::Safe };
    let mut treated = judged(&analysis, &joined, level);
    let fixes = made(&joined, &mut treated);
    let mut failed = false;
    if args.apply {
        for (file, fixed) in &fixes {
            if let Err(error) = write(&joined, *file, fixed) {
                printer.error(&error);
                failed = true;
                mark(&joined, &mut treated, |in_file, _| in_file == *file, "the file could not be written");
            }
        }
    }
    let excerpts = Excerpts::default();
    let layout = printer.layout(usize::MAX, global.verbose, &excerpts);
    let mut answer = text::fixes::render(&analysis, &treated, args.apply, joined.note.as_deref(), &layout);
    if !args.apply {
        for (file, fixed) in &fixes {
            let Some(before) = joined.sources.get(*file) else { continue };
            let (before, after) = (as_stored(before), as_stored(&fixed.source));
            answer.push('\n');
            answer.push_str(&unified::render(fixed.source.name(), &before, &after, layout.palette));
        }
    }
    printer.answer(&answer)?;
    let is_done = |one: &Treated| args.apply && one.outcome == Outcome::Made;
    Ok(match (failed, treated.iter().all(is_done)) {
        (true, _) => ExitStatus::Failure,
        (false, false) => ExitStatus::Trouble,
        (false, true) => ExitStatus::Clean,
    })
}

/// Refuses to write the answer over what is to be fixed.
fn check_output(global: &Global, joined: &Joined) -> anyhow::Result<()> {
    let output = global.output.as_ref().and_then(|path| Some((path, path.canonicalize().ok()?)));
    match output {
        Some((path, real)) if joined.origins.iter().any(|origin| is_same_file(&origin.real, &real)) => {
            Err(Failure::error(
                format!("`{}` is read, so it cannot be written to", path.display()),
                "give another name with `--output`",
            ))
        }
        _ => Ok(()),
    }
}

/// How many warnings are told where none is tied to a leak.
const MOST_WARNINGS: usize = 3;

/// What can be done about each convicted leak, by its pattern and its fix.
fn judged(analysis: &Analysis, joined: &Joined, level: Applicability) -> Vec<Treated> {
    let outcome = |finding: usize| {
        let Some(pattern) = analysis.findings.get(finding).and_then(|it| it.pattern.as_ref()) else {
            return Outcome::NoPattern(joined.warnings(MOST_WARNINGS));
        };
        if pattern.leaves_data {
            return Outcome::LeavesData;
        }
        match pattern.found.fix.as_ref().map(|fix| fix.applicability) {
            None | Some(Applicability::Display) => Outcome::ByHand,
            Some(grade) if grade >= level => Outcome::Made,
            Some(_) => Outcome::NeedsLeave,
        }
    };
    pattern::convicted(analysis).map(|finding| Treated { finding, outcome: outcome(finding) }).collect()
}

/// Makes the fixes of what is to be fixed, by file. What cannot be made is marked.
fn made(joined: &Joined, treated: &mut [Treated]) -> BTreeMap<usize, Fixed> {
    let mut wanted: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for one in treated.iter().filter(|one| one.outcome == Outcome::Made) {
        let Some(found) = joined.matches.iter().find(|found| found.finding == one.finding) else { continue };
        let of_file = wanted.entry(found.file).or_default();
        // Several findings may come from one pattern.
        if !of_file.contains(&found.diagnostic) {
            of_file.push(found.diagnostic);
        }
    }
    let mut fixes = BTreeMap::new();
    for (file, diagnostics) in wanted {
        let mut taken: Vec<usize> = Vec::new();
        for diagnostic in diagnostics {
            let all: Vec<usize> = taken.iter().copied().chain([diagnostic]).collect();
            match together(joined, file, &all) {
                Ok(fixed) => {
                    taken = all;
                    fixes.insert(file, fixed);
                }
                Err(why) => mark(joined, treated, |in_file, it| (in_file, it) == (file, diagnostic), &why),
            }
        }
    }
    fixes
}

/// Makes all of these fixes in a file; says why not where that cannot be.
fn together(joined: &Joined, file: usize, diagnostics: &[usize]) -> Result<Fixed, String> {
    let of_file = joined.checked.get(file).map_or(&[][..], |it| &it.diagnostics);
    let chosen: Vec<Diagnostic> = diagnostics.iter().filter_map(|it| of_file.get(*it).cloned()).collect();
    let source = joined.sources.get(file).cloned();
    let fixed = fix_found(source.into_iter().collect(), vec![chosen], Applicability::Unsafe);
    let Some(fixed) = fixed.into_iter().next() else { return Err("the file is not there".to_owned()) };
    let count: usize = fixed.applied.iter().map(|applied| applied.count).sum();
    if count == diagnostics.len() {
        return Ok(fixed);
    }
    Err(fixed
        .trouble
        .unwrap_or_else(|| "it overlaps another fix; run the command again after that one".to_owned()))
}

/// Marks leaks whose patterns are like that as not fixed.
fn mark(joined: &Joined, treated: &mut [Treated], is_meant: impl Fn(usize, usize) -> bool, why: &str) {
    for found in joined.matches.iter().filter(|it| is_meant(it.file, it.diagnostic)) {
        let meant =
            treated.iter_mut().filter(|it| it.finding == found.finding && it.outcome == Outcome::Made);
        meant.for_each(|it| it.outcome = Outcome::Failed(why.to_owned()));
    }
}

fn write(joined: &Joined, file: usize, fixed: &Fixed) -> anyhow::Result<()> {
    let bytes = fixed.source.encode().map_err(|why| {
        Failure::error(
            format!("`{}` could not be written: {}", fixed.source.name(), why.0),
            "fix it by hand; without `--apply` the changes are shown",
        )
    })?;
    joined.origins.get(file).map_or(Ok(()), |origin| rewriting::replace(origin, &bytes))
}
