//! Which stack of one run is which of another.
//!
//! Equal stacks are one. Of the rest, those are paired that are equal but for the folders that the program lay in;
//! and of what is then left, those that pass through the same functions, since an edit moves lines. Where only one
//! run recorded C++ frames, they are left out of these comparisons.

use rustc_hash::{FxHashMap, FxHashSet};
use vramscope_model::{FrameId, Origin, StackId, StringId, Symbols};
use vramscope_replay::change::{Fate, Held};

use super::paths;
use crate::place;
use crate::quantity::count;

/// What a block without a known stack is called when the trace began after it was allocated.
const BEFORE_RECORDING: &str = "older than the recording";

/// What is known of where blocks were allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Source {
    /// The stack.
    pub(super) stack: StackId,
    /// No stack, because the trace began later.
    before_recording: bool,
}

impl Source {
    pub(super) fn of(held: &Held) -> Self {
        let before_recording = held.stack == StackId::ABSENT && held.older_than_trace;
        Self { stack: held.stack, before_recording }
    }

    /// Whether it is a place in the user's program. That both of two runs allocate elsewhere says nothing about them.
    fn is_placed(self, symbols: &Symbols) -> bool {
        symbols.site(self.stack).is_some()
    }

    pub(super) fn label(self, symbols: &Symbols) -> String {
        if self.before_recording { BEFORE_RECORDING.to_owned() } else { place::label(symbols, self.stack) }
    }
}

/// What blocks are grouped by: their innermost user frame, else what the place is called.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SiteKey {
    /// File, line and function.
    Line(StringId, u32, StringId),
    /// There is no user frame.
    Named(String),
}

/// Which stacks are the same, though written differently.
#[derive(Debug, Default)]
pub(super) struct Pairing {
    /// Stacks of the earlier run and the stack of the later one that each is shown as.
    before: FxHashMap<Source, Source>,
    /// Stacks of the later run that are not told apart from another one of it.
    after: FxHashMap<Source, Source>,
    /// Files of the earlier run and of the later one that are the same.
    files: FxHashMap<StringId, StringId>,
    /// How many of the earlier run's stacks in user code were found to be equal, equal but for folders, equal but for
    /// lines.
    found: [u64; 3],
    /// Distinct stacks in user code in the earlier and in the later run.
    stacks: (u64, u64),
    /// Whether C++ frames were left out because only one run has them.
    without_native: bool,
}

impl Pairing {
    /// Within one process, equal stacks are the same and no others.
    pub(super) fn identity() -> Self {
        Self::default()
    }

