//! Garbage.

use super::held_by;
use insta::assert_snapshot;

/// The path to a tensor behind some lines.
fn path(text: &str) -> String {
    held_by(&format!("tensor t 4KiB\n{text}")).split(" of it alone").next().unwrap().to_owned()
}

#[test]
fn a_cycle_is_named_by_the_reference_that_closes_it() {
    let check = |text: &str, want: &str| {
        assert_eq!(path(text), format!("unreachable: {want} | cycle_garbage 4.0 KiB, 4.0 KiB"), "{text}");
    };
    check("Node n\nn .me n\nn .payload t", "Node.me");
    // With a dict of its own, whichever of the two is older.
    check("Node n\nnamespace d\nn ~ d\nd .me n\nd .payload t", "Node.me");
    check("namespace d\nNode n\nn ~ d\nd .me n\nd .payload t", "Node.me");
    // A parent, its list of children, and a child that knows its parent.
    let children = "list l\nChild c\np .children l\nl [*] c\nc .parent p\nc .payload t";
    check(&format!("Parent p\n{children}"), "Child.parent");
    check(&format!("{}\nParent p\n{}", "Child c", children.replace("Child c\n", "")), "Parent.children[*]");
    check("Node n\nlist l\nn .children l\nl [*] n\nl [*] t", "Node.children[*]");
    check("list l\nl [*] l\nl [*] t", "list[*]");
    check("list l\ntuple m\nl [*] m\nm [*] l\nm [*] t", "tuple[*]");
    // A function that refers to itself.
    let recursive = "f ~ cells\ncells closure(f:f) c\nc ~ f\ncells closure(f:x) d\nd ~ t";
    for order in ["function f\ntuple cells\ncell c\ncell d", "cell d\ncell c\ntuple cells\nfunction f"] {
        check(&format!("{order}\n{recursive}"), "f.<closure>.f");
    }
    check(
        "ValueError e\nframe f\ntraceback b\ne .__traceback__ b\nb .tb_frame f\nf local(run:e) e\nf local(run:t) t",
        "run:e",
    );
    // x.grad was made with create_graph=True.
    check(
        "tensor x\ntensor g\nx .grad g\nautograd n MulBackward0\ng grad_fn n\nautograd a AccumulateGrad\nn next a\na variable x\nx ~ t",
        "Tensor.grad",
    );
    // Nothing of it has a name.
    check("Object a\nObject b\na ~ b\nb ~ a\nb .x t", "Object");
}

#[test]
fn garbage_through_the_graph() {
    assert_snapshot!(held_by(
        "
        MyBackward ctx
        tensor out 1KiB
        autograd node MyBackward
        ctx .out out
        out grad_fn node
        node context ctx
        tensor saved 2KiB
        node saved(x) saved
        "
    ), @"
    unreachable: MyBackward.out through the autograd graph | cycle_garbage 2.0 KiB, 3.0 KiB of it alone, 1 blocks
    unreachable: MyBackward.out | cycle_garbage 1.0 KiB, 3.0 KiB of it alone, 1 blocks
    ");
}

#[test]
fn what_hangs_below_a_cycle_belongs_to_it() {
    assert_snapshot!(held_by(
        "
        Inner inner
        inner .me inner
        Outer outer
        outer .me outer
        outer .inner inner
        list l
        inner .list l
        tensor a 1KiB
        tensor b 1KiB
        l [*] a
        l [*] b
        Other other
        other .self other
        tensor c 4KiB
        other .c c
        "
    ), @"
    unreachable: Other.self | cycle_garbage 4.0 KiB, 4.0 KiB of it alone, 1 blocks
    unreachable: Outer.me | cycle_garbage 2.0 KiB, 2.0 KiB of it alone, 2 blocks
    ");
}

#[test]
fn what_something_alive_reaches_is_no_garbage() {
    assert_snapshot!(held_by(
        "
        root own-module __main__
        Node n
        n .me n
        tensor a 1KiB
        n .payload a
        __main__ global(n) n
        Node m
        m .me m
        outside m
        tensor b 2KiB
        m .payload b
        Top top
        Node k
        top .k k
        k .me k
        tensor c 4KiB
        k .payload c
        "
    ), @"
    C code: Top.k.payload | cpp_held 4.0 KiB, 4.0 KiB of it alone, 1 blocks
    C code: Node.payload | cpp_held 2.0 KiB, 2.0 KiB of it alone, 1 blocks
    __main__.n.payload | user_held 1.0 KiB, 1.0 KiB of it alone, 1 blocks
    ");
}

#[test]
fn equal_cycles_are_one_holder() {
    let mut text = String::new();
    for i in 0..40 {
        text += &format!("Node n{i}\nn{i} .me n{i}\ntensor t{i} 1MiB\nn{i} .payload t{i}\n");
    }
    assert_snapshot!(held_by(&text), @"unreachable: Node.me | cycle_garbage 40.0 MiB, 40.0 MiB of it alone, 40 blocks");
}

#[test]
fn classes_and_generators_are_roots_only_while_they_live() {
    // The class made in a function is garbage by its own cycle, and so is the generator that its own local holds.
    assert_snapshot!(held_by(
        "
        root own-module __main__
        root own-class Local
        tuple mro
        Local .__mro__ mro
        mro [*] Local
        tensor a 1KiB
        Local class(cache) a
        Holder holder
        holder .me holder
        root generator gen
        holder .gen gen
        tensor b 2KiB
        gen local(batch) b
        root own-class Alive
        __main__ global(Alive) Alive
        tensor c 4KiB
        Alive class(cache) c
        "
    ), @"
    Alive.cache | user_held 4.0 KiB, 4.0 KiB of it alone, 1 blocks
    unreachable: Holder.me | cycle_garbage 2.0 KiB, 2.0 KiB of it alone, 1 blocks
    unreachable: Local.__mro__[*] | cycle_garbage 1.0 KiB, 1.0 KiB of it alone, 1 blocks
    ");
}
