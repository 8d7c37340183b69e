//! `vramscope check`.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use vramscope_lint::{Applicability, Fixed, Rule, Selection, Severity};
use vramscope_report::{Excerpts, github, json, junit, sarif, text, unified};
use vramscope_view::CheckInput;
use vramscope_view::check::{self as view, FixedFile};
use vramscope_view::pattern::as_stored;

use crate::args::{self, Format, Global, Least};
use crate::checking::fixing;
use crate::checking::patterns::Patterns;
use crate::checking::python_files::{self, PythonFile};
use crate::checking::reading::{self, ReadFiles};
use crate::checking::rewriting;
use crate::checking::selection::{self, Choice, Selector};
use crate::checking::settings::Settings;
use crate::exit::ExitStatus;
use crate::failure::Failure;
use crate::printer::{Printer, is_same_file};
use crate::progress::Files;

/// What was asked for, by flags and settings.
struct Wanted {
    settings: Settings,
    selection: Selection,
    least: Severity,
}

pub(crate) fn run(args: &args::Check, global: &Global, printer: &Printer) -> anyhow::Result<ExitStatus> {
    check_flags(args)?;
    let is_stdin = args.paths.iter().any(|path| path.as_os_str() == "-");
    let (wanted, read, mut failed) = if is_stdin {
        let wanted = Wanted::new(args, args.stdin_filename.as_deref().unwrap_or(Path::new(".")))?;
        (wanted, reading::read_standard_input(args.stdin_filename.as_deref())?, false)
    } else {
        let wanted = Wanted::new(args, args.paths.first().map_or(Path::new("."), |path| path.as_path()))?;
        let mut found =
            python_files::find(&args.paths, !args.no_respect_gitignore, &excluded(args, &wanted.settings)?);
        if found.files.is_empty()
            && let Some(last) = found.errors.pop()
        {
            printer.errors(&found.errors);
            return Err(last);
        }
        printer.errors(&found.errors);
        check_output(global, &found.files)?;
        if found.files.is_empty() {
            printer.warning("no Python files and no notebooks were found there");
        }
        let files = Files::new("reading", found.files.len(), printer.progress);
        (wanted, reading::read(&found.files, &|| files.advance()), !found.errors.is_empty())
    };
    failed |= !read.unreadable.is_empty();
    let found = if args.diff {
        diff(args, &wanted, read, printer)?
    } else {
        let (check, all_written) = checked(args, &wanted, read, printer);
        failed |= !all_written;
        printer.answer(&rendered(args, &check, global, &wanted.selection, printer))?;
        check.counts.errors + check.counts.warnings > 0
    };
    Ok(match (failed, found && !args.exit_zero) {
        (true, _) => ExitStatus::Failure,
        (false, true) => ExitStatus::Trouble,
        (false, false) => ExitStatus::Clean,
    })
}

/// Refuses flags that do not go together.
fn check_flags(args: &args::Check) -> anyhow::Result<()> {
    let is_stdin = args.paths.iter().any(|path| path.as_os_str() == "-");
    if is_stdin && args.paths.len() > 1 {
        return Err(Failure::error(
            "`-` is the standard input, and goes with no other path",
            "check the files without `-`",
        ));
    }
    if is_stdin && args.fix {
        return Err(Failure::error(
            "what comes from the standard input cannot be written back",
            "show the changes with `--diff`",
        ));
    }
    if args.statistics && !matches!(args.format, Format::Text | Format::Json) {
        return Err(Failure::error(
            "`--statistics` is a table for people",
            "leave out `--format`, or use `--format json`, where statistics always are",
        ));
    }
    Ok(())
}

