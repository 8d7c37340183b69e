//! What would be freed with a holder.

use super::held_by;
use insta::assert_snapshot;

#[test]
fn what_two_hold_is_exclusive_to_neither_but_to_what_holds_both() {
    assert_snapshot!(held_by(
        "
        root own-module __main__
        Model model
        __main__ global(model) model
        list a
        list b
        model .a a
        model .b b
        tensor shared 1KiB
        a [*] shared
        b [*] shared
        tensor own 2KiB
        b [*] own
        tensor direct 4KiB
        model .direct direct
        list outer
        __main__ global(outer) outer
        list inner
        outer [*] inner
        tensor x 8KiB
        inner [*] x
        "
    ), @"
    __main__.outer[*][*] | user_held 8.0 KiB, 8.0 KiB of it alone, 1 blocks
    __main__.model.direct | user_held 4.0 KiB, 4.0 KiB of it alone, 1 blocks
    __main__.model.b[*] | user_held 2.0 KiB, 2.0 KiB of it alone, 1 blocks
    __main__.model.a[*] | user_held 1.0 KiB, 0 B of it alone, 1 blocks
        also __main__.model.b[*]: 1.0 KiB, 1 blocks
    ");
}

#[test]
fn views_share_a_storage() {
    assert_snapshot!(held_by(
        "
        root own-module __main__
        list a
        list b
        __main__ global(a) a
        __main__ global(b) b
        tensor base 1GiB
        tensor view
        a [*] base
        b [*] view
        view ~ base.storage
        "
    ), @"
    __main__.a[*] | user_held 1.0 GiB, 0 B of it alone, 1 blocks
        also __main__.b[*]: 1.0 GiB, 1 blocks
    ");
}

#[test]
fn objects_of_one_path_are_summed_and_nested_ones_counted_once() {
    let mut text = String::from("root own-module __main__\nlist all\n__main__ global(all) all\n");
    for i in 0..3 {
        text += &format!("list l{i}\nall [*] l{i}\ntensor t{i} 1KiB\nl{i} [*] t{i}\n");
    }
    text += "Node n0\n__main__ global(n) n0\n";
    for i in 0..8 {
        text += &format!(
            "Node n{0}\nn{i} .next n{0}\nlist m{i}\nn{i} .items m{i}\ntensor u{i} 1MiB\nm{i} [*] u{i}\n",
            i + 1
        );
    }
    assert_snapshot!(held_by(&text), @"
    __main__.n.next….items[*] | user_held 7.0 MiB, 7.0 MiB of it alone, 7 blocks
    __main__.n.items[*] | user_held 1.0 MiB, 1.0 MiB of it alone, 1 blocks
    __main__.all[*][*] | user_held 3.0 KiB, 3.0 KiB of it alone, 3 blocks
    ");
}

#[test]
fn a_graph_is_exclusive_to_the_tensor_that_keeps_it() {
    // Both keep the older part of the graph; only the newer keeps the rest.
    assert_snapshot!(held_by(
        "
        root own-module __main__
        tensor old 1KiB
        tensor new 1KiB
        __main__ global(old) old
        __main__ global(new) new
        autograd a MulBackward0
        autograd b MulBackward0
        old grad_fn a
        new grad_fn b
        b next a
        tensor x 2KiB
        a saved(self) x
        tensor y 4KiB
        b saved(self) y
        "
    ), @"
    __main__.new through the autograd graph | activations 4.0 KiB, 5.0 KiB of it alone, 1 blocks
    __main__.old through the autograd graph | activations 2.0 KiB, 1.0 KiB of it alone, 1 blocks
        also __main__.new through the autograd graph: 2.0 KiB, 1 blocks
    __main__.new | user_held 1.0 KiB, 5.0 KiB of it alone, 1 blocks
    __main__.old | user_held 1.0 KiB, 1.0 KiB of it alone, 1 blocks
    ");
}

#[test]
fn what_c_code_holds_too_is_not_freed() {
    assert_snapshot!(held_by(
        "
        root own-module __main__
        list l
        __main__ global(l) l
        tensor a 1KiB
        tensor b 2KiB
        l [*] a
        l [*] b
        outside b
        "
    ), @"
    __main__.l[*] | user_held 3.0 KiB, 1.0 KiB of it alone, 2 blocks
        also C++ (no Python object): 2.0 KiB, 1 blocks
    ");
}

#[test]
fn the_variable_of_a_closure_is_its_value() {
    assert_snapshot!(held_by(
        "
        root own-module __main__
        function f
        __main__ global(f) f
        cell c
        f closure(x) c
        list l
        c ~ l
        tensor t 1KiB
        l [*] t
        cell d
        f closure(y) d
        tensor u 2KiB
        d ~ u
        list other
        __main__ global(z) other
        other [*] d
        "
    ), @"
    f.<closure>.y | user_held 2.0 KiB, 2.0 KiB of it alone, 1 blocks
    f.<closure>.x[*] | user_held 1.0 KiB, 1.0 KiB of it alone, 1 blocks
    ");
}
