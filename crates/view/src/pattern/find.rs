//! Which diagnostic a finding comes from.

use std::path::Path;

use vramscope_lint::{Diagnostic, MODULE, Scope, Scopes, Severity};

use super::holder_name::{HolderName, Owner};
use super::{MatchedBy, SourceFile};
use crate::analysis::{Analysis, Finding, Location};
use crate::recorded::Recorded;

/// A finding and the pattern that it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    /// The finding's place in its list.
    pub finding: usize,
    /// The file's place in its list.
    pub file: usize,
    /// The diagnostic's place in that file.
    pub diagnostic: usize,
    /// What ties them.
    pub by: MatchedBy,
}

impl Match {
    /// The file and the diagnostic.
    pub fn in_files<'f, 's>(
        &self,
        files: &'f [SourceFile<'s>],
    ) -> Option<(&'f SourceFile<'s>, &'s Diagnostic)> {
        let file = files.get(self.file)?;
        Some((file, file.checked.diagnostics.get(self.diagnostic)?))
    }
}

/// The patterns that findings about kept memory come from, at most one each.
pub fn matches(analysis: &Analysis, files: &[SourceFile<'_>]) -> Vec<Match> {
    let scopes = scopes(files);
    let look = Look { files, scopes: &scopes, recorded: &analysis.recorded };
    let of_memory = analysis.findings.iter().enumerate().filter(|(_, finding)| finding.is_growth());
    of_memory
        .filter_map(|(index, finding)| {
            let (candidate, by) = look.pattern_of(finding)?;
            Some(Match { finding: index, file: candidate.file, diagnostic: candidate.index, by })
        })
        .collect()
}

/// The functions and classes of each file.
pub(super) fn scopes(files: &[SourceFile<'_>]) -> Vec<Scopes> {
    files.iter().map(|file| Scopes::of(file.source)).collect()
}

/// Where patterns are looked up.
pub(super) struct Look<'a> {
    pub(super) files: &'a [SourceFile<'a>],
    /// Of each file.
    pub(super) scopes: &'a [Scopes],
    pub(super) recorded: &'a [Recorded],
}

/// A diagnostic with its surroundings.
#[derive(Clone, Copy)]
pub(super) struct Candidate<'a> {
    pub(super) file: usize,
    index: usize,
    pub(super) found: &'a Diagnostic,
    /// Its first and last line.
    lines: (u32, u32),
    scope: Option<&'a Scope>,
}

/// A frame in a source that is there.
#[derive(Clone, Copy)]
pub(super) struct Frame<'a> {
    file: usize,
    line: u32,
    scope: &'a Scope,
}

impl Candidate<'_> {
    fn is_in(&self, frame: &Frame<'_>) -> bool {
        self.file == frame.file && self.scope.is_some_and(|scope| scope == frame.scope)
    }

    /// Whether a frame is at its lines.
    pub(super) fn is_at(&self, frame: &Frame<'_>) -> bool {
        self.is_in(frame) && (self.lines.0..=self.lines.1).contains(&frame.line)
    }
}

impl<'a> Look<'a> {
    fn pattern_of(&self, finding: &Finding) -> Option<(Candidate<'a>, MatchedBy)> {
        let candidates = self.candidates();
        let user = finding.stack.iter().filter(|frame| frame.is_user);
        let frames: Vec<Frame<'a>> = user.filter_map(|frame| self.frame(&frame.location)).collect();
        let name = finding.holder.as_ref().and_then(|found| HolderName::of(&found.holder));
        if let Some(name) = &name
            && let Some(found) = self.by_holder(finding, name, &candidates, &frames)
        {
            return Some((found, MatchedBy::Holder));
        }
        // Without a holder's word only rules count that are seldom wrong.
        let trusted: Vec<Candidate<'a>> = candidates.into_iter().filter(|it| it.found.rule.default).collect();
        let site = finding.site.as_ref().and_then(|site| self.frame(site));
        if let Some(site) = site
            && let Some(found) = by_site(&trusted, &site)
        {
            return Some((found, MatchedBy::Site));
        }
        // What fills another object than the one that holds the memory is not its reason.
        let is_possible = |it: &&Candidate<'a>| name.is_none() || it.found.target.is_none();
        let possible: Vec<_> = trusted.iter().filter(is_possible).copied().collect();
        by_stack(&possible, &frames).map(|found| (found, MatchedBy::Stack))
    }

    pub(super) fn candidates(&self) -> Vec<Candidate<'a>> {
        let of_file = |(file, (source, scopes)): (usize, (&'a SourceFile<'a>, &'a Scopes))| {
            source.checked.diagnostics.iter().enumerate().map(move |(index, found)| {
                let line = |at| source.source.line_at(at);
                let lines = (line(found.range.start()), line(found.range.end()));
                Candidate { file, index, found, lines, scope: scopes.around(lines.0) }
            })
        };
        self.files.iter().zip(self.scopes).enumerate().flat_map(of_file).collect()
    }

