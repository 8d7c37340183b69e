//! From an address to a node of the graph: each C++ object once, if it is what it should be and lives.

use super::super::class::Family;
use super::super::graph::{Device, Function, Node, Owners, Storage, Tensor};
use super::super::layout::{Count, Held};
use super::Reader;
use super::fields::Kind;

/// Tensors of more dimensions are taken to be damaged.
const MOST_DIMENSIONS: u64 = 64;
/// Up to this many sizes lie in the tensor itself.
const INLINE_DIMENSIONS: u64 = 5;
/// Sizes above this are not plain numbers: torch marks symbolic ones in the highest bits.
const LARGEST_SIZE: u64 = 1 << 56;

impl Reader<'_> {
    /// The tensor at this address, if it is one that lives.
    pub(super) fn tensor_at(&mut self, address: usize) -> Option<Node> {
        if let Some(&known) = self.seen.get(&address) {
            return Some(known).filter(|known| matches!(known, Node::Tensor(_)));
        }
        let (class, family) = self.classes.of(&mut self.memory, address)?;
        if family != Family::Tensor {
            return None;
        }
        let held = self.layout.tensor.held;
        let (object, owners) = self.owners(address, held)?;
        let shape = self.shape(address);
        let dtype = self.layout.tensor.dtype.and_then(|at| self.memory.byte(address + at));
        let node = Node::Tensor(self.graph.tensors.len() as u32);
        self.graph.tensors.push(Tensor { address, class, object, owners, shape, dtype });
        self.seen.insert(address, node);
        Some(node)
    }

    /// Who owns a tensor or storage, as far as it says so itself. `None` if nobody does: it is being destroyed.
    pub(super) fn owners(&mut self, address: usize, held: Held) -> Option<(Option<u32>, Owners)> {
        let word = self.memory.word(address + 8)?;
        let count = word as u32;
        if held.counts && count == 0 {
            return None;
        }
        let mut owners = Owners { counted: held.counts.then_some(count), found: 0, keep_object: false };
        let back = held.back.and_then(|back| self.memory.word(address + back)).unwrap_or(0);
        let object = (back & !1) as usize;
        let Some(number) = (object != 0).then(|| (self.number)(object)).flatten() else {
            return Some((None, owners));
        };
        if self.memory.pointer(object + held.at) != Some(address) {
            return Some((None, owners));
        }
        owners.found = u32::from(self.owns(object, held));
        // Up to 2.9 a mark in the pointer says who owns whom; from 2.10 on the highest bit of the count says that there is an object, which all other owners together keep.
        owners.keep_object = back & 1 == 1 || (word >> 63 == 1 && count > 1);
        Some((Some(number), owners))
    }

    pub(super) fn shape(&mut self, tensor: usize) -> std::ops::Range<u32> {
        let start = self.graph.sizes.len() as u32;
        if let Some(at) = self.layout.tensor.sizes
            && let Some(dimensions) =
                self.memory.word(tensor + at).filter(|&dimensions| dimensions <= MOST_DIMENSIONS)
        {
            let inline = tensor + at + 8;
            let sizes =
                if dimensions <= INLINE_DIMENSIONS { Some(inline) } else { self.memory.pointer(inline) };
            if let Some(sizes) = sizes {
                for n in 0..dimensions as usize {
                    let size = self.memory.word(sizes + 8 * n).unwrap_or(0);
                    self.graph.sizes.push(size as i64);
                }
            }
        }
        start..self.graph.sizes.len() as u32
    }

    pub(super) fn storage_at(&mut self, address: usize) -> Option<Node> {
        if let Some(&known) = self.seen.get(&address) {
            return Some(known).filter(|known| matches!(known, Node::Storage(_)));
        }
        if !self.classes.is(&mut self.memory, address, Family::Storage) {
            return None;
        }
        let at = self.layout.storage;
        let (object, owners) = self.owners(address, at.held)?;
        let data = self.memory.word(address + at.data).unwrap_or(0) as usize;
        let bytes = self.memory.word(address + at.bytes).filter(|&bytes| bytes < LARGEST_SIZE).unwrap_or(0);
        let device = at.device.and_then(|device| {
            Some(Device {
                kind: self.memory.byte(address + device)? as i8,
                index: self.memory.byte(address + device + 1)? as i8,
            })
        });
        let node = Node::Storage(self.graph.storages.len() as u32);
        self.graph.storages.push(Storage {
            address,
            object,
            owners,
            data,
            bytes,
            device: device.unwrap_or(Device::UNKNOWN),
        });
        self.seen.insert(address, node);
        Some(node)
    }

    pub(super) fn function_at(&mut self, address: usize) -> Option<Node> {
        if let Some(&known) = self.seen.get(&address) {
            return Some(known).filter(|known| matches!(known, Node::Function(_)));
        }
        let (class, family) = self.classes.of(&mut self.memory, address)?;
        let layout = self.layout;
        let at = layout.function.as_ref().filter(|_| family == Family::Function)?;
        let counted = at.count.of(&mut self.memory, address);
        if counted == Some(0) {
            return None;
        }
        let mut owners = Owners { counted, found: 0, keep_object: false };
        let context = matches!(self.kind(class), Kind::Context);
        let (back, forth) = match self.layout.context.filter(|_| context) {
            Some(context) => (Some(context.back), context.function),
            None => (at.back, at.in_object),
        };
        let back = back.and_then(|back| self.memory.word(address + back)).unwrap_or(0);
        let python = (back & !1) as usize;
        let object = (python != 0)
            .then(|| (self.number)(python))
            .flatten()
            .filter(|_| self.memory.pointer(python + forth) == Some(address));
        if object.is_some() {
            // Where the count is not inside, `ctx` refers to its function only weakly.
            owners.found = u32::from(!context || at.count == Count::Inside);
            let counts_object = at.count == Count::Inside
                && self.memory.word(address + 8).is_some_and(|word| word >> 63 == 1);
            owners.keep_object = if at.count == Count::Inside {
                counts_object && counted.is_some_and(|counted| counted > 1)
            } else {
                context
            };
        }
        let node = Node::Function(self.graph.functions.len() as u32);
        self.graph.functions.push(Function { address, class, object, owners });
        self.seen.insert(address, node);
        Some(node)
    }
}
