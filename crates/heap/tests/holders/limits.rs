//! What is too small to show.

use super::{find_with, rows};
use insta::assert_snapshot;
use vramscope_heap::{Options, holder_of};
use vramscope_model::Bytes;

const HEAP: &str = "
    root own-module __main__
    tensor a 8MiB
    tensor b 4MiB
    tensor c 2MiB
    tensor d 1MiB
    tensor e 1MiB pending
    role d parameter
    __main__ global(a) a
    __main__ global(b) b
    __main__ global(c) c
    __main__ global(d) d
";

#[test]
fn small_holders_are_summed_by_class() {
    let holders = find_with(HEAP, Options { min_bytes: Bytes(5 << 20), max_holders: None });
    assert_snapshot!(rows(&holders), @"
    __main__.a | user_held 8.0 MiB, 8.0 MiB of it alone, 1 blocks
    … other holders | parameters 1.0 MiB, 1.0 MiB of it alone, 1 blocks
    … other holders | user_held 6.0 MiB, 6.0 MiB of it alone, 2 blocks
    … other holders | pending 1.0 MiB, 1.0 MiB of it alone, 1 blocks
    ");
    let path = |address| holder_of(&holders, [address]).map(|holder| (&holder.path[..], holder.class.name()));
    assert_eq!(path(0x1000), Some(("__main__.a", "user_held")));
    assert_eq!(path(0x1000 + (13 << 20)), Some(("… other holders", "user_held")));
}

#[test]
fn so_many_are_shown() {
    let options = |max_holders| Options { min_bytes: Bytes::ZERO, max_holders: Some(max_holders) };
    assert_snapshot!(rows(&find_with(HEAP, options(2))), @"
    __main__.a | user_held 8.0 MiB, 8.0 MiB of it alone, 1 blocks
    __main__.b | user_held 4.0 MiB, 4.0 MiB of it alone, 1 blocks
    … other holders | parameters 1.0 MiB, 1.0 MiB of it alone, 1 blocks
    … other holders | user_held 2.0 MiB, 2.0 MiB of it alone, 1 blocks
    … other holders | pending 1.0 MiB, 1.0 MiB of it alone, 1 blocks
    ");
    assert_eq!(find_with(HEAP, options(0)).holders.len(), 3);
    assert_eq!(find_with(HEAP, options(99)).holders.len(), 5);
}
