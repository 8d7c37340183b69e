//! What is shown between a root and its memory.

use super::{chain, find};
use insta::assert_snapshot;

const LOSSES: &str = "
    root own-module __main__
    namespace globals
    __main__ ~ globals
    list losses
    globals global(__main__:losses) losses
";

#[test]
fn one_line_for_each_object_and_suspects_marked() {
    assert_snapshot!(chain(&format!("{LOSSES}
        tensor loss 1KiB
        losses [*] loss
        autograd a NllLossBackward0
        loss grad_fn a
        autograd b ConvolutionBackward0
        a next b
        tensor x 4MiB
        b saved(input) x
        ")), @"
        __main__.losses[*]
        __main__ (module)   alive: a module lives as long as the program
          .losses   ~~~
        list (list)
          [*]   ~~~
        Tensor (Tensor)
          .grad_fn   ~~~
        2 autograd nodes, the last ConvolutionBackward0 (ConvolutionBackward0)
          saved input   ~~~
        Tensor (Tensor)
        ");
}

#[test]
fn what_should_be_dead_ends_the_suspicion() {
    assert_snapshot!(chain("
        root own-frame train
        Trainer trainer
        train local(trainer) trainer
        namespace d
        trainer ~ d
        Engine engine
        d .engine engine
        list cache
        engine .cache cache
        Request request
        cache [*] request
        dead request the request is finished
        tensor kv 1MiB
        request .kv kv
        role kv buffer
        "), @"
        train:trainer.engine.cache[*].kv
        train (frame)   alive: the function is running
          :trainer   ~~~
        Trainer (Trainer)
          .engine   ~~~
        Engine (Engine)
          .cache   ~~~
        list (list)
          [*]   ~~~
        Request (Request)   dead: watched: the request is finished
          .kv
        Tensor (Tensor)   dead: hangs on what should be gone, although: a buffer of a module
        ");
}

#[test]
fn what_is_alive_further_down_clears_what_is_above() {
    assert_snapshot!(chain("
        root own-module __main__
        Model model
        __main__ global(model) model
        tensor w 1KiB
        model .weight w
        role w parameter
        list stored
        w .stored stored
        tensor x 1MiB
        stored [*] x
        "), @"
        __main__.model.weight.stored[*]
        __main__ (module)   alive: a module lives as long as the program
          .model
        Model (Model)   alive: leads to what is alive
          .weight
        Tensor (Tensor)   alive: a parameter of a module
          .stored   ~~~
        list (list)
          [*]   ~~~
        Tensor (Tensor)
        ");
}

#[test]
fn nothing_is_suspected_of_holding_a_parameter() {
    assert_snapshot!(chain("
        root own-module __main__
        Model model
        __main__ global(model) model
        tensor w 1KiB
        model .weight w
        role w parameter
        "), @"
        __main__.model.weight
        __main__ (module)   alive: a module lives as long as the program
          .model
        Model (Model)   alive: leads to what is alive
          .weight
        Tensor (Tensor)   alive: a parameter of a module
        ");
}

#[test]
fn the_closing_reference_is_the_suspect_of_garbage() {
    assert_snapshot!(chain("
        Parent p
        list l
        Child c
        p .children l
        l [*] c
        c .parent p
        tensor t 1MiB
        p .payload t
        "), @"
        unreachable: Child.parent
        Child (Child)   dead: unreachable: waits for Python's garbage collector
          .parent   ~~~
        Parent (Parent)   dead: only what is unreachable refers to it
          .payload
        Tensor (Tensor)   dead: only what is unreachable refers to it
        ");
}

#[test]
fn closures_show_the_value() {
    assert_snapshot!(chain("
        root own-module __main__
        function hook
        __main__ global(hook) hook
        tuple cells
        hook ~ cells
        cell c
        cells closure(hook:kept) c
        list kept
        c ~ kept
        tensor t 1KiB
        kept [*] t
        "), @"
        hook.<closure>.kept[*]
        __main__ (module)   alive: a module lives as long as the program
          .hook   ~~~
        hook (function)
          .<closure>.kept   ~~~
        list (list)
          [*]   ~~~
        Tensor (Tensor)
        ");
}

#[test]
fn what_c_code_alone_holds() {
    assert_snapshot!(chain("
        tensor t 1KiB
        outside t.storage
        "), @"
        C++ (no Python object)
        UntypedStorage (UntypedStorage)
        ");
    assert_snapshot!(chain("block b 1KiB"), @"C++ (no storage found)");
    assert_snapshot!(chain("tensor t 1KiB pending"), @"pending free");
}

#[test]
fn long_chains_show_both_ends() {
    let mut text = String::from("root own-module __main__\nNode n0\n__main__ global(head) n0\n");
    for i in 0..1200 {
        text += &format!("Node n{0}\nn{i} .next n{0}\n", i + 1);
    }
    text += "tensor t 1MiB\nn1200 .value t\n";
    let all = chain(&text);
    let lines: Vec<&str> = all.lines().collect();
    assert_snapshot!(lines[..7].join("\n"), @"
    __main__.head.next….value
    __main__ (module)   alive: a module lives as long as the program
      .head   ~~~
    … 948 more ()
    Node (Node)
      .next   ~~~
    Node (Node)
    ");
    assert_snapshot!(lines[lines.len() - 4..].join("\n"), @"
      .next   ~~~
    Node (Node)
      .value   ~~~
    Tensor (Tensor)
    ");
}

#[test]
fn the_newest_blocks_choose_the_chain() {
    let mut text = String::from(LOSSES);
    for i in 0..100 {
        let kind = if i < 80 { "Old" } else { "New" };
        text += &format!("{kind} o{i}\nlosses [*] o{i}\ntensor t{i} 1KiB born {i}\no{i} .x t{i}\n");
    }
    let holders = find(&text);
    assert_eq!(holders.holders[0].chain[2].type_name, "New");
    // The order of birth counts, not that of the nodes.
    let reversed: String = text
        .lines()
        .map(|line| match line.split_once("born ") {
            Some((line, born)) => format!("{line}born {}\n", 100 - born.parse::<u32>().unwrap()),
            None => format!("{line}\n"),
        })
        .collect();
    assert_eq!(find(&reversed).holders[0].chain[2].type_name, "Old");
}

#[test]
fn equal_leaks_have_equal_fingerprints() {
    let fingerprint = |text: &str| find(text).holders[0].fingerprint.clone();
    let bare = "root own-module __main__\nNode n\n__main__ global(n) n\ntensor t 1MiB\n";
    let with_dict = fingerprint(&format!("{bare}namespace d\nn ~ d\nd .x t"));
    assert_eq!(
        fingerprint(&format!("{bare}n .x t")),
        with_dict,
        "other versions of Python have no dict there"
    );
    assert_eq!(fingerprint(&format!("{bare}n .x t").replace("1MiB", "2MiB")), with_dict);
    assert_ne!(fingerprint(&format!("{bare}n .y t")), with_dict);
    assert_ne!(fingerprint(&format!("{bare}n .x t").replace("Node", "Other")), with_dict);
    let generator = "root generator g\ntensor t 1KiB\ng local(x) t\nroot own-module m\nm global(g) g";
    assert_ne!(fingerprint(generator), with_dict);

    let graph = |n: usize| {
        let mut text =
            format!("{LOSSES}tensor loss\nlosses [*] loss\nautograd a0 MulBackward0\nloss grad_fn a0\n");
        for i in 0..n {
            text += &format!("autograd a{0} AddBackward0\na{i} next a{0}\n", i + 1);
        }
        text + &format!("tensor x 1MiB\na{n} saved(self) x\n")
    };
    assert_eq!(fingerprint(&graph(1)), fingerprint(&graph(61)));
    let list = |n: usize| {
        let mut text = String::from("root own-module __main__\nNode n0\n__main__ global(head) n0\n");
        for i in 0..n {
            text += &format!("Node n{0}\nn{i} .next n{0}\n", i + 1);
        }
        text + &format!("tensor t 1MiB\nn{n} .value t\n")
    };
    assert_eq!(fingerprint(&list(5)), fingerprint(&list(50)));
    assert_eq!(fingerprint(&list(5)), fingerprint(&list(5000)));
}
