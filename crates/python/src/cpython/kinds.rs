//! What has to be known of a type to walk its instances, found out once for each type.

use rustc_hash::FxHashMap;

use super::memory::{Address, IsGc, Traverse, flags_of, is_subtype, type_field, type_flag, word};

/// Types whose instances are not, or not only, what their `tp_traverse` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Special {
    No,
    /// A class.
    Class,
    /// A module.
    Module,
    /// A function: its closure's variables become its own.
    Function,
    /// A generator, coroutine or asynchronous generator.
    Generator,
    /// A `threading.local`.
    ThreadLocal,
    /// An array of numpy: it does not show its base to the collector.
    Array,
    /// Has attributes at its end, and does not show its dict to the collector.
    HidesDict,
}

/// Types of which all instances are wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Which {
    /// This one and those derived from it.
    DerivedFrom(Address),
    /// Those whose instances are freed by the function at this address: types that are made in C for one purpose, without a common base.
    FreedBy(Address),
}

/// A type of which all instances are wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interest {
    /// Which types.
    pub(crate) which: Which,
    /// What the instances are given back as; not 0. The first interest that fits counts.
    pub(crate) tag: u8,
}

/// A type, as the walk sees it.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    pub(super) traverse: Option<Traverse>,
    is_gc: Option<IsGc>,
    /// Instances are known to the collector.
    pub(super) collected: bool,
    pub(super) special: Special,
    /// The tag of the interest, or 0.
    pub(super) tag: u8,
}

impl Kind {
    /// Whether one of its instances is to be a node.
    ///
    /// # Safety
    /// `object` must be an instance that is alive.
    #[inline]
    pub(super) unsafe fn is_node(&self, object: Address) -> bool {
        if self.special == Special::Class {
            // Static types are instances of `type`, but not collected: traversing one ends the process.
            // SAFETY: instances of `type` are types.
            return unsafe { flags_of(object) } & type_flag::HEAP_TYPE != 0;
        }
        if !self.collected {
            return self.tag != 0 || self.special == Special::Array;
        }
        // SAFETY: it is what the collector would call, with an instance.
        self.is_gc.is_none_or(|is_gc| unsafe { is_gc(object as *mut _) } != 0)
    }
}

/// The types that are known to be special.
#[derive(Clone, Copy, Default)]
pub(super) struct SpecialTypes {
    pub(super) module: Address,
    pub(super) function: Address,
    pub(super) generators: [Address; 3],
    pub(super) frame: Address,
    pub(super) deque: Address,
    pub(super) thread_local: Address,
    /// 0 if numpy has not been imported.
    pub(super) array: Address,
    /// Whether instances with attributes at their end do not show their dict.
    pub(super) dicts_are_hidden: bool,
}

/// All types met so far.
pub(super) struct Kinds {
    special: SpecialTypes,
    interests: Vec<Interest>,
    known: FxHashMap<Address, Kind>,
    /// By the address's low bits, so that most look-ups are one comparison.
    front: Box<[(Address, Kind); FRONT]>,
}

const FRONT: usize = 256;
const WITH_DICT: usize = type_flag::MANAGED_DICT | type_flag::INLINE_VALUES;

impl Kinds {
    pub(super) fn new(special: SpecialTypes, interests: Vec<Interest>) -> Self {
        let none = Kind { traverse: None, is_gc: None, collected: false, special: Special::No, tag: 0 };
        Self { special, interests, known: FxHashMap::default(), front: Box::new([(0, none); FRONT]) }
    }

    /// What there is to know of a type.
    ///
    /// # Safety
    /// `class` must be a type that is alive.
    #[inline]
    pub(super) unsafe fn of(&mut self, class: Address) -> &Kind {
        let at = (class >> 4) % FRONT;
        if self.front[at].0 != class {
            // SAFETY: the caller says that it is a type.
            unsafe { self.bring_to_front(at, class) };
        }
        &self.front[at].1
    }

    #[cold]
    unsafe fn bring_to_front(&mut self, at: usize, class: Address) {
        let kind = if let Some(&kind) = self.known.get(&class) {
            kind
        } else {
            // SAFETY: the caller says that it is a type.
            let kind = unsafe { self.find_out(class) };
            self.known.insert(class, kind);
            kind
        };
        self.front[at] = (class, kind);
    }

    unsafe fn find_out(&self, class: Address) -> Kind {
        // SAFETY: a type is at least that large, and these fields are functions of these kinds or null.
        let (flags, traverse, is_gc) = unsafe {
            (
                flags_of(class),
                std::mem::transmute::<usize, Option<Traverse>>(word(class + type_field::TRAVERSE)),
                std::mem::transmute::<usize, Option<IsGc>>(word(class + type_field::IS_GC)),
            )
        };
        let collected = flags & type_flag::HAVE_GC != 0;
        let special = &self.special;
        // SAFETY: all of these are types.
        let derives = |base: Address| base != 0 && unsafe { is_subtype(class, base) };
        let is = if derives(&raw const pyo3::ffi::PyType_Type as usize) {
            Special::Class
        } else if derives(special.module) {
            Special::Module
        } else if class == special.function {
            Special::Function
        } else if special.generators.contains(&class) {
            Special::Generator
        } else if derives(special.thread_local) {
            Special::ThreadLocal
        } else if derives(special.array) {
            Special::Array
        } else if special.dicts_are_hidden && flags & WITH_DICT == WITH_DICT {
            Special::HidesDict
        } else {
            Special::No
        };
        let is_meant = |interest: &&Interest| match interest.which {
            Which::DerivedFrom(base) => derives(base),
            // SAFETY: it is a type.
            Which::FreedBy(function) => (unsafe { word(class + type_field::FREED_BY) }) == function,
        };
        let tag = self.interests.iter().find(is_meant).map_or(0, |i| i.tag);
        Kind { traverse: traverse.filter(|_| collected), is_gc, collected, special: is, tag }
    }
}
