//! Reading `CPython`'s structures where they lie, and the few functions of it that are not part of the stable interface.
//!
//! Addresses are numbers in here: what is read must not be mistaken for something that is owned.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

use pyo3::ffi;

/// Where a Python object or one of `CPython`'s structures lies.
pub(crate) type Address = usize;

/// What `tp_traverse` calls for each object that it finds.
pub(super) type Visit = unsafe extern "C" fn(*mut ffi::PyObject, *mut c_void) -> c_int;
/// A `tp_traverse`.
pub(super) type Traverse = unsafe extern "C" fn(*mut ffi::PyObject, Visit, *mut c_void) -> c_int;
/// A `tp_is_gc`.
pub(super) type IsGc = unsafe extern "C" fn(*mut ffi::PyObject) -> c_int;

/// Where each object has its type.
pub(super) const TYPE: usize = 8;
/// Where objects of variable size have their number of items.
pub(super) const SIZE: usize = 16;
/// How far before a collected object its entry in the collector's lists is.
pub(super) const GC_HEADER: usize = 16;

/// Fields of `PyTypeObject`, the same from 3.9 to 3.14 where pointers have 64 bits.
pub(crate) mod type_field {
    pub(crate) const NAME: usize = 24;
    pub(crate) const BASIC_SIZE: usize = 32;
    pub(crate) const FREED_BY: usize = 48;
    pub(crate) const ITEM_SIZE: usize = 40;
    pub(crate) const FLAGS: usize = 168;
    pub(crate) const TRAVERSE: usize = 184;
    pub(crate) const DICT: usize = 264;
    pub(crate) const DICT_OFFSET: usize = 288;
    pub(crate) const IS_GC: usize = 328;
    pub(crate) const MRO: usize = 344;
}

/// Bits of `tp_flags`.
pub(super) mod type_flag {
    pub(crate) const INLINE_VALUES: usize = 1 << 2;
    pub(crate) const MANAGED_DICT: usize = 1 << 4;
    pub(crate) const HEAP_TYPE: usize = 1 << 9;
    pub(crate) const HAVE_GC: usize = 1 << 14;
    pub(crate) const LIST: usize = 1 << 25;
    pub(crate) const TUPLE: usize = 1 << 26;
    pub(crate) const DICT: usize = 1 << 29;
    pub(crate) const EXCEPTION: usize = 1 << 30;
    pub(crate) const TYPE: usize = 1 << 31;
}

/// The word at an address.
///
/// # Safety
/// Eight bytes must be readable there.
#[inline]
pub(super) unsafe fn word(at: Address) -> usize {
    // SAFETY: the caller says so.
    unsafe { (at as *const usize).read_unaligned() }
}

/// The `int` at an address.
///
/// # Safety
/// Four bytes must be readable there.
#[inline]
pub(super) unsafe fn int(at: Address) -> i32 {
    // SAFETY: the caller says so.
    unsafe { (at as *const i32).read_unaligned() }
}

/// The byte at an address.
///
/// # Safety
/// It must be readable.
#[inline]
pub(super) unsafe fn byte(at: Address) -> u8 {
    // SAFETY: the caller says so.
    unsafe { (at as *const u8).read() }
}

/// The type of an object.
///
/// # Safety
/// `object` must be one that is alive.
#[inline]
pub(super) unsafe fn type_of(object: Address) -> Address {
    // SAFETY: every object begins with its reference count and its type.
    unsafe { word(object + TYPE) }
}

/// The flags of a type.
///
/// # Safety
/// `class` must be a type that is alive.
#[inline]
pub(super) unsafe fn flags_of(class: Address) -> usize {
    // SAFETY: a type is at least that large.
    unsafe { word(class + type_field::FLAGS) }
}

/// Whether `class` is `base` or derived from it, going by the method resolution order alone.
///
/// # Safety
/// Both must be types that are alive.
pub(super) unsafe fn is_subtype(class: Address, base: Address) -> bool {
    // SAFETY: the caller says that they are types; the call compares pointers.
    class == base || unsafe { ffi::PyType_IsSubtype(class as *mut _, base as *mut _) } != 0
}

/// The name of a type without its module.
///
/// # Safety
/// `class` must be a type that is alive.
pub(super) unsafe fn type_name(class: Address) -> String {
    // SAFETY: `tp_name` is a string of C that lives as long as the type.
    let name = unsafe { full_type_name(class) };
    name.rsplit('.').next().unwrap_or_default().to_owned()
}

/// The name of a type as its author gave it to C: with the module for those made in C.
///
/// # Safety
/// `class` must be a type that is alive.
pub(super) unsafe fn full_type_name(class: Address) -> String {
    // SAFETY: a type is at least that large.
    let name = unsafe { word(class + type_field::NAME) } as *const c_char;
    if name.is_null() {
        return String::new();
    }
    // SAFETY: `tp_name` is a string of C that lives as long as the type.
    unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
}

/// Whether an object is a `str`.
///
/// # Safety
/// `object` must be one that is alive, or null.
pub(super) unsafe fn is_text(object: Address) -> bool {
    const TEXT: usize = 1 << 28;
    // SAFETY: it is alive.
    object != 0 && unsafe { flags_of(type_of(object)) } & TEXT != 0
}

