//! Attributes of instances, without asking the instance: its dict, the values that it has instead of one, and its slots.

use std::ffi::{CStr, c_char, c_int};

use pyo3::ffi;

use super::layout::{Kept, MANAGED_DICT, Values};
use super::memory::{
    Address, SIZE, byte, dict_of_type, flags_of, int, items, mro, text, type_field, type_flag, type_of, word,
};

/// The attributes of an instance that are kept in an array, as (key, value). Those that have no value are left out.
///
/// # Safety
/// `instance` must be alive, and the layout that of the running interpreter.
pub(super) unsafe fn inline_values(layout: &Values, instance: Address) -> Vec<(Address, Address)> {
    /// Entries of keys of which all are `str`.
    const ENTRY: usize = 16;
    // SAFETY: the layout says where everything is.
    unsafe {
        let class = type_of(instance);
        let flags = flags_of(class);
        let keys = if flags & type_flag::HEAP_TYPE == 0 { 0 } else { word(class + layout.shared_keys) };
        if flags & type_flag::MANAGED_DICT == 0 || keys == 0 {
            return Vec::new();
        }
        let values = match layout.kept {
            Kept::Behind(before) => word(instance - before),
            Kept::BehindOdd(before) => {
                let values = word(instance - before);
                if values & 1 == 0 { 0 } else { values + 1 }
            }
            Kept::AtEnd { valid, values } => {
                let at = instance + word(class + type_field::BASIC_SIZE);
                if flags & type_flag::INLINE_VALUES == 0 || byte(at + valid) == 0 { 0 } else { at + values }
            }
        };
        if values == 0 {
            return Vec::new();
        }
        let n = usize::try_from(word(keys + 24) as isize).unwrap_or(0);
        let entries = keys + 32 + (1_usize << byte(keys + 9).min(32));
        (0..n)
            .map(|i| (word(entries + ENTRY * i), word(values + 8 * i)))
            .filter(|&(key, value)| key != 0 && value != 0)
            .collect()
    }
}

/// The dict of an instance, if it has one by now.
///
/// # Safety
/// `instance` must be alive, and the layout, if there is one, that of the running interpreter.
pub(super) unsafe fn dict(layout: Option<&Values>, instance: Address) -> Option<Address> {
    // SAFETY: the type says where the dict is.
    unsafe {
        let class = type_of(instance);
        let dict = if flags_of(class) & type_flag::MANAGED_DICT != 0 {
            let dict = word(instance - MANAGED_DICT);
            match layout?.kept {
                Kept::BehindOdd(_) if dict & 1 != 0 => 0,
                _ => dict,
            }
        } else {
            let offset = word(class + type_field::DICT_OFFSET) as isize;
            let offset =
                if offset < 0 { from_the_end(instance, class, offset)? } else { offset.cast_unsigned() };
            if offset == 0 { 0 } else { word(instance + offset) }
        };
        (dict != 0).then_some(dict)
    }
}

/// Instances of variable size had their dict behind their items, until 3.11.
unsafe fn from_the_end(instance: Address, class: Address, offset: isize) -> Option<usize> {
    // SAFETY: it is an instance of variable size, which begins with its number of items (negative for numbers below zero).
    unsafe {
        let items = (word(instance + SIZE) as isize).unsigned_abs();
        let size = word(class + type_field::BASIC_SIZE)
            .checked_add(items.checked_mul(word(class + type_field::ITEM_SIZE))?)?;
        size.next_multiple_of(8).checked_add_signed(offset)
    }
}

/// The slots of an instance that hold an object: those of `__slots__`, and those that types made in C show.
///
/// # Safety
/// `instance` must be alive.
pub(super) unsafe fn slots(instance: Address) -> Vec<(String, Address)> {
    // SAFETY: the type of an instance is alive.
    unsafe {
        let class = type_of(instance);
        let order = mro(class);
        order
            .into_iter()
            .flat_map(|class| members(class))
            .filter_map(|(name, offset)| {
                let value = word(instance + offset);
                (value != 0).then_some((name, value))
            })
            .collect()
    }
}

/// The members of a type that are objects, with the offset in the instance.
unsafe fn members(class: Address) -> Vec<(String, usize)> {
    const MEMBER: usize = 40;
    const OBJECT: c_int = 6;
    const OBJECT_OR_ERROR: c_int = 16;
    const RELATIVE: c_int = 8;
    // SAFETY: it is a type; its dict is a dict. A member descriptor refers to its definition, which lives as long as the type: a name, a kind,
    // an offset and flags.
    unsafe {
        let descriptor = &raw const ffi::PyMemberDescr_Type as Address;
        let Some(dict) = dict_of_type(class) else { return Vec::new() };
        items(dict)
            .filter(|&(_, value)| type_of(value) == descriptor)
            .filter_map(|(key, value)| {
                let definition = word(value + MEMBER);
                if definition == 0 || word(value + 16) != class {
                    return None; // of another type: its offsets are not of this one
                }
                let (kind, offset) = (int(definition + 8), word(definition + 16));
                let known = matches!(kind, OBJECT | OBJECT_OR_ERROR) && int(definition + 24) & RELATIVE == 0;
                let name = text(key).unwrap_or_else(|| {
                    CStr::from_ptr(word(definition) as *const c_char).to_string_lossy().into_owned()
                });
                known.then_some((name, offset))
            })
            .collect()
    }
}
