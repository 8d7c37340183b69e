//! Who else holds it.

use super::{find, find_with, held_by, rows};
use insta::assert_snapshot;
use vramscope_heap::Options;
use vramscope_model::Bytes;

#[test]
fn each_of_the_others_is_told_with_what_it_holds() {
    assert_snapshot!(held_by(
        "
        root own-module __main__
        dict cache
        __main__ global(cache) cache
        tensor a 1MiB
        tensor b 2MiB
        tensor c 4MiB
        cache [*] a
        cache [*] b
        cache [*] c
        Registry registry
        list items
        __main__ global(registry) registry
        registry .items items
        items [*] a
        items [*] b
        __main__ global(last) b
        "
    ), @"
    __main__.cache[*] | user_held 5.0 MiB, 4.0 MiB of it alone, 2 blocks
        also __main__.registry.items[*]: 1.0 MiB, 1 blocks
    __main__.last | user_held 2.0 MiB, 0 B of it alone, 1 blocks
        also __main__.cache[*]: 2.0 MiB, 1 blocks
        also __main__.registry.items[*]: 2.0 MiB, 1 blocks
    ");
}

#[test]
fn a_tensor_with_two_names() {
    // Neither an attribute nor a variable of a closure is more than a name: to delete one leaves the other.
    assert_snapshot!(held_by(
        "
        root own-module __main__
        Trainer trainer
        __main__ global(trainer) trainer
        namespace d
        trainer ~ d
        tensor batch 8MiB
        d .batch batch
        function hook
        __main__ global(hook) hook
        tuple cells
        hook ~ cells
        cell c
        cells closure(hook:kept) c
        c ~ batch
        "
    ), @"
    __main__.trainer.batch | user_held 8.0 MiB, 0 B of it alone, 1 blocks
        also hook.<closure>.kept: 8.0 MiB, 1 blocks
    ");
}

#[test]
fn two_names_in_one_namespace() {
    // To delete one of them frees nothing, whatever kind of name it is.
    assert_snapshot!(held_by(
        "
        root own-module __main__
        tensor a 8MiB
        __main__ global(a) a
        __main__ global(b) a
        __main__ global(c) a
        Trainer trainer
        __main__ global(trainer) trainer
        tensor batch 4MiB
        trainer .batch batch
        trainer .last batch
        list losses
        __main__ global(losses) losses
        __main__ global(history) losses
        tensor loss 2MiB
        losses [*] loss
        losses [*] loss
        tuple pair
        __main__ global(pair) pair
        __main__ global(both) pair
        tensor half 1MiB
        pair [*] half
        "
    ), @"
    __main__.a | user_held 8.0 MiB, 0 B of it alone, 1 blocks
        also __main__.b: 8.0 MiB, 1 blocks
        also __main__.c: 8.0 MiB, 1 blocks
    __main__.trainer.batch | user_held 4.0 MiB, 0 B of it alone, 1 blocks
        also __main__.trainer.last: 4.0 MiB, 1 blocks
    __main__.losses[*] | user_held 2.0 MiB, 2.0 MiB of it alone, 1 blocks
    __main__.pair[*] | user_held 1.0 MiB, 0 B of it alone, 1 blocks
        also __main__.both[*]: 1.0 MiB, 1 blocks
    ");
}

#[test]
fn a_module_with_two_names() {
    assert_snapshot!(held_by(
        "
        root own-module __main__
        Linear m
        nn m
        __main__ global(m) m
        __main__ global(n) m
        tensor weight 8MiB
        m .weight weight
        m .tied weight
        role weight parameter
        "
    ), @"
    __main__.m.weight | parameters 8.0 MiB, 0 B of it alone, 1 blocks
        also __main__.n: 8.0 MiB, 1 blocks
    ");
}

#[test]
fn of_very_many_names_some_are_told_and_do_not_give_it_up() {
    let mut heap = "root own-module __main__\ntensor a 8MiB\n".to_owned();
    for name in "a b c d e f g".split(' ') {
        heap += &format!("__main__ global({name}) a\n");
    }
    assert_snapshot!(held_by(&heap), @"
    __main__.a | user_held 8.0 MiB, 0 B of it alone, 1 blocks
        also __main__.b: 8.0 MiB, 1 blocks
        also __main__.c: 8.0 MiB, 1 blocks
        also __main__.d: 8.0 MiB, 1 blocks
        also __main__.e: 8.0 MiB, 1 blocks
        also __main__.f: 8.0 MiB, 1 blocks
        and more: 8.0 MiB
    ");
}

#[test]
fn a_tuple_cannot_be_changed_so_who_has_the_tuple_is_asked() {
    assert_snapshot!(held_by(
        "
        root own-module __main__
        list pairs
        list worst
        __main__ global(pairs) pairs
        __main__ global(worst) worst
        tuple p
        tuple q
        pairs [*] p
        pairs [*] q
        worst [*] q
        tensor a 1MiB
        p [*] a
        tensor b 2MiB
        q [*] b
        "
    ), @"
    __main__.pairs[*][*] | user_held 3.0 MiB, 1.0 MiB of it alone, 2 blocks
        also __main__.worst[*][*]: 2.0 MiB, 1 blocks
    ");
}

#[test]
fn what_many_objects_of_one_path_hold_is_given_up_with_their_list() {
    let mut text = String::from(
        "
        root own-module __main__
        list requests
        __main__ global(requests) requests
        tensor prefix 1MiB
        __main__ global(prefix) prefix
        list last
        tensor unrelated 1KiB
        last [*] unrelated
        last [*] prefix
        Engine engine
        __main__ global(engine) engine
        engine .last last
    ",
    );
    for i in 0..50 {
        text += &format!("Request r{i}\nrequests [*] r{i}\nr{i} .prefix prefix\n");
    }
    assert_snapshot!(held_by(&text), @"
    __main__.prefix | user_held 1.0 MiB, 0 B of it alone, 1 blocks
        also __main__.engine.last[*]: 1.0 MiB, 1 blocks
        also __main__.requests[*].prefix: 1.0 MiB, 1 blocks
    __main__.engine.last[*] | user_held 1.0 KiB, 1.0 KiB of it alone, 1 blocks
    ");
    assert_snapshot!(held_by(&text.replace("__main__ global(prefix) prefix", "")), @"
    __main__.engine.last[*] | user_held 1.0 MiB, 1.0 KiB of it alone, 2 blocks
        also __main__.requests[*].prefix: 1.0 MiB, 1 blocks
    ");
    let mut text = String::from("root own-module __main__\ntensor t 1MiB\n__main__ global(t) t\n");
    for i in 0..50 {
        text += &format!("Node n{i}\nn{i} .me n{i}\nn{i} .payload t\n");
    }
    assert_snapshot!(held_by(&text), @"
    __main__.t | user_held 1.0 MiB, 0 B of it alone, 1 blocks
        also unreachable: Node.me: 1.0 MiB, 1 blocks
    ");
}

#[test]
fn objects_of_one_path_that_share_are_one_holder() {
    assert_snapshot!(held_by(
        "
        root own-module __main__
        list requests
        __main__ global(requests) requests
        Request r
        Request s
        requests [*] r
        requests [*] s
        tensor prefix 1MiB
        r .prefix prefix
        s .prefix prefix
        "
    ), @"__main__.requests[*].prefix | user_held 1.0 MiB, 1.0 MiB of it alone, 1 blocks");
}

const MODEL: &str = "
    root own-module __main__
    Net model
    nn model
    __main__ global(model) model
    Linear fc
    nn fc
    model .fc fc
    tensor w 4MiB
    tensor b 1MiB
    fc .weight w
    fc .bias b
    role w parameter
    role b parameter
    Adam optimizer
    avoided optimizer
    __main__ global(optimizer) optimizer
    optimizer .params w
    optimizer [*] b
    root own-frame train
    train local(net) model
    tensor loss 1KiB
    __main__ global(loss) loss
    autograd n AddmmBackward0
    loss grad_fn n
    n saved(weight) w
    outside b
";

#[test]
fn a_model_is_held_by_design_by_its_optimizer_and_by_what_runs() {
    assert_snapshot!(held_by(MODEL), @"
    __main__.model.fc.weight | parameters 4.0 MiB, 4.0 MiB of it alone, 1 blocks
    __main__.model.fc.bias | parameters 1.0 MiB, 1.0 MiB of it alone, 1 blocks
    __main__.loss | user_held 1.0 KiB, 1.0 KiB of it alone, 1 blocks
    ");
}

#[test]
fn a_model_in_two_places() {
    assert_snapshot!(held_by(&format!(
        "{MODEL}
        list old
        __main__ global(old) old
        old [*] model
        __main__ global(head) fc
        "
    )), @"
    __main__.head.weight | parameters 4.0 MiB, 0 B of it alone, 1 blocks
        also __main__.model: 4.0 MiB, 1 blocks
        also __main__.old[*]: 4.0 MiB, 1 blocks
    __main__.head.bias | parameters 1.0 MiB, 0 B of it alone, 1 blocks
        also __main__.model: 1.0 MiB, 1 blocks
        also __main__.old[*]: 1.0 MiB, 1 blocks
    __main__.loss | user_held 1.0 KiB, 1.0 KiB of it alone, 1 blocks
    ");
}

#[test]
fn garbage_and_c_code_are_others_too() {
    assert_snapshot!(held_by(
        "
        root own-module __main__
        tensor a 1KiB
        tensor b 2KiB
        list l
        __main__ global(l) l
        l [*] a
        l [*] b
        Node n
        n .me n
        n .payload a
        Node o
        o .me o
        o .payload a
        outside b
        "
    ), @"
    __main__.l[*] | user_held 3.0 KiB, 0 B of it alone, 2 blocks
        also C++ (no Python object): 2.0 KiB, 1 blocks
        also unreachable: Node.me: 1.0 KiB, 1 blocks
    ");
}

#[test]
fn so_many_are_named_and_the_rest_is_counted() {
    // Of eight holders of one block, each found when those before are given up.
    let mut text = String::from("root own-module __main__\ntensor t 1MiB\n");
    for i in 0..8 {
        text += &format!("list l{i}\n__main__ global(l{i}) l{i}\nl{i} [*] t\n");
    }
    assert_snapshot!(held_by(&text), @"
    __main__.l0[*] | user_held 1.0 MiB, 0 B of it alone, 1 blocks
        also __main__.l1[*]: 1.0 MiB, 1 blocks
        also __main__.l2[*]: 1.0 MiB, 1 blocks
        also __main__.l3[*]: 1.0 MiB, 1 blocks
        and more: 1.0 MiB
    ");
    // Of blocks that have a second holder each.
    let mut text = String::from("root own-module __main__\nlist all\n__main__ global(all) all\n");
    for i in 0..8 {
        text += &format!(
            "tensor t{i} {}MiB\nlist l{i}\n__main__ global(l{i}) l{i}\nlist m{i}\nl{i} [*] m{i}\nm{i} [*] t{i}\nall [*] t{i}\n",
            i + 1
        );
    }
    assert_snapshot!(held_by(&text), @"
    __main__.all[*] | user_held 36.0 MiB, 0 B of it alone, 8 blocks
        also __main__.l7[*][*]: 8.0 MiB, 1 blocks
        also __main__.l6[*][*]: 7.0 MiB, 1 blocks
        also __main__.l5[*][*]: 6.0 MiB, 1 blocks
        also __main__.l4[*][*]: 5.0 MiB, 1 blocks
        also __main__.l3[*][*]: 4.0 MiB, 1 blocks
        and more: 6.0 MiB
    ");
    assert_snapshot!(rows(&find_with(&text, Options { min_bytes: Bytes(1 << 40), max_holders: None })), @"… other holders | user_held 36.0 MiB, 0 B of it alone, 8 blocks");
}

#[test]
fn of_many_blocks_every_so_many_are_asked_and_all_are_counted() {
    let mut text = String::from(
        "root own-module __main__\nlist a\nlist b\n__main__ global(a) a\n__main__ global(b) b\nlist c\n__main__ global(c) c\nlist d\nc [*] d\n",
    );
    for i in 0..5000 {
        text += &format!("tensor t{i} 1KiB\na [*] t{i}\nb [*] t{i}\n");
    }
    // And of every second one there is an object that refers to it, too.
    text += "d [*] t7\nlist rs\n__main__ global(rs) rs\n";
    for i in (0..5000).step_by(2) {
        text += &format!("Request r{i}\nrs [*] r{i}\nr{i} .x t{i}\n");
    }
    let holders = find(&text);
    assert_snapshot!(rows(&holders), @"
    __main__.a[*] | user_held 4.9 MiB, 0 B of it alone, 5000 blocks
        also __main__.b[*]: 4.9 MiB, 5000 blocks
        also __main__.rs[*].x: 2.4 MiB, 2500 blocks
        also __main__.c[*][*]: 1.0 KiB, 1 blocks
    ");
}
