//! Who else holds the blocks of a row: what has to be given up besides its path.
//!
//! The row's path is given up, and the best paths to those of its blocks that are still reached are found in the same way as the row's own was.
//! They are given up in turn, and so on. Only what can reach these blocks is searched.

use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use vramscope_model::Bytes;

use crate::cuts::{Cut, Cuts, Cutter, Sharing, is_of_module};
use crate::entries::Entries;
use crate::graph::Heap;
use crate::holders::{AlsoHeldBy, Through};
use crate::kept::{Graph, NONE};
use crate::node_set::NodeSet;
use crate::part::{Allowed, Part};
use crate::paths::{PathId, Paths};
use crate::rows::{Held, Row};
use crate::trace::{Ground, Trace};

/// So many groups of rows are looked at, those first of which others hold most.
const MOST_GROUPS: usize = 16;
/// So often the best paths are given up.
const ROUNDS: usize = 3;
/// So many others are named.
const MOST_NAMED: usize = 5;
/// Of more blocks, every so many are asked for their paths.
const MOST_ASKED: usize = 1000;
/// References that may lead to the blocks of a group.
const MOST_REFERENCES: usize = 500_000;
/// References that are followed in all, going through the parts again and again: some tenths of a second's work.
const MOST_FOLLOWED: usize = 8_000_000;
/// So often a part is gone through to build it and to see where it leads, and once for each of the others.
const PASSES: usize = 4 + MOST_NAMED;

/// What is known when it is asked who else holds the blocks of a heap.
pub(crate) struct Asked<'a> {
    pub(crate) heap: &'a Heap,
    pub(crate) ground: &'a Ground<'a>,
    pub(crate) trace: &'a Trace,
    pub(crate) entries: &'a Entries,
    /// Of each block.
    pub(crate) held: &'a [Held],
    /// The node of each block, if anything leads there.
    pub(crate) nodes: &'a [Option<u32>],
    pub(crate) sharing: &'a Sharing<'a>,
}

/// What becomes of a block once the path of its row is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Nothing reaches it any more.
    Freed,
    /// Something still does.
    Kept,
}

/// Who else holds the blocks of a row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Others {
    pub(crate) also: Vec<AlsoHeldBy>,
    pub(crate) more: Bytes,
    /// What becomes of each block of the row; empty if the row was not looked at.
    fates: Vec<Fate>,
}

impl Others {
    /// What becomes of the block at a place in its row.
    pub(crate) fn fate(&self, at: usize) -> Option<Fate> {
        self.fates.get(at).copied()
    }
}

/// A path beside the row's own, in numbers of a part.
struct Named {
    path: PathId,
    through: Option<Through>,
    /// What it is given up by, for each object at its end.
    cuts: Vec<Cut>,
    /// What gives up all of them where more are found each time: the containers that they are in.
    further: Vec<Cut>,
}

/// Finds who else holds the blocks of each row.
pub(crate) fn others(asked: &Asked<'_>, rows: &[Row], paths: &mut Paths) -> Vec<Others> {
    let mut found: Vec<Others> = rows.iter().map(|_| Others::default()).collect();
    // Rows with the same cuts, such as those of a module's parameters, are looked at together.
    let mut groups: FxHashMap<(Vec<Cut>, bool), (Bytes, Vec<usize>)> = FxHashMap::default();
    for (i, row) in rows.iter().enumerate() {
        let shared = row.blocks.iter().filter(|&&block| asked.is_shared(block));
        let shared: Bytes = shared.map(|&block| asked.heap.blocks[block as usize].bytes).sum();
        if shared == Bytes::ZERO {
            continue;
        }
        let of_modules = is_of_module(row.class);
        let mut cuts: Vec<Cut> =
            row.blocks.iter().filter_map(|&block| asked.held[block as usize].cut).collect();
        cuts.sort_unstable();
        cuts.dedup();
        let group = groups.entry((cuts, of_modules)).or_default();
        group.0 += shared;
        group.1.push(i);
        if !of_modules {
            // Until it was looked at.
            found[i].more = shared;
        }
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, (shared, members))| (Reverse(*shared), members.first().copied()));
    groups.truncate(MOST_GROUPS);
    let Some(_) = groups.first() else { return found };

    let incoming = asked.ground.kept.graph.reversed();
    let mut work = MOST_FOLLOWED;
    for ((cuts, of_modules), (_, members)) in groups {
        let group = Group { asked, rows, members: &members, cuts: &cuts, of_modules };
        if let Some(answers) = group.look(&incoming, paths, &mut work) {
            for (i, answer) in members.into_iter().zip(answers) {
                found[i] = answer;
            }
        }
    }
    found
}

