//! Who holds what, in small heaps.
#![allow(clippy::unwrap_used, reason = "tests fail loudly")]
#![allow(clippy::format_push_string, reason = "heaps are written as texts")]

mod chains;
mod classes;
mod cycles;
mod damage;
mod exclusive;
mod large;
mod limits;
mod others;
mod paths;
mod properties;

use std::fmt::Write as _;
use vramscope_heap::{Class, Heap, Holders, Options, Status, find_holders, script};
use vramscope_model::Bytes;

/// Finds the holders of a heap that is written down, and checks that all sums hold.
fn find(text: &str) -> Holders {
    find_with(text, Options::default())
}

fn find_with(text: &str, options: Options) -> Holders {
    let (heap, names) = script::read(text).unwrap();
    let holders = find_holders(&heap, &names, &options);
    check_sums(&heap, &holders);
    holders
}

fn check_sums(heap: &Heap, holders: &Holders) {
    let total: Bytes = heap.blocks.iter().map(|block| block.bytes).sum();
    assert_eq!(holders.total, total);
    assert_eq!(holders.classes.sum(), total);
    assert_eq!(holders.holders.iter().map(|holder| holder.bytes).sum::<Bytes>(), total);
    assert_eq!(holders.holders.iter().map(|holder| holder.blocks).sum::<u64>(), heap.blocks.len() as u64);
    assert!(holders.unexplained <= holders.classes.cpp_held);
    for class in Class::ALL {
        let of_class = holders.holders.iter().filter(|holder| holder.class == class);
        assert_eq!(
            of_class.map(|holder| holder.bytes).sum::<Bytes>(),
            holders.classes.of(class),
            "{class:?}"
        );
    }
    for (at, holder) in holders.holders.iter().enumerate() {
        let its: Vec<_> = holders.blocks.iter().filter(|block| block.holder as usize == at).collect();
        assert_eq!(its.len() as u64, holder.blocks);
        assert_eq!(its.iter().map(|block| block.bytes).sum::<Bytes>(), holder.bytes);
        assert!(holder.exclusive_bytes <= total);
        assert!(holder.held_by_more <= holder.bytes);
        assert!(holder.also_held_by.len() <= 5);
        for also in &holder.also_held_by {
            assert!(also.bytes <= holder.bytes && also.blocks > 0 && also.blocks <= holder.blocks);
            assert!((&also.path, also.through) != (&holder.path, holder.through));
        }
    }
}

/// One line for each holder.
fn rows(holders: &Holders) -> String {
    let mut text = String::new();
    for holder in &holders.holders {
        let through =
            holder.through.map(|through| format!(" through the {}", through.name())).unwrap_or_default();
        let _ = writeln!(
            text,
            "{}{through} | {} {}, {} of it alone, {} blocks",
            holder.path,
            holder.class.name(),
            holder.bytes,
            holder.exclusive_bytes,
            holder.blocks
        );
        for also in &holder.also_held_by {
            let through =
                also.through.map(|through| format!(" through the {}", through.name())).unwrap_or_default();
            let _ = writeln!(text, "    also {}{through}: {}, {} blocks", also.path, also.bytes, also.blocks);
        }
        if holder.held_by_more > Bytes::ZERO {
            let _ = writeln!(text, "    and more: {}", holder.held_by_more);
        }
    }
    for warning in &holders.warnings {
        let _ = writeln!(text, "warning: {warning}");
    }
    text
}

/// The paths with their ways, most bytes first.
fn held_by(text: &str) -> String {
    rows(&find(text))
}

/// The chain of the first holder: objects with their status, and references, suspects underlined.
fn chain(text: &str) -> String {
    let holders = find(text);
    let holder = holders.holders.first().unwrap();
    let mut text = format!("{}\n", holder.path);
    for link in &holder.chain {
        let status = match (link.status, &link.reason[..]) {
            (Status::Unknown, "") => String::new(),
            (status, reason) => format!("   {}: {reason}", status.name()),
        };
        let _ = writeln!(text, "{} ({}){status}", link.object, link.type_name);
        if !link.reference.is_empty() {
            let mark = if link.suspect { "   ~~~" } else { "" };
            let _ = writeln!(text, "  {}{mark}", link.reference);
        }
    }
    text
}
