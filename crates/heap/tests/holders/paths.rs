//! How paths are spelled, and which is chosen.

use super::held_by;
use insta::assert_snapshot;

/// The path to a tensor behind some lines.
fn path(text: &str) -> String {
    held_by(&format!("tensor t 4KiB\n{text}")).split(" | ").next().unwrap().to_owned()
}

#[test]
fn every_reference_is_spelled() {
    let check = |text: &str, want: &str| assert_eq!(path(text), want, "{text}");
    check("root own-module __main__\n__main__ global(x) t", "__main__.x");
    check("root own-module m\nnamespace ns\nm ~ ns\nns global(m:x) t", "m.x");
    check("root own-frame train\ntrain local(batch) t", "train:batch");
    check("root generator batches\nroot own-module m\nm global(g) batches\nbatches local(b) t", "batches:b");
    check("root own-class Node\nroot own-module m\nm global(Node) Node\nNode class(cache) t", "Node.cache");
    let function = "root own-module m\nfunction f\nm global(f) f\n";
    let closure = "tuple cells\nf ~ cells\ncell c\ncells closure(f:x) c\nc ~ t";
    check(&format!("{function}{closure}"), "f.<closure>.x");
    check(&format!("{function}tuple d\nf defaults d\nd [*] t"), "f.__defaults__[*]");
    check(&format!("{function}dict d\nf kwdefaults d\nd [*] t"), "f.__kwdefaults__[*]");
    check(&format!("{function}f .cache t"), "m.f.cache");
    check("root exception sys\nsys named(sys.last_value) t", "sys.last_value");
    check("root context-variable v\nv named(contextvars.current) t", "contextvars.current");
    check("root thread-local l\ndict d\nl named(m.state) d\nd .x t", "m.state.x");
    check("root own-module m\nNode n\nm global(n) n\nnamespace d\nn ~ d\nd .payload t", "m.n.payload");
    check("root own-module m\npartial p\nm global(p) p\ntuple a\np .args a\na [*] t", "m.p.args[*]");
    check("root own-module m\nmethod b\nm global(b) b\nNode n\nb .__self__ n\nn .x t", "m.b.__self__.x");
    check("root own-module m\nObject o\nm global(o) o\no ? t", "m.o.?");
    check("root own-module m\nSequential s\nm global(s) s\nLinear l\ns .0 l\nl .weight t", "m.s[*].weight");
    // What a root refers to without a name of its own hangs on what the root is called.
    check("root atexit callbacks\ncallbacks [*] t", "object[*]");
}

#[test]
fn features_of_a_model_in_a_list() {
    assert_snapshot!(held_by(
        "
        root own-module __main__
        namespace globals
        __main__ ~ globals
        Detector model
        globals global(__main__:model) model
        namespace d1
        dict modules
        model ~ d1
        d1 ~ modules
        Neck neck
        modules .neck neck
        namespace d2
        neck ~ d2
        list features
        d2 .features features
        tensor a 4MiB
        tensor b 4MiB
        features [*] a
        features [*] b
        "
    ), @"__main__.model.neck.features[*] | user_held 8.0 MiB, 8.0 MiB of it alone, 2 blocks");
}