impl Asked<'_> {
    /// Whether something may reach a block when its own path is given up.
    fn is_shared(&self, block: u32) -> bool {
        let at = block as usize;
        let of = self.held[at].cut.zip(self.nodes[at]);
        of.is_some_and(|(cut, node)| self.sharing.is_kept(cut, node))
    }
}

/// What gives up rows and some of the others.
fn together<'a>(own: &Cuts, named: impl IntoIterator<Item = &'a Named>) -> Cuts {
    let mut cuts = own.clone();
    cuts.extend(named.into_iter().flat_map(|named| named.cuts.iter().chain(&named.further).copied()));
    cuts
}

/// Rows that are given up together.
struct Group<'a> {
    asked: &'a Asked<'a>,
    rows: &'a [Row],
    members: &'a [usize],
    cuts: &'a [Cut],
    /// Whether their blocks are parameters and buffers, which are given up with their modules.
    of_modules: bool,
}

/// A block that others may hold, too.
struct Candidate {
    /// Its number in the part.
    node: u32,
    bytes: Bytes,
    /// What its row is called, and what its module is.
    own: [(PathId, Option<Through>); 2],
}

impl Group<'_> {
    /// The answer for each row; nothing if it would take too long.
    fn look(&self, incoming: &Graph, paths: &mut Paths, work: &mut usize) -> Option<Vec<Others>> {
        let asked = self.asked;
        let mut cuts = Cuts::default();
        // What has other names is still reached by them, and found once more.
        cuts.extend(self.cuts.iter().copied().filter(|&cut| !asked.sharing.leaves_names(cut)));
        let shared: Vec<(&Row, u32)> = self
            .members
            .iter()
            .flat_map(|&i| self.rows[i].blocks.iter().map(move |&block| (&self.rows[i], block)))
            .filter(|&(_, block)| asked.is_shared(block))
            .collect();
        let node = |block: u32| asked.nodes[block as usize];
        let mut own_origins: Vec<u32> =
            shared.iter().filter_map(|&(_, block)| Some(asked.trace.origin[node(block)? as usize])).collect();
        own_origins.sort_unstable();
        own_origins.dedup();
        let allowed = Allowed { of_modules: self.of_modules, own_origins: &own_origins };
        let nodes = shared.iter().filter_map(|&(_, block)| node(block));
        let limit = MOST_REFERENCES.min(*work / PASSES);
        let part = Part::of(asked.ground, asked.entries, incoming, nodes, &cuts, allowed, limit);
        // What was too large counts as if it had been gone through, so that little is tried in vain.
        let size = part.as_ref().map_or(limit, Part::size);
        *work = work.saturating_sub(size.saturating_mul(PASSES));
        let part = part?;

        let candidates: Vec<Candidate> = shared
            .iter()
            .filter_map(|&(row, block)| {
                let node = node(block)?;
                let object = Cutter::object(asked.trace, node, self.of_modules);
                let module = paths.settled(asked.trace.path[object as usize]);
                let own = [(row.path, row.through), (module, row.through)];
                let bytes = asked.heap.blocks[block as usize].bytes;
                Some(Candidate { node: part.kept.find(node)?, bytes, own })
            })
            .collect();
        let mut own = Cuts::default();
        let mut named: Vec<Named> = Vec::new();
        let mut untold = Cuts::default();
        for _ in 0..ROUNDS {
            *work = work.checked_sub(part.size() * 2)?;
            if !self.round(&part, &candidates, &mut own, &mut named, &mut untold, paths) {
                break;
            }
        }
        Some(self.answers(&part, &own, &named, &untold, paths))
    }

    /// Finds the best paths to what is still reached; whether there are any.
    fn round(
        &self,
        part: &Part,
        candidates: &[Candidate],
        own: &mut Cuts,
        named: &mut Vec<Named>,
        untold: &mut Cuts,
        paths: &mut Paths,
    ) -> bool {
        let cuts = together(own, named.iter());
        let graph = part.without(&cuts);
        let search = part.search(&graph, &cuts);
        let reached: Vec<&Candidate> = candidates.iter().filter(|one| search.is_reached(one.node)).collect();
        let ground = part.ground(self.asked.ground, &search);
        let every = reached.len().div_ceil(MOST_ASKED).max(1);
        let some = || reached.iter().step_by(every);
        let trace = Trace::to(&ground, some().map(|one| one.node), paths);
        let mut cutter = Cutter::default();
        let mut found: Vec<(Named, Bytes)> = Vec::new();
        let mut places: FxHashMap<(PathId, Option<Through>), usize> = FxHashMap::default();
        for one in some() {
            let object = Cutter::object(&trace, one.node, self.of_modules);
            let reach = search.reach[one.node as usize];
            let through = (reach.through && !self.of_modules).then_some(Through::Autograd);
            let cut = cutter.cut(&ground, &trace, object);
            let mut spelled = trace.spellings(&ground, object, cut.beyond(), paths);
            spelled.retain(|&path| !one.own.contains(&(path, through)));
            let container = trace.container[cut.beyond() as usize];
            let further = (container != NONE).then_some(Cut::Node(container));
            if spelled.is_empty() {
                own.add(cut);
                own.extend(further);
            }
            for path in spelled {
                let place = *places.entry((path, through)).or_insert_with(|| {
                    let cuts = part.garbage_like(object).collect();
                    found.push((Named { path, through, cuts, further: Vec::new() }, Bytes::ZERO));
                    found.len() - 1
                });
                let (named, bytes) = &mut found[place];
                named.cuts.push(cut);
                named.further.extend(further);
                *bytes += one.bytes;
            }
        }
        found.sort_by_key(|(_, bytes)| Reverse(*bytes));
        for (new, _) in found {
            let known = named.iter().position(|named| (named.path, named.through) == (new.path, new.through));
            match known {
                Some(at) => {
                    named[at].cuts.extend(new.cuts);
                    named[at].further.extend(new.further);
                }
                // At first each object by itself, if all were found.
                None if named.len() < MOST_NAMED => {
                    let further = if every > 1 { new.further } else { Vec::new() };
                    named.push(Named { further, ..new });
                }
                // Of an object with very many names, some are told; they do not give it up.
                None => untold.extend(new.cuts),
            }
        }
        !reached.is_empty()
    }

    /// Counts what each of the others holds of each row.
    fn answers(&self, part: &Part, own: &Cuts, named: &[Named], untold: &Cuts, paths: &Paths) -> Vec<Others> {
        let graph = part.without(own);
        let reached = part.reachable(&graph, own);
        let beyond: Vec<NodeSet> = named
            .iter()
            .map(|named| {
                let cuts = named.cuts.iter().chain(&named.further);
                part.beyond(&graph, cuts, &reached, named.through.is_some())
            })
            .collect();
        // What is left when those are given up that are told of a row: most rows have the same.
        let mut rests: FxHashMap<Vec<bool>, NodeSet> = FxHashMap::default();

        let mut answers = Vec::with_capacity(self.members.len());
        for &i in self.members {
            let mut answer = Others::default();
            let mut held: Vec<(Bytes, u64)> = vec![(Bytes::ZERO, 0); named.len()];
            let mut kept: Vec<(u32, Bytes)> = Vec::new();
            for &block in &self.rows[i].blocks {
                let node = self.asked.nodes[block as usize].and_then(|node| part.kept.find(node));
                let bytes = self.asked.heap.blocks[block as usize].bytes;
                let Some(node) = node.filter(|&node| reached.contains(node)) else {
                    answer.fates.push(Fate::Freed);
                    continue;
                };
                answer.fates.push(Fate::Kept);
                kept.push((node, bytes));
                for (held, _) in held.iter_mut().zip(&beyond).filter(|(_, beyond)| beyond.contains(node)) {
                    held.0 += bytes;
                    held.1 += 1;
                }
            }
            let is_told: Vec<bool> = held.iter().map(|&(_, blocks)| blocks > 0).collect();
            let rest = rests.entry(is_told).or_insert_with_key(|is_told| {
                let told = named.iter().zip(is_told).filter(|(_, is_told)| **is_told).map(|(named, _)| named);
                let mut cuts = together(own, told);
                cuts.restore(untold);
                part.reachable(&part.without(&cuts), &cuts)
            });
            answer.more = kept.iter().filter(|(node, _)| rest.contains(*node)).map(|&(_, bytes)| bytes).sum();
            let with_blocks = named.iter().zip(held).filter(|(_, (_, blocks))| *blocks > 0);
            answer.also = with_blocks
                .map(|(named, (bytes, blocks))| AlsoHeldBy {
                    path: paths.spelling(named.path),
                    through: named.through,
                    bytes,
                    blocks,
                })
                .collect();
            answer.also.sort_by_key(|also| Reverse(also.bytes));
            answers.push(answer);
        }
        answers
    }
}