/// Refuses to write the answer over what is checked.
fn check_output(global: &Global, files: &[PythonFile]) -> anyhow::Result<()> {
    let output = global.output.as_ref().and_then(|path| Some((path, path.canonicalize().ok()?)));
    match output {
        Some((path, real)) if files.iter().any(|file| is_same_file(&file.real, &real)) => {
            Err(Failure::error(
                format!("`{}` is read, so it cannot be written to", path.display()),
                "give another name with `--output`",
            ))
        }
        _ => Ok(()),
    }
}

impl Wanted {
    fn new(args: &args::Check, path: &Path) -> anyhow::Result<Self> {
        // A file that is yet to be written has the settings of its directory.
        let there = path.ancestors().find(|path| path.exists()).unwrap_or(Path::new("."));
        let settings = Settings::of_project(there)?;
        let flags = Choice {
            select: (!args.select.is_empty()).then(|| Selector::parse_all(&args.select)).transpose()?,
            extend: Selector::parse_all(&args.extend_select)?,
            ignore: Selector::parse_all(&args.ignore)?,
        };
        let least = match args.min_severity {
            Some(Least::Info) => Severity::Info,
            Some(Least::Warning) => Severity::Warning,
            Some(Least::Error) => Severity::Error,
            // Who names rules wants to see what they find, whatever a project usually shows.
            None if !args.select.is_empty() => Severity::Info,
            None => settings.min_severity.unwrap_or(Severity::Info),
        };
        let is_of_interest = |rule: &Rule| rule.severity >= least;
        let selection = selection::selection(&settings.choice, &flags, is_of_interest);
        Ok(Self { settings, selection, least })
    }
}

fn excluded(args: &args::Check, settings: &Settings) -> anyhow::Result<Arc<[Patterns]>> {
    let here = Path::new(".").canonicalize()?;
    let by_flags = Patterns::new(&here, args.exclude.iter().map(String::as_str))
        .map_err(|message| Failure::error(message, "put characters such as `[` in brackets: `[[]`"))?;
    Ok(settings.exclude.iter().cloned().chain([by_flags]).collect())
}

fn level(args: &args::Check) -> Applicability {
    if args.unsafe_fixes { Applicability::Unsafe } else { Applicability::Safe }
}

/// Checks what was read, and fixes it first if that is wanted; and whether all that was fixed could be written.
fn checked(args: &args::Check, wanted: &Wanted, read: ReadFiles, printer: &Printer) -> (view::Check, bool) {
    let ReadFiles { sources, origins, unreadable } = read;
    let files = Files::new("checking", sources.len(), printer.progress);
    let done = || files.advance();
    let (mut fixed_files, mut troubles, mut all_written) = (Vec::new(), Vec::new(), true);
    let mut not_written = HashSet::new();
    let real_of: HashMap<String, std::path::PathBuf> = sources
        .iter()
        .zip(&origins)
        .map(|(source, origin)| (source.name().to_owned(), origin.real.clone()))
        .collect();
    let (sources, checked): (Vec<_>, Vec<_>) = if args.fix {
        let originals = sources.clone();
        let fixed = fixing::fix(sources, &origins, &wanted.settings, &wanted.selection, level(args), &done);
        for (one, origin) in fixed.iter().zip(&origins).filter(|(one, _)| !one.applied.is_empty()) {
            match encoded(one).and_then(|bytes| rewriting::replace(origin, &bytes)) {
                Ok(()) => fixed_files.push(fixed_file(one)),
                Err(error) => {
                    printer.error(&error);
                    all_written = false;
                    let message = format!("not fixed: {error}");
                    troubles.push(view::Problem {
                        file: one.source.name().to_owned(),
                        place: None,
                        message,
                        is_fatal: false,
                    });
                    not_written.insert(one.source.name().to_owned());
                }
            }
        }
        troubles.extend(fixed.iter().filter_map(trouble));
        // What was found in a text that is in no file says nothing about the file.
        let unchanged = if not_written.is_empty() {
            Vec::new()
        } else {
            vramscope_lint::check(&originals, &wanted.selection, &|| {})
        };
        let mut unchanged: Vec<_> = originals.into_iter().zip(unchanged).collect();
        unchanged.retain(|(source, _)| not_written.contains(source.name()));
        let written = fixed.into_iter().filter(|one| !not_written.contains(one.source.name()));
        written.map(|one| (one.source, one.checked)).chain(unchanged).unzip()
    } else {
        let checked = vramscope_lint::check(&sources, &wanted.selection, &done);
        (sources, checked)
    };
    let inputs: Vec<CheckInput<'_>> =
        sources.iter().zip(&checked).map(|(source, checked)| CheckInput { source, checked }).collect();
    let mut check = vramscope_view::check(&inputs, &|file, found| {
        let is_ignored = real_of.get(file).is_some_and(|real| wanted.settings.ignores(real, found.rule));
        found.severity >= wanted.least && !is_ignored
    });
    check.fixed = fixed_files;
    check.problems.extend(troubles);
    for (file, why) in unreadable {
        check.add_unreadable(file, why);
    }
    (check, all_written)
}