#[test]
fn the_kind_of_root_decides_before_the_length() {
    assert_snapshot!(held_by(
        "
        root library-module torch
        root own-module __main__
        root own-frame train
        tensor a 3KiB
        tensor b 2KiB
        tensor c 1KiB
        list l
        torch global(a) a
        train local(b) b
        torch global(c) c
        train local(c) c
        __main__ global(l) l
        l [*] b
        l [*] a
        "
    ), @"
    __main__.l[*] | user_held 5.0 KiB, 0 B of it alone, 2 blocks
        also torch.a: 3.0 KiB, 1 blocks
        also train:b: 2.0 KiB, 1 blocks
    train:c | user_held 1.0 KiB, 0 B of it alone, 1 blocks
        also torch.c: 1.0 KiB, 1 blocks
    ");
}

#[test]
fn no_path_runs_through_two_roots() {
    assert_snapshot!(held_by(
        "
        root own-module __main__
        root library-module torch
        __main__ global(torch) torch
        tensor t 1KiB
        torch global(workspace) t
        "
    ), @"torch.workspace | user_held 1.0 KiB, 1.0 KiB of it alone, 1 blocks");
}

#[test]
fn the_shorter_path_wins_and_then_the_older_objects() {
    assert_snapshot!(held_by(
        "
        root own-module __main__
        list b
        list a
        tensor t 1KiB
        __main__ global(a) a
        __main__ global(b) b
        a [*] t
        b [*] t
        list c
        list d
        tensor u 1KiB
        __main__ global(c) c
        c [*] d
        d [*] u
        __main__ global(short) u
        "
    ), @"
    __main__.b[*] | user_held 1.0 KiB, 0 B of it alone, 1 blocks
        also __main__.a[*]: 1.0 KiB, 1 blocks
    __main__.short | user_held 1.0 KiB, 0 B of it alone, 1 blocks
        also __main__.c[*][*]: 1.0 KiB, 1 blocks
    ");
}

#[test]
fn python_references_win_over_the_autograd_graph() {
    // Through the graph it is two references from the better root, without it four from the worst.
    assert_snapshot!(held_by(
        "
        root own-module __main__
        root interpreter codecs
        tensor loss 1KiB
        __main__ global(loss) loss
        autograd node MulBackward0
        loss grad_fn node
        tensor saved 2KiB
        node saved(self) saved
        tensor both 4KiB
        node saved(other) both
        list a
        list b
        codecs named(codecs.cache) a
        a [*] b
        b [*] both
        "
    ), @"
    codecs.cache[*][*] | user_held 4.0 KiB, 0 B of it alone, 1 blocks
        also __main__.loss through the autograd graph: 4.0 KiB, 1 blocks
    __main__.loss through the autograd graph | activations 2.0 KiB, 3.0 KiB of it alone, 1 blocks
    __main__.loss | user_held 1.0 KiB, 3.0 KiB of it alone, 1 blocks
    ");
}

#[test]
fn the_path_ends_where_the_graph_begins() {
    assert_snapshot!(held_by(
        "
        root own-module __main__
        list losses
        __main__ global(losses) losses
        tensor loss
        losses [*] loss
        autograd first MyFunctionBackward
        loss grad_fn first
        MyFunctionBackward ctx
        first context ctx
        dict d
        ctx ~ d
        list kept
        d .kept kept
        tensor x 1KiB
        kept [*] x
        autograd second AddBackward0
        first next second
        autograd third AccumulateGrad
        second next third
        tensor w 1KiB
        third variable w
        tensor g 1KiB
        w .grad g
        "
    ), @"__main__.losses[*] through the autograd graph | activations 3.0 KiB, 3.0 KiB of it alone, 3 blocks");
}

#[test]
fn a_node_that_a_variable_names() {
    assert_snapshot!(held_by(
        "
        root own-module __main__
        autograd node ReluBackward0
        __main__ global(fn) node
        tensor x 1KiB
        node saved(result) x
        "
    ), @"__main__.fn through the autograd graph | activations 1.0 KiB, 1.0 KiB of it alone, 1 blocks");
}

#[test]
fn paths_go_round_what_is_to_be_avoided_where_they_can() {
    assert_snapshot!(held_by(
        "
        root own-module __main__
        root own-frame train
        SGD optimizer
        avoided optimizer
        __main__ global(optimizer) optimizer
        dict state
        optimizer .state state
        tensor w 1KiB
        state [*] w
        Model model
        Inner inner
        Linear layer
        __main__ global(model) model
        model .inner inner
        inner .layer layer
        layer .weight w
        tensor momentum 2KiB
        state [*] momentum
        tensor lone 4KiB
        state [*] lone
        train local(lone) lone
        "
    ), @"
    __main__.optimizer.state[*] | user_held 6.0 KiB, 2.0 KiB of it alone, 2 blocks
        also train:lone: 4.0 KiB, 1 blocks
    __main__.model.inner.layer.weight | user_held 1.0 KiB, 0 B of it alone, 1 blocks
        also __main__.optimizer.state[*]: 1.0 KiB, 1 blocks
    ");
}

#[test]
fn linked_lists_are_one_holder() {
    let mut text = String::from("root own-module __main__\nNode n0\n__main__ global(head) n0\n");
    for i in 0..20 {
        text += &format!("Node n{}\nn{i} .next n{}\ntensor t{i} 1KiB\nn{i} .value t{i}\n", i + 1, i + 1);
    }
    assert_snapshot!(held_by(&text), @"
    __main__.head.next….value | user_held 19.0 KiB, 19.0 KiB of it alone, 19 blocks
    __main__.head.value | user_held 1.0 KiB, 1.0 KiB of it alone, 1 blocks
    ");
}

#[test]
fn weak_references_are_not_in_the_heap_and_hidden_objects_hold_nothing() {
    assert_snapshot!(held_by(
        "
        root own-module __main__
        root own-module vramscope
        list own
        hidden own
        tensor t 1KiB
        __main__ global(t) t
        vramscope global(own) own
        own [*] t
        list deep
        __main__ global(deep) deep
        deep [*] own
        tensor u 1KiB
        own [*] u
        "
    ), @"
    __main__.t | user_held 1.0 KiB, 1.0 KiB of it alone, 1 blocks
    C++ (no Python object) | cpp_held 1.0 KiB, 1.0 KiB of it alone, 1 blocks
    ");
}

#[test]
fn parameters_belong_to_their_module_and_not_to_a_list_of_them() {
    let text = "
        root own-module __main__
        Linear model
        dict registry
        registry registry
        list copy
        tensor w 1KiB
        role w parameter
        __main__ global(copy) copy
        copy [*] w
        __main__ global(model) model
        model ~ registry
        registry .weight w
        nn model
        ";
    assert_eq!(crate::find(text).holders[0].path, "__main__.model.weight");
    // Where nothing else has them, the list does.
    let alone = text.replace("registry .weight w", "");
    assert_eq!(crate::find(&alone).holders[0].path, "__main__.copy[*]");
    // A variable is no container: what hangs on the module of the program is not gone round.
    let variable = format!(
        "{text} __main__ global(last) w\n list kept\n tensor t 4KiB\n __main__ global(kept) kept\n kept [*] t"
    );
    assert_eq!(crate::find(&variable).holders[0].path, "__main__.kept[*]");
}
