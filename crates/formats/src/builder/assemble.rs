//! Puts the rows together when the file has ended.

use vramscope_model::{Block, BlockState, Bytes, Device, HostMemory, Segment, Settings, Snapshot};
use vramscope_pickle::{Atoms, Kind, Value};

use super::{Builder, Node, RootDraft};
use crate::error::{Warning, excerpt};

/// How many settings are kept, and how many characters of each. The allocator has about 20.
const MAX_SETTINGS: usize = 256;
const MAX_SETTING_TEXT: usize = 4096;
impl Builder<'_> {
    /// The snapshot that a file's outermost value stands for, or what that value is instead.
    ///
    /// `open` holds the containers that were still being filled when the file ended too early, if it did.
    pub(crate) fn finish(
        mut self,
        root: Option<Value>,
        atoms: &Atoms,
        open: Option<&[Value]>,
    ) -> Result<(Snapshot, Vec<Warning>), String> {
        self.drop_unfinished(open.unwrap_or(&[]));
        let is_cut = open.is_some();
        let root = self.root_draft(root, atoms, is_cut)?;
        let host = self.features.host.then(|| self.host_memory(&root, atoms));
        let mut devices = self.take_traces(root.traces, is_cut);
        self.take_segments(root.segments, is_cut, &mut devices);
        let mut devices: Vec<Device> =
            devices.into_iter().map(|(ordinal, device)| Device { ordinal, ..device }).collect();
        devices.retain(|d| !d.events.is_empty() || !d.segments.is_empty());
        for device in &mut devices {
            for segment in &mut device.segments {
                lay_out(segment);
            }
            device.segments.sort_by_key(|s| s.addr);
        }
        let settings = root.settings.map(|v| self.settings(v, atoms));
        let mut annotations = self.take_annotations(root.annotations, is_cut);
        annotations.sort_by_key(|a| a.time);
        if root.traces.is_none() && !self.features.bare_list {
            self.warnings.push(Warning::new(
                "there is no `device_traces` in the file, so there is no history to go by",
            ));
        }
        if root.segments.is_none() {
            self.warnings.push(Warning::new(
                "there is no `segments` in the file, so what was held when the snapshot was taken is not known",
            ));
        }
        let snapshot =
            Snapshot { devices, annotations, settings, host, features: self.features, truncated: is_cut };
        Ok((snapshot, self.warnings))
    }

    /// Leaves out the event, segment and mark that was being written where the file ends: half of one would be taken for
    /// what it is not.
    fn drop_unfinished(&mut self, open: &[Value]) {
        for value in open {
            let Kind::Dict(number) = value.kind() else { continue };
            match self.node(number) {
                Node::Event(i) if i as usize + 1 == self.events.len() => self.events.truncate(i as usize),
                Node::Segment(i) if i as usize + 1 == self.segments.len() => {
                    self.segments.truncate(i as usize);
                }
                Node::Annotation(i) if i as usize + 1 == self.annotations.len() => {
                    self.annotations.truncate(i as usize);
                }
                _ => {}
            }
        }
    }

    fn root_draft(&mut self, root: Option<Value>, atoms: &Atoms, is_cut: bool) -> Result<RootDraft, String> {
        let kind = root.map(Value::kind);
        let node = match kind {
            Some(Kind::Dict(n) | Kind::List(n) | Kind::Tuple(n)) => self.node(n),
            _ => Node::Empty,
        };
        match node {
            Node::Root(i) => return Ok(self.roots.get(i as usize).copied().unwrap_or_default()),
            Node::Values(i) => {
                let items = self.values.get(i as usize).map_or(&[][..], |v| v);
                if items.first().is_some_and(|&v| matches!(self.node_of(v), Node::Segment(_))) {
                    self.features.bare_list = true;
                    return Ok(RootDraft { segments: root, ..RootDraft::default() });
                }
                if items.iter().any(|&v| matches!(self.node_of(v), Node::Trace(_))) {
                    return Ok(RootDraft { traces: root, ..RootDraft::default() });
                }
            }
            Node::Trace(_) => return Ok(RootDraft { traces: root, ..RootDraft::default() }),
            Node::Empty if matches!(kind, Some(Kind::List(_))) => {
                return Err(
                    "an empty list; `memory_snapshot()` returns one before the first allocation on the GPU"
                        .into(),
                );
            }
            _ => {}
        }
        // A snapshot kept among other things in a larger dict.
        if let Some(&found) = self.roots.first() {
            self.warnings.push(Warning::new(match self.roots.len() {
                1 => "the snapshot lies inside another object; the rest of that object was passed over".to_owned(),
                n => format!(
                    "{n} snapshots lie inside another object; the first was read and the rest of that object passed over"
                ),
            }));
            return Ok(found);
        }
        if is_cut && (!self.events.is_empty() || !self.segments.is_empty()) {
            // The file ended before its outermost container was known for what it is.
            return Ok(RootDraft {
                segments: (!self.segments.is_empty()).then_some(Value::NONE),
                ..RootDraft::default()
            });
        }
        Err(match kind {
            Some(Kind::Dict(n)) => match self.node(n) {
                Node::Items(i) => {
                    let keys: Vec<&str> = self
                        .undecided
                        .get(i as usize)
                        .map_or(&[][..], |u| &u.pairs)
                        .chunks(2)
                        .filter_map(|pair| match pair.first()?.kind() {
                            Kind::Str(id) => Some(atoms.str(id)),
                            _ => None,
                        })
                        .collect();
                    if keys.is_empty() {
                        "a dict without a key that is text".to_owned()
                    } else if keys.contains(&"traceEvents") {
                        "a Chrome trace of torch.profiler, not a memory snapshot".to_owned()
                    } else {
                        let shown = keys
                            .iter()
                            .take(5)
                            .map(|k| format!("`{}`", excerpt(k)))
                            .collect::<Vec<_>>()
                            .join(", ");
                        format!("a dict with the keys {shown}{}", if keys.len() > 5 { ", …" } else { "" })
                    }
                }
                _ => "a dict of something else".to_owned(),
            },
            Some(Kind::List(_) | Kind::Tuple(_)) => "a list of something else".to_owned(),
            Some(Kind::Str(_)) => "a text".to_owned(),
            Some(Kind::Int(_) | Kind::BigInt | Kind::Float | Kind::Bool(_)) => "a number".to_owned(),
            Some(Kind::None) => "nothing (`None`)".to_owned(),
            Some(Kind::Global(_) | Kind::Opaque) => {
                "a Python object that would have to be executed; pickles are never executed here".to_owned()
            }
            None => "nothing".to_owned(),
        })
    }

    fn settings(&self, value: Value, atoms: &Atoms) -> Settings {
        let mut settings = Settings::default();
        for (name, value) in self.pairs(value, atoms).take(MAX_SETTINGS) {
            match name {
                "PYTORCH_CUDA_ALLOC_CONF" | "PYTORCH_ALLOC_CONF" | "PYTORCH_HIP_ALLOC_CONF" => {
                    if let Kind::Str(id) = value.kind() {
                        settings.conf = atoms.str(id).chars().take(MAX_SETTING_TEXT).collect();
                    }
                }
                "max_split_size" => {
                    settings.max_split_size = value.int(atoms).and_then(|v| u64::try_from(v).ok());
                }
                "garbage_collection_threshold" => {
                    settings.garbage_collection_threshold = value.float(atoms).unwrap_or(0.0);
                }
                "expandable_segments" => settings.expandable_segments = value == Value::TRUE,
                "roundup_power2_divisions" => {
                    settings.roundup_power2_divisions = self
                        .pairs(value, atoms)
                        .take(MAX_SETTINGS)
                        .filter_map(|(mib, d)| Some((mib.parse().ok()?, u64::try_from(d.int(atoms)?).ok()?)))
                        .collect();
                }
                _ => {}
            }
            let shown = match value.kind() {
                Kind::Str(id) => atoms.str(id).chars().take(MAX_SETTING_TEXT).collect(),
                Kind::Bool(b) => b.to_string(),
                Kind::Int(v) => v.to_string(),
                Kind::Float => value.float(atoms).unwrap_or(0.0).to_string(),
                Kind::Dict(_) => self
                    .pairs(value, atoms)
                    .take(MAX_SETTINGS)
                    .filter_map(|(k, v)| Some(format!("{k}:{}", v.int(atoms)?)))
                    .collect::<Vec<_>>()
                    .join(","),
                _ => "?".to_owned(),
            };
            settings.all.push((excerpt(name), shown));
        }
        settings
    }

    fn pairs<'s>(&'s self, value: Value, atoms: &'s Atoms) -> impl Iterator<Item = (&'s str, Value)> {
        let items = match value.kind() {
            Kind::Dict(n) => match self.node(n) {
                Node::Items(i) => self.undecided.get(i as usize).map_or(&[][..], |u| &u.pairs),
                _ => &[],
            },
            _ => &[],
        };
        items.chunks_exact(2).filter_map(|pair| match pair[0].kind() {
            Kind::Str(id) => Some((atoms.str(id), pair[1])),
            _ => None,
        })
    }

    fn host_memory(&self, root: &RootDraft, atoms: &Atoms) -> HostMemory {
        let nodes = |value: Option<Value>| match value.map(Value::kind) {
            Some(Kind::List(n) | Kind::Tuple(n)) => self.node(n),
            _ => Node::Empty,
        };
        let count = |node: Node| match node {
            Node::Trace(i) => self.traces.get(i as usize).map_or(0, |t| t.len),
            _ => 0,
        };
        let events = match nodes(root.host_traces) {
            // One list of events, or one for each device.
            Node::Values(i) => {
                self.values.get(i as usize).map_or(0, |v| v.iter().map(|&v| count(nodes(Some(v)))).sum())
            }
            node => count(node),
        };
        let sizes: Vec<Bytes> = match nodes(root.host_segments) {
            Node::Values(i) => self
                .values
                .get(i as usize)
                .map_or(&[][..], |v| v)
                .iter()
                .map(|&v| self.host_segment_size(v, atoms))
                .collect(),
            _ => Vec::new(),
        };
        HostMemory { segments: sizes.len(), bytes: sizes.into_iter().sum(), events }
    }

    fn host_segment_size(&self, segment: Value, atoms: &Atoms) -> Bytes {
        match self.node_of(segment) {
            Node::Segment(i) => self.segments.get(i as usize).map_or(Bytes::ZERO, |s| s.segment.size),
            Node::Block(i) => self.blocks.get(i as usize).map_or(Bytes::ZERO, |b| b.block.size),
            // Those of the host allocator have a size and no blocks.
            Node::Items(_) => {
                let size = self.pairs(segment, atoms).find(|(name, _)| *name == "size");
                size.and_then(|(_, v)| u64::try_from(v.int(atoms)?).ok()).map_or(Bytes::ZERO, Bytes)
            }
            _ => Bytes::ZERO,
        }
    }
}

/// Gives addresses to blocks that were written without one (before torch 2.1): they lie side by side.
fn lay_out(segment: &mut Segment) {
    let mut at = segment.addr;
    for block in &mut segment.blocks {
        if block.addr == 0 {
            block.addr = at;
        }
        at = block.addr.saturating_add(block.size.0);
        // The requested size of a free block is a leftover of its last use.
        if block.state == BlockState::Inactive {
            block.requested = None;
        }
    }
    segment.blocks.sort_by_key(|b: &Block| b.addr);
}