    /// Pairs the stacks of the blocks of two runs: those that died are the earlier one's.
    pub(super) fn between_runs<'a>(
        blocks: impl Iterator<Item = &'a (Held, Fate)>,
        symbols: &Symbols,
    ) -> Self {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for (held, fate) in blocks {
            if held.stack != StackId::ABSENT {
                let side = if *fate == Fate::Died { &mut before } else { &mut after };
                side.push(Source::of(held));
            }
        }
        for side in [&mut before, &mut after] {
            side.sort_unstable();
            side.dedup();
        }
        let count_placed = |side: &[Source]| side.iter().filter(|s| s.is_placed(symbols)).count() as u64;
        let mut pairing = Self {
            stacks: (count_placed(&before), count_placed(&after)),
            without_native: has_native(&before, symbols) != has_native(&after, symbols),
            ..Self::default()
        };

        let common: Vec<Source> = before.iter().copied().filter(|s| after.binary_search(s).is_ok()).collect();
        pairing.found[0] = count_placed(&common);
        before.retain(|s| common.binary_search(s).is_err());
        after.retain(|s| common.binary_search(s).is_err());

        pairing.files = paths::same_files(&files(&before, symbols), &files(&after, symbols), symbols);
        pairing.pair_by(1, &mut before, &mut after, symbols, |frame| (frame.file, frame.name, frame.line));
        pairing.forget_doubtful_files(symbols);
        pairing.pair_by(2, &mut before, &mut after, symbols, |frame| (frame.file, frame.name, 0));
        pairing
    }

    /// Pairs what is equal by a key of its frames, and takes it out of what is left to pair.
    fn pair_by(
        &mut self,
        level: usize,
        before: &mut Vec<Source>,
        after: &mut Vec<Source>,
        symbols: &Symbols,
        key: impl Fn(&vramscope_model::Frame) -> (StringId, StringId, u32),
    ) {
        let key_of = |source: &Source, files: &FxHashMap<StringId, StringId>| -> Vec<_> {
            let frames = symbols.frames(source.stack).iter().map(|&f| symbols.get_frame(f));
            frames
                .filter(|frame| !self.without_native || frame.origin != Origin::Native)
                .map(|mut frame| {
                    frame.file = files.get(&frame.file).copied().unwrap_or(frame.file);
                    key(&frame)
                })
                .collect()
        };
        let nothing = FxHashMap::default();
        let mut first_of: FxHashMap<Vec<_>, Source> = FxHashMap::default();
        let mut members: Vec<(Source, Source)> = Vec::new();
        for source in after.iter() {
            let first = *first_of.entry(key_of(source, &nothing)).or_insert(*source);
            members.push((*source, first));
        }
        let files = std::mem::take(&mut self.files);
        let mut used = FxHashSet::default();
        before.retain(|source| {
            let partner = first_of.get(&key_of(source, &files)).copied();
            if let Some(partner) = partner {
                self.before.insert(*source, partner);
                self.found[level] += u64::from(source.is_placed(symbols));
                used.insert(partner);
            }
            partner.is_none()
        });
        self.files = files;
        self.after.extend(members.into_iter().filter(|(_, first)| used.contains(first)));
        after.retain(|source| !self.after.contains_key(source));
    }

    /// Many programs have a `train.py`. Before lines are disregarded, files in different folders must have shown to be
    /// the same: by a stack that matches line by line, or by the name of the folder that they lie in.
    fn forget_doubtful_files(&mut self, symbols: &Symbols) {
        let matched: FxHashSet<StringId> = self
            .before
            .keys()
            .flat_map(|source| symbols.frames(source.stack))
            .map(|&frame| symbols.get_frame(frame).file)
            .collect();
        self.files.retain(|a, b| {
            a == b || matched.contains(a) || paths::common_tail(symbols.str(*a), symbols.str(*b)) > 1
        });
    }

    /// The stack that a block's stack is shown as.
    pub(super) fn paired(&self, source: Source, fate: Fate) -> Source {
        let side = if fate == Fate::Died { &self.before } else { &self.after };
        side.get(&source).copied().unwrap_or(source)
    }

    /// What a stack is grouped by.
    pub(super) fn site(&self, source: Source, symbols: &Symbols) -> SiteKey {
        match symbols.site(source.stack) {
            Some(site) => {
                let frame = symbols.get_frame(site);
                let file = self.files.get(&frame.file).copied().unwrap_or(frame.file);
                SiteKey::Line(file, frame.line, frame.name)
            }
            None => SiteKey::Named(source.label(symbols)),
        }
    }

    /// What to know of the pairs.
    pub(super) fn caveats(&self, (before, after): (&str, &str), symbols: &Symbols) -> Vec<String> {
        let mut caveats = Vec::new();
        let [equal, by_path, by_function] = self.found;
        if equal + by_path + by_function == 0 && self.stacks.0 > 0 && self.stacks.1 > 0 {
            caveats.push(format!(
                "no stack in the code of {before} occurs in {after}: they may be of different programs"
            ));
        }
        if self.without_native {
            caveats.push(format!(
                "only one of {before} and {after} has C++ frames; stacks are matched by their Python frames"
            ));
        }
        if by_path > 0 || by_function > 0 {
            let mut pairs: Vec<(&str, &str)> = self
                .files
                .iter()
                .map(|(&a, &b)| (symbols.str(a), symbols.str(b)))
                .filter(|(a, b)| a != b && Origin::of(a, "") == Origin::User)
                .collect();
            pairs.sort_unstable();
            if let Some((a, b)) = pairs.first() {
                let more = match pairs.len() - 1 {
                    0 => String::new(),
                    n => format!(", and {}", count(n as u64, "other file")),
                };
                caveats.push(format!("files are matched by the end of their paths: {a} with {b}{more}"));
            }
        }
        if by_function > 0 {
            caveats.push(format!(
                "{} of {} in {before} pass through the same functions as in {after} but at other lines; they are \
                 matched by function, as if an edit had moved the lines",
                by_function,
                count(self.stacks.0, "stack")
            ));
        }
        caveats
    }
}

fn has_native(sources: &[Source], symbols: &Symbols) -> bool {
    let mut frames = sources.iter().flat_map(|s| symbols.frames(s.stack));
    frames.any(|&f| symbols.get_frame(f).origin == Origin::Native)
}

/// The distinct Python files of some stacks.
fn files(sources: &[Source], symbols: &Symbols) -> Vec<StringId> {
    let frames = sources.iter().flat_map(|s| symbols.frames(s.stack));
    let mut files: Vec<StringId> = frames
        .map(|&FrameId(f)| symbols.get_frame(FrameId(f)))
        .filter(|f| matches!(f.origin, Origin::User | Origin::Library))
        .map(|f| f.file)
        .collect();
    files.sort_unstable();
    files.dedup();
    files
}