    /// A place in a source that is there, unless that seems to be another version of it.
    pub(super) fn frame(&self, place: &Location) -> Option<Frame<'a>> {
        let file = self.files.iter().position(|file| file.recorded.contains(&place.file))?;
        let scope = self.scopes.get(file)?.around(place.line)?;
        let name = place.function.rsplit('.').next().unwrap_or_default();
        // A comprehension or a lambda is part of the function around it.
        let is_part = name.starts_with('<') && name != MODULE;
        (is_part || scope.name == name).then_some(Frame { file, line: place.line, scope })
    }

    fn by_holder(
        &self,
        finding: &Finding,
        name: &HolderName<'_>,
        candidates: &[Candidate<'a>],
        frames: &[Frame<'a>],
    ) -> Option<Candidate<'a>> {
        let is_on_stack = |it: &Candidate<'_>| frames.iter().any(|frame| it.is_in(frame));
        let is_of_type = |it: &Candidate<'_>| match &name.owner {
            Owner::Object(Some(of_type)) => it.scope.is_some_and(|it| it.class.as_deref() == Some(of_type)),
            _ => false,
        };
        let mut named: Vec<_> = candidates
            .iter()
            .filter(|it| it.found.target.as_ref().is_some_and(|target| name.is(target)))
            .filter(|it| self.may_own(finding, &name.owner, it))
            .map(|it| ((is_of_type(it), is_on_stack(it), it.found.severity), *it))
            .collect();
        // Of equals the first stays the first.
        named.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
        let (weight, best) = named.first()?;
        // The same name in several files is nobody's, unless something tells them apart.
        let is_tied = |(other, it): &(_, Candidate<'_>)| *other == *weight && it.file != best.file;
        let is_vague = !weight.0 && !weight.1 && named.iter().any(|(_, it)| it.file != best.file);
        (!is_vague && !named.iter().any(is_tied)).then_some(*best)
    }

    /// Whether what has the name can be at the place of a diagnostic.
    fn may_own(&self, finding: &Finding, owner: &Owner<'_>, at: &Candidate<'_>) -> bool {
        let Some(file) = self.files.get(at.file) else { return false };
        match owner {
            Owner::Function(name) => at.scope.is_some_and(|scope| scope.name == *name),
            Owner::Module("__main__") => {
                let script = self.script(finding);
                script.is_none_or(|script| file.recorded.contains(&script))
            }
            Owner::Module(module) => is_module(file.source.name(), module),
            Owner::Closure | Owner::Object(_) | Owner::Unknown => true,
        }
    }

    /// The file that was run, as far as the stack or the recorder tells.
    fn script(&self, finding: &Finding) -> Option<String> {
        let outermost = finding.stack.iter().rev().find(|frame| frame.is_user);
        let of_stack = outermost.filter(|frame| frame.location.function == MODULE);
        if let Some(frame) = of_stack {
            return Some(frame.location.file.clone());
        }
        let process = self.recorded.iter().find(|recorded| recorded.rank == finding.rank)?;
        script_of(process)
    }
}

/// The script in the command that was recorded, as it was typed.
pub fn script_of(recorded: &Recorded) -> Option<String> {
    let command = &recorded.environment.as_ref()?.command;
    let words: Vec<&str> = match command.as_slice() {
        [line] => line.split_whitespace().collect(),
        words => words.iter().map(String::as_str).collect(),
    };
    let script = words.into_iter().find(|word| Path::new(word).extension().is_some_and(|it| it == "py"))?;
    Some(script.to_owned())
}

/// Whether the file at that path can be that module; the path may begin within its package.
fn is_module(path: &str, module: &str) -> bool {
    let path = path.strip_suffix(".py").unwrap_or(path);
    let path = path.strip_suffix("/__init__").unwrap_or(path);
    path.rsplit(['/', '\\']).zip(module.rsplit('.')).all(|(a, b)| a == b)
}

fn by_site<'a>(candidates: &[Candidate<'a>], site: &Frame<'_>) -> Option<Candidate<'a>> {
    let at_site = candidates.iter().filter(|it| it.is_at(site));
    // Of equals the first.
    at_site.copied().reduce(|best, it| if it.found.severity > best.found.severity { it } else { best })
}

fn by_stack<'a>(candidates: &[Candidate<'a>], frames: &[Frame<'_>]) -> Option<Candidate<'a>> {
    frames.iter().find_map(|frame| {
        let here = candidates.iter().filter(|it| it.is_in(frame) && it.found.severity >= Severity::Warning);
        let worst = here.clone().map(|it| it.found.severity).max()?;
        let mut worst = here.filter(|it| it.found.severity == worst);
        let first = worst.next()?;
        // Two that keep different things are as likely as each other.
        worst.all(|it| it.found.target == first.found.target).then_some(*first)
    })
}