fn encoded(fixed: &Fixed) -> anyhow::Result<Vec<u8>> {
    let name = fixed.source.name();
    fixed.source.encode().map_err(|why| {
        Failure::error(
            format!("`{name}` could not be written: {}", why.0),
            "fix it by hand; `--diff` shows the changes",
        )
    })
}

fn fixed_file(fixed: &Fixed) -> FixedFile {
    let rules = fixed.applied.iter().map(|applied| (applied.rule.code, applied.count as u64));
    FixedFile { file: fixed.source.name().to_owned(), rules: rules.collect() }
}

/// Why a file was not fixed, or not wholly.
fn trouble(fixed: &Fixed) -> Option<view::Problem> {
    let message = fixed.trouble.clone()?;
    Some(view::Problem { file: fixed.source.name().to_owned(), place: None, message, is_fatal: false })
}

/// Prints what fixes would change, and tells whether they would.
fn diff(args: &args::Check, wanted: &Wanted, read: ReadFiles, printer: &Printer) -> anyhow::Result<bool> {
    let ReadFiles { sources, origins, unreadable } = read;
    for (file, why) in &unreadable {
        printer.warning(&format!("{file}: {why}"));
    }
    let files = Files::new("checking", sources.len(), printer.progress);
    let before: Vec<String> = sources.iter().map(as_stored).collect();
    let fixed =
        fixing::fix(sources, &origins, &wanted.settings, &wanted.selection, level(args), &|| files.advance());
    drop(files);
    for one in &fixed {
        if let Some(trouble) = &one.trouble {
            printer.warning(&format!("{}: {trouble}", one.source.name()));
        }
    }
    let palette = printer.layout(0, false, &Excerpts::default()).palette;
    let mut diffs = String::new();
    for (one, before) in fixed.iter().zip(before).filter(|(one, _)| !one.applied.is_empty()) {
        diffs.push_str(&unified::render(one.source.name(), &before, &as_stored(&one.source), palette));
    }
    printer.answer(&diffs)?;
    Ok(!diffs.is_empty())
}

fn rendered(
    args: &args::Check,
    check: &view::Check,
    global: &Global,
    selection: &Selection,
    printer: &Printer,
) -> String {
    let excerpts = Excerpts::default();
    let layout = printer.layout(0, global.verbose, &excerpts);
    match args.format {
        Format::Json => json::check::render(check),
        Format::Sarif => {
            let on: Vec<&str> = selection.rules().map(|rule| rule.code).collect();
            let mut rules = view::rules();
            rules.retain(|rule| on.contains(&rule.code));
            sarif::render(check, &rules)
        }
        Format::Github => github::render(check),
        Format::Junit => junit::render(check),
        _ if args.statistics => text::check::statistics(check, &layout),
        Format::Concise => text::check::concise(check, &layout),
        Format::Text | Format::Markdown => text::check::render(check, &layout),
    }
}