/// The text of a `str`; nothing for other objects and for those that are no UTF-8.
///
/// # Safety
/// `object` must be one that is alive, or null. The GIL must be held.
pub(super) unsafe fn text(object: Address) -> Option<String> {
    // SAFETY: it is alive.
    if !unsafe { is_text(object) } {
        return None;
    }
    // SAFETY: it is a str. The bytes are ours alone, and freeing them runs no code.
    unsafe {
        let bytes = ffi::PyUnicode_AsUTF8String(object as *mut _);
        if bytes.is_null() {
            ffi::PyErr_Clear();
            return None;
        }
        let (data, length) = (ffi::PyBytes_AsString(bytes), ffi::PyBytes_Size(bytes));
        let copy =
            std::slice::from_raw_parts(data.cast::<u8>(), usize::try_from(length).unwrap_or(0)).to_vec();
        ffi::Py_DecRef(bytes);
        String::from_utf8(copy).ok()
    }
}

/// The keys and values of a dict, in its order.
///
/// # Safety
/// `dict` must be a dict (or of a class derived from it) that is alive, and nothing may change it meanwhile.
pub(super) unsafe fn items(dict: Address) -> impl Iterator<Item = (Address, Address)> {
    let mut position: ffi::Py_ssize_t = 0;
    std::iter::from_fn(move || {
        let (mut key, mut value) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: it is a dict, and the GIL is held, since nothing may change it.
        let more =
            unsafe { ffi::PyDict_Next(dict as *mut _, &raw mut position, &raw mut key, &raw mut value) };
        (more != 0).then_some((key as Address, value as Address))
    })
}

/// The value of a dict under a key of plain letters, found without calling `__eq__`.
///
/// # Safety
/// As of [`items`].
pub(super) unsafe fn item(dict: Address, key: &CStr) -> Option<Address> {
    // SAFETY: the caller says that it is a dict; its keys are alive; the comparison is with a str.
    unsafe {
        items(dict)
            .find(|&(k, _)| {
                is_text(k) && ffi::PyUnicode_CompareWithASCIIString(k as *mut _, key.as_ptr()) == 0
            })
            .map(|(_, value)| value)
    }
}

/// The dict of a type.
///
/// # Safety
/// `class` must be a type that is alive.
pub(super) unsafe fn dict_of_type(class: Address) -> Option<Address> {
    type DictOf = unsafe extern "C" fn(*mut ffi::PyTypeObject) -> *mut ffi::PyObject;
    static DICT_OF: OnceLock<Option<DictOf>> = OnceLock::new();
    // SAFETY: a type is at least that large.
    let dict = unsafe { word(class + type_field::DICT) };
    if dict != 0 {
        return Some(dict);
    }
    // Since 3.12 types of the interpreter itself keep it elsewhere.
    // SAFETY: the function has this signature wherever it exists.
    let dict_of =
        DICT_OF.get_or_init(|| symbol(c"PyType_GetDict").map(|f| unsafe { std::mem::transmute(f) }));
    // SAFETY: it is a type. The type keeps the dict.
    let dict = dict_of.map(|dict_of| unsafe {
        let dict = dict_of(class as *mut _);
        ffi::Py_DecRef(dict);
        dict as Address
    });
    dict.filter(|&dict| dict != 0)
}

/// The types among whose attributes those of an instance are looked up, the type itself first.
///
/// # Safety
/// `class` must be a type that is alive.
pub(super) unsafe fn mro(class: Address) -> Vec<Address> {
    // SAFETY: a type is at least that large.
    let order = unsafe { word(class + type_field::MRO) };
    // SAFETY: it is a tuple of types, or null before the type is ready.
    let order = if order == 0 { Vec::new() } else { unsafe { tuple(order) } };
    if order.is_empty() { vec![class] } else { order }
}

/// The items of a tuple.
///
/// # Safety
/// `tuple` must be an object that is alive, or null. Others than tuples have no items here.
pub(super) unsafe fn tuple(tuple: Address) -> Vec<Address> {
    // SAFETY: it is alive.
    if tuple == 0 || unsafe { flags_of(type_of(tuple)) } & type_flag::TUPLE == 0 {
        return Vec::new();
    }
    // SAFETY: it is a tuple, the index lies within, and the reference is borrowed.
    unsafe {
        let n = ffi::PyTuple_Size(tuple as *mut _);
        (0..n).map(|i| ffi::PyTuple_GetItem(tuple as *mut _, i) as Address).collect()
    }
}

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// A function of the interpreter that not every release has.
pub(super) fn symbol(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: null means the symbols of the whole process; the name ends with a zero.
    let found = unsafe { dlsym(std::ptr::null_mut(), name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// The type of code objects.
pub(super) fn code_type() -> Address {
    static TYPE: OnceLock<Address> = OnceLock::new();
    *TYPE.get_or_init(|| symbol(c"PyCode_Type").map_or(0, |at| at as Address))
}

/// The type of the cells in which closures have their variables.
pub(super) fn cell_type() -> Address {
    static TYPE: OnceLock<Address> = OnceLock::new();
    *TYPE.get_or_init(|| symbol(c"PyCell_Type").map_or(0, |at| at as Address))
}
