//! What memory is.

use super::{find, held_by};
use insta::assert_snapshot;
use vramscope_heap::{Known, Options};
use vramscope_model::Bytes;

#[test]
fn each_class_has_its_blocks() {
    let holders = find(
        "
        root own-module __main__
        tensor w 1KiB
        tensor g 2KiB
        tensor m 4KiB
        tensor b 8KiB
        role w parameter
        role g gradient
        role m optimizer-state
        role b buffer
        Linear model
        __main__ global(model) model
        model .weight w
        model .mean b
        w .grad g
        dict state
        __main__ global(state) state
        state [*] m
        tensor x 16KiB
        __main__ global(x) x
        autograd node MulBackward0
        x grad_fn node
        tensor saved 32KiB
        node saved(self) saved
        Node n
        n .me n
        tensor lost 64KiB
        n .payload lost
        tensor gone 128KiB pending
        tensor workspace 256KiB
        outside workspace
        block unknown 512KiB
        ",
    );
    let classes = holders.classes;
    let found = [
        classes.parameters,
        classes.gradients,
        classes.optimizer_state,
        classes.buffers,
        classes.user_held,
        classes.activations,
        classes.cycle_garbage,
        classes.pending,
    ];
    assert_eq!(found, [1, 2, 4, 8, 16, 32, 64, 128].map(|kib| Bytes(kib << 10)));
    assert_eq!((classes.cpp_held, holders.unexplained), (Bytes(768 << 10), Bytes(512 << 10)));
    assert_snapshot!(super::rows(&holders), @"
    C++ (no storage found) | cpp_held 512.0 KiB, 512.0 KiB of it alone, 1 blocks
    C++ (no Python object) | cpp_held 256.0 KiB, 256.0 KiB of it alone, 1 blocks
    pending free | pending 128.0 KiB, 128.0 KiB of it alone, 1 blocks
    unreachable: Node.me | cycle_garbage 64.0 KiB, 64.0 KiB of it alone, 1 blocks
    __main__.x through the autograd graph | activations 32.0 KiB, 48.0 KiB of it alone, 1 blocks
    __main__.x | user_held 16.0 KiB, 48.0 KiB of it alone, 1 blocks
    __main__.model.mean | buffers 8.0 KiB, 8.0 KiB of it alone, 1 blocks
    __main__.state[*] | optimizer_state 4.0 KiB, 4.0 KiB of it alone, 1 blocks
    __main__.model.weight.grad | gradients 2.0 KiB, 2.0 KiB of it alone, 1 blocks
    __main__.model.weight | parameters 1.0 KiB, 3.0 KiB of it alone, 1 blocks
    ");
}

#[test]
fn a_role_counts_wherever_a_path_begins_but_not_in_garbage() {
    assert_snapshot!(held_by(
        "
        tensor w 1KiB
        role w parameter
        outside w
        Module m
        m .me m
        tensor v 1KiB
        role v parameter
        m .weight v
        "
    ), @"
    C++ (no Python object) | parameters 1.0 KiB, 1.0 KiB of it alone, 1 blocks
    unreachable: Module.me | cycle_garbage 1.0 KiB, 1.0 KiB of it alone, 1 blocks
    ");
}

#[test]
fn a_view_of_a_parameter_is_the_parameter() {
    // The view is found first, and its storage is the parameter's. Of two roles the first counts.
    assert_snapshot!(held_by(
        "
        root own-module __main__
        tensor view
        tensor w 1KiB
        Linear model
        __main__ global(view) view
        view ~ w.storage
        __main__ global(model) model
        model .weight w
        role w buffer
        role w parameter
        "
    ), @"
    __main__.view | parameters 1.0 KiB, 0 B of it alone, 1 blocks
        also __main__.model.weight: 1.0 KiB, 1 blocks
    ");
}

#[test]
fn what_only_c_code_holds() {
    // A list that C code holds begins its path; a reference of C code beside one of Python's does not matter.
    assert_snapshot!(held_by(
        "
        root own-module __main__
        list queue
        outside queue
        tensor a 1KiB
        queue [*] a
        tensor b 2KiB
        outside b
        __main__ global(b) b
        autograd node MulBackward0
        outside node
        tensor c 4KiB
        node saved(self) c
        Buffer nobody
        tensor d 8KiB
        nobody .data d
        "
    ), @"
    C code: Buffer.data | cpp_held 8.0 KiB, 8.0 KiB of it alone, 1 blocks
    C++ (no Python object) through the autograd graph | cpp_held 4.0 KiB, 4.0 KiB of it alone, 1 blocks
    __main__.b | user_held 2.0 KiB, 0 B of it alone, 1 blocks
        also C++ (no Python object): 2.0 KiB, 1 blocks
    C code: list[*] | cpp_held 1.0 KiB, 1.0 KiB of it alone, 1 blocks
    ");
}

#[test]
fn what_else_is_known_of_blocks_without_a_storage_takes_them_out_of_the_unexplained() {
    let text = "
        root own-module __main__
        tensor x 16KiB
        __main__ global(x) x
        block first 512KiB
        block second 64KiB
        block third 64KiB
        block small 1KiB
        ";
    let (heap, _) = vramscope_heap::script::read(text).unwrap();
    let mut holders = super::find_with(text, Options { min_bytes: Bytes(2 << 10), ..Options::default() });
    let known = |path: &str| Some(Known { path: path.into(), reason: "it says so".into() });
    holders.explain(|block| match block.bytes.0 >> 10 {
        64 => known("C++: workspaces"),
        _ => None,
    });
    super::check_sums(&heap, &holders);
    assert_eq!(holders.unexplained, Bytes(513 << 10));
    assert_snapshot!(super::rows(&holders), @"
    C++ (no storage found) | cpp_held 513.0 KiB, 513.0 KiB of it alone, 2 blocks
    C++: workspaces | cpp_held 128.0 KiB, 128.0 KiB of it alone, 2 blocks
    __main__.x | user_held 16.0 KiB, 16.0 KiB of it alone, 1 blocks
    ");
    holders.explain(|_| known("C++: all of it"));
    super::check_sums(&heap, &holders);
    assert_snapshot!(super::rows(&holders), @"
    C++: all of it | cpp_held 513.0 KiB, 513.0 KiB of it alone, 2 blocks
    C++: workspaces | cpp_held 128.0 KiB, 128.0 KiB of it alone, 2 blocks
    __main__.x | user_held 16.0 KiB, 16.0 KiB of it alone, 1 blocks
    ");
    assert_eq!(holders.unexplained, Bytes(0));
}
