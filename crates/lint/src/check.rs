//! Checks files, all of a project at once: what one returns matters to the other that calls it.

use rayon::prelude::*;

use crate::{
    calling::{Calling, FileCalls},
    context::Context,
    diagnostic::Diagnostic,
    facts::Facts,
    flow::{follow, value::FileId},
    modules::{import_order, module_names},
    names::{Names, collect},
    project::{FileSummary, Project},
    rule::{Rule, rules},
    source::Source,
    suppress::Suppressions,
    syntax::{ModModule, TextRange, empty_module, syntax_errors, with_deep_stack},
};

/// Which rules run.
#[derive(Clone, Debug)]
pub struct Selection {
    /// One entry a rule, in the order of [`rules`].
    on: Vec<bool>,
}

impl Default for Selection {
    fn default() -> Self {
        Self::of(|rule| rule.default)
    }
}

impl Selection {
    /// The rules for which `is_on` holds.
    pub fn of(is_on: impl Fn(&Rule) -> bool) -> Self {
        Self { on: rules().map(is_on).collect() }
    }

    /// The rules that run.
    pub fn rules(&self) -> impl Iterator<Item = &'static Rule> {
        rules().zip(&self.on).filter_map(|(rule, on)| on.then_some(rule))
    }
}

/// What was found in one file.
#[derive(Debug, Default)]
pub struct Checked {
    /// What rules found and nobody suppressed, in order of place.
    pub diagnostics: Vec<Diagnostic>,
    /// How many diagnostics comments in the file suppressed.
    pub suppressed: usize,
    /// What kept the file, or a part of it, from being understood; suppressions that suppress nothing.
    pub problems: Vec<Problem>,
}

/// Something about a file that is no pattern of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where, if it has a place.
    pub range: Option<TextRange>,
    /// What, a sentence in lower case without a full stop.
    pub message: String,
}

/// Checks `sources`, which belong to one project; the answers are in their order. `done` is called once for each file.
pub fn check(sources: &[Source], selection: &Selection, done: &(dyn Fn() + Sync)) -> Vec<Checked> {
    // Trees are walked by recursion. Threads with room for that are made once; where they cannot be, each walk makes its own room.
    match rayon::ThreadPoolBuilder::new().stack_size(STACK).build() {
        Ok(threads) => threads.install(|| check_here(sources, selection, done)),
        Err(_) => check_here(sources, selection, done),
    }
}

/// What a thread reserves for its stack; only what is used of it takes memory.
const STACK: usize = 64 << 20;

fn check_here(sources: &[Source], selection: &Selection, done: &(dyn Fn() + Sync)) -> Vec<Checked> {
    let modules = module_names(sources);
    let (trees, notes): (Vec<ModModule>, Vec<Notes>) = sources.par_iter().map(read).unzip();
    let names: Vec<Names<'_>> = trees
        .par_iter()
        .zip(&modules)
        .map(|(tree, module)| with_deep_stack(|| collect(&tree.body, &module.name, module.is_package)))
        .collect();
    let (facts, project) = follow_project(&names);
    let checked = run_rules(sources, &names, &facts, &project, notes, selection, done);
    // They are millions of small blocks: one thread alone would be long giving them back, and nobody needs to wait for the trees.
    facts.into_par_iter().for_each(drop);
    names.into_par_iter().for_each(drop);
    rayon::spawn(move || drop(trees));
    checked
}

/// Runs the rules over what is known of each file.
fn run_rules(
    sources: &[Source],
    names: &[Names<'_>],
    facts: &[Facts<'_>],
    project: &Project,
    notes: Vec<Notes>,
    selection: &Selection,
    done: &(dyn Fn() + Sync),
) -> Vec<Checked> {
    let nobody = Calling::default();
    // Who calls whom is asked before it is known.
    let calls: Vec<_> = (0..sources.len())
        .into_par_iter()
        .map(|it| {
            let file = FileId(it as u32);
            FileCalls::of(&Context::new(&sources[it], file, &names[it], &facts[it], project, &nobody))
        })
        .collect();
    let calling = Calling::of(&calls);
    let rules: Vec<_> = selection.rules().collect();
    notes
        .into_par_iter()
        .enumerate()
        .map(|(index, notes)| {
            let file = FileId(index as u32);
            let context =
                Context::new(&sources[index], file, &names[index], &facts[index], project, &calling);
            let mut found = Vec::new();
            with_deep_stack(|| {
                for rule in &rules {
                    (rule.check)(&context, &mut found);
                }
            });
            found.sort_by_key(|it| (it.range.start(), it.range.end(), it.rule.code));
            let mut problems = notes.problems;
            let (diagnostics, suppressed, wrong) = notes.suppressions.apply(found, selection);
            problems.extend(wrong);
            problems.extend(not_followed(&facts[index]));
            done();
            Checked { diagnostics, suppressed, problems }
        })
        .collect()
}

/// What to say of names of which nothing is known because there is too much of them.
fn not_followed(facts: &Facts<'_>) -> Option<Problem> {
    let mut names: Vec<&str> = facts.not_followed.iter().copied().collect();
    names.sort_unstable();
    let first = names.first()?;
    let others = match names.len() {
        1 => String::new(),
        n => format!(" and {} other names", n - 1),
    };
    let verb = if names.len() == 1 { "is" } else { "are" };
    let message = format!(
        "`{first}`{others} {verb} mentioned too often in one scope: what is put into them is not looked at"
    );
    Some(Problem { range: None, message })
}

/// What is known of a file beside its tree.
struct Notes {
    /// Why it, or a part of it, could not be read.
    problems: Vec<Problem>,
    suppressions: Suppressions,
}

/// Parses a file. Its tokens, which take as much memory as its tree, are not kept; the tree is empty where there can be none.
fn read(source: &Source) -> (ModModule, Notes) {
    match source.parse() {
        Ok(parsed) => {
            let notes =
                Notes { problems: syntax_errors(&parsed), suppressions: Suppressions::of(source, &parsed) };
            (parsed.into_syntax(), notes)
        }
        Err(problem) => {
            (empty_module(), Notes { problems: vec![problem], suppressions: Suppressions::default() })
        }
    }
}

/// Follows the code of all files, those that are imported before those that import them.
fn follow_project<'a>(names: &[Names<'a>]) -> (Vec<Facts<'a>>, Project) {
    let mut project = Project::of(names.iter().map(|it| it.module.to_owned()));
    let mut facts: Vec<Facts<'a>> = (0..names.len()).map(|_| Facts::default()).collect();
    for level in import_order(names, &project) {
        let followed: Vec<_> = level
            .par_iter()
            .map(|file| {
                let names = &names[file.0 as usize];
                let facts = follow(*file, names, &project);
                let summary = FileSummary::of(names, &facts);
                (*file, facts, summary)
            })
            .collect();
        for (file, followed, summary) in followed {
            facts[file.0 as usize] = followed;
            project.add(file, summary);
        }
    }
    project.complete();
    (facts, project)
}
