//! The class of a C++ object, from the run-time type information that its virtual table carries.
//!
//! The layout is that of the Itanium C++ ABI, which every compiler on Linux follows: the word before a virtual table's first function is the address of a
//! `type_info`, which has the mangled name and the bases. Nothing of torch is called or linked.

use rustc_hash::FxHashMap;

use super::names::readable;
use crate::own_memory::{Memory, can_be_object};

/// Names longer than this are not believed. Template instances of user classes are long.
const LONGEST_NAME: usize = 4096;
/// Bases above a class that are looked at.
const MOST_BASES: usize = 32;

/// What a C++ class is for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// `c10::TensorImpl` and what derives from it.
    Tensor,
    /// The one tensor that stands for no tensor.
    Undefined,
    Storage,
    AutogradMeta,
    /// `torch::autograd::Node` and what derives from it.
    Function,
    /// What packs and unpacks a saved tensor.
    SavedHooks,
    /// What runs before or after a function of the backward pass.
    Hook,
    /// How a quantised tensor is scaled; it may hold tensors.
    Quantizer,
}

/// The families, by the base that makes a class belong to them.
const FAMILIES: [(&str, Family); 9] = [
    ("N3c1019UndefinedTensorImplE", Family::Undefined),
    ("N3c1010TensorImplE", Family::Tensor),
    ("N3c1011StorageImplE", Family::Storage),
    ("N5torch8autograd12AutogradMetaE", Family::AutogradMeta),
    ("N5torch8autograd4NodeE", Family::Function),
    ("N5torch8autograd18SavedVariableHooksE", Family::SavedHooks),
    ("N5torch8autograd15FunctionPreHookE", Family::Hook),
    ("N5torch8autograd16FunctionPostHookE", Family::Hook),
    ("N2at9QuantizerE", Family::Quantizer),
];

/// The number of a class in [`Classes`].
pub(crate) type ClassId = u32;

/// A C++ class that belongs to a [`Family`].
#[derive(Clone, Debug)]
pub(crate) struct Class {
    /// As written in C++: `torch::autograd::generated::MulBackward0`.
    pub(crate) name: String,
    pub(crate) family: Family,
}

/// The classes that were met, by their virtual tables.
#[derive(Default)]
pub(crate) struct Classes {
    by_table: FxHashMap<usize, Option<(ClassId, Family)>>,
    classes: Vec<Class>,
}

impl Classes {
    /// The class of the object at `address`, if it is of one of our families.
    pub(crate) fn of(&mut self, memory: &mut Memory, address: usize) -> Option<(ClassId, Family)> {
        if !can_be_object(address) {
            return None;
        }
        let table = memory.pointer(address)?;
        if let Some(&known) = self.by_table.get(&table) {
            return known;
        }
        let class = class_of_table(memory, table).map(|class| {
            let family = class.family;
            self.classes.push(class);
            (self.classes.len() as ClassId - 1, family)
        });
        self.by_table.insert(table, class);
        class
    }

    /// Whether the object at `address` is of this family.
    pub(crate) fn is(&mut self, memory: &mut Memory, address: usize, family: Family) -> bool {
        self.of(memory, address).is_some_and(|(_, found)| found == family)
    }

    pub(crate) fn name(&self, class: ClassId) -> &str {
        self.classes.get(class as usize).map_or("", |class| &class.name)
    }

    pub(crate) fn into_classes(self) -> Vec<Class> {
        self.classes
    }
}

fn class_of_table(memory: &mut Memory, table: usize) -> Option<Class> {
    // The whole object, not a part of one.
    if memory.word(table.checked_sub(16)?)? != 0 {
        return None;
    }
    let info = memory.pointer(table.checked_sub(8)?)?;
    let name = type_name(memory, info)?;
    let family = family_of(memory, info)?;
    Some(Class { name: readable(&name), family })
}

/// The mangled name in a `type_info`.
fn type_name(memory: &mut Memory, info: usize) -> Option<String> {
    // The name is a text: it need not be aligned.
    let address = usize::try_from(memory.word(info.checked_add(8)?)?).ok()?;
    let name = memory.text(address, LONGEST_NAME)?;
    // A star says that names are to be compared by address.
    Some(name.strip_prefix('*').unwrap_or(&name).to_owned())
}

/// The family of a class: its own, or that of the nearest base that has one.
fn family_of(memory: &mut Memory, info: usize) -> Option<Family> {
    let mut waiting = vec![info];
    let mut looked_at = 0;
    while let Some(info) = waiting.pop() {
        looked_at += 1;
        if looked_at > MOST_BASES {
            return None;
        }
        let name = type_name(memory, info)?;
        if let Some((_, family)) = FAMILIES.iter().find(|(base, _)| *base == name) {
            return Some(*family);
        }
        waiting.extend(bases(memory, info));
    }
    None
}

/// The `type_info`s of the direct bases. How they are stored is told by the class of the `type_info` itself.
fn bases(memory: &mut Memory, info: usize) -> Vec<usize> {
    let kind = memory
        .pointer(info)
        .and_then(|table| memory.pointer(table.checked_sub(8)?))
        .and_then(|kind| type_name(memory, kind));
    match kind.as_deref() {
        Some("N10__cxxabiv120__si_class_type_infoE") => {
            memory.pointer(info.saturating_add(16)).into_iter().collect()
        }
        Some("N10__cxxabiv121__vmi_class_type_infoE") => {
            let count = memory.half(info.saturating_add(20)).unwrap_or(0) as usize;
            (0..count.min(MOST_BASES))
                .filter_map(|base| memory.pointer(info.saturating_add(24 + 16 * base)))
                .collect()
        }
        _ => Vec::new(),
    }
}
