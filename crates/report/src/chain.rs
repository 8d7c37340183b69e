//! Holders in words, and the chain of references from a root to the memory as lines of a picture that text and Markdown
//! share: the root at the top, one line an object, one a reference, those that may be one too many underlined.

use unicode_width::UnicodeWidthStr;
use vramscope_view::holders::{Class, Classes, Holder, Holders, Link, Status};

use crate::bytes::{counted, human};
use crate::style::{Role, Span, printable, shortened};

/// A chain that is not shown whole keeps so many objects at its beginning and at its end.
const ENDS: usize = 6;

/// What a class is called.
pub(crate) fn class(class: Class) -> &'static str {
    match class {
        Class::Parameters => "parameters",
        Class::Gradients => "gradients",
        Class::OptimizerState => "optimizer state",
        Class::Activations => "activations",
        Class::Buffers => "buffers",
        Class::UserHeld => "user-held",
        Class::CycleGarbage => "cycle garbage",
        Class::Pending => "pending free",
        Class::CppHeld => "C++ held",
    }
}

/// What a class is.
pub(crate) fn meaning(class: Class) -> &'static str {
    match class {
        Class::Parameters | Class::Buffers => "of modules",
        Class::Gradients => "of parameters",
        Class::OptimizerState => "of optimizers",
        Class::Activations => "held by the autograd graph alone",
        Class::UserHeld => "by other Python references",
        Class::CycleGarbage => "waits for Python's collector",
        Class::Pending => "another stream may still use it",
        Class::CppHeld => "by no Python object",
    }
}

/// The classes that hold anything, most bytes first.
pub(crate) fn classes(classes: &Classes) -> Vec<(Class, u64)> {
    let all = Class::ALL.into_iter().map(|class| (class, classes.of(class).0));
    let mut some: Vec<(Class, u64)> = all.filter(|&(_, bytes)| bytes > 0).collect();
    some.sort_by_key(|&(_, bytes)| std::cmp::Reverse(bytes));
    some
}

/// The sum: `754.7 MiB = 708.9 MiB activations + 45.8 MiB parameters`.
pub(crate) fn sum(total: u64, of: &Classes) -> String {
    let parts: Vec<String> =
        classes(of).into_iter().map(|(of, bytes)| format!("{} {}", human(bytes), class(of))).collect();
    if parts.is_empty() { human(total) } else { format!("{} = {}", human(total), parts.join(" + ")) }
}

/// Who it is: `__main__.losses[*] through the autograd graph`.
pub(crate) fn who(holder: &Holder) -> String {
    format!("{}{}", holder.path, through(holder))
}

/// ` through the autograd graph`, or nothing.
pub(crate) fn through(holder: &Holder) -> String {
    holder.through.map_or_else(String::new, |through| format!(" through the {}", through.name()))
}

/// How much it holds: `708.9 MiB in 2,040 blocks of activations; giving it up frees 640.0 MiB`.
pub(crate) fn figures(holder: &Holder) -> String {
    let held = format!("{} in {}", human(holder.bytes.0), counted(holder.blocks, "block"));
    format!("{held}, {}; fixing this frees {}", class(holder.class), human(holder.exclusive_bytes.0))
}

/// Who else holds the memory, a line each: what comes before the path, the path, and what comes behind it. Empty where nobody else does.
pub(crate) fn others(holder: &Holder) -> Vec<[String; 3]> {
    let mut lines: Vec<[String; 3]> = holder
        .also_held_by
        .iter()
        .map(|also| {
            let through =
                also.through.map_or_else(String::new, |through| format!(" through the {}", through.name()));
            ["also held by ".to_owned(), also.path.clone(), format!("{through} ({})", human(also.bytes.0))]
        })
        .collect();
    let more = holder.held_by_more.0;
    if more > 0 {
        let whom = if lines.is_empty() { "others" } else { "more" };
        lines.push([
            format!("also held by {whom}, not named here ({})", human(more)),
            String::new(),
            String::new(),
        ]);
    }
    let is_one = lines.len() == 1 && more == 0;
    if let Some([.., last]) = lines.last_mut() {
        last.push_str(if is_one { ": freeing needs both" } else { ": freeing it all needs all of these" });
    }
    lines
}

/// What lines the picture of a chain has.
pub(crate) fn lines(chain: &[Link], whole: bool, width: usize) -> Vec<Vec<Span>> {
    let Some(last) = chain.len().checked_sub(1) else { return Vec::new() };
    let room = width.saturating_sub(8).max(20);
    let mut lines = vec![vec![Span::new(Role::Dim, "┬───")]];
    let mut left_out = 0;
    for (i, link) in chain.iter().enumerate() {
        let at_ends = i < ENDS || i + ENDS > last;
        if !(whole || at_ends || link.suspect) {
            left_out += 1;
            continue;
        }
        if left_out > 0 {
            lines.push(vec![Span::new(Role::Dim, format!("┊    {} (-v)", counted(left_out, "more object")))]);
            left_out = 0;
        }
        let is_last = i == last;
        let branch = if is_last { "╰→ " } else { "├─ " };
        lines.push(object(branch, link, room));
        if !is_last {
            lines.extend(reference(link, room));
        }
    }
    lines
}

/// What it is, and whether it should be there.
fn object(branch: &str, link: &Link, room: usize) -> Vec<Span> {
    let object = if link.object.is_empty() { &link.type_name } else { &link.object };
    let object = shortened(&printable(object), room);
    let mut used = object.width();
    let mut line = vec![Span::new(Role::Dim, branch), Span::new(Role::Heading, &object)];
    // `list of 40` says already what it is.
    let says_type = object.split([' ', '(', '[', '.']).any(|word| word == link.type_name);
    if !says_type && !link.type_name.is_empty() && used + link.type_name.width() + 3 <= room {
        used += link.type_name.width() + 3;
        line.push(Span::new(Role::Dim, format!(" ({})", link.type_name)));
    }
    let (word, role) = match link.status {
        Status::Alive => ("alive", Role::Good),
        Status::Dead => ("DEAD", Role::Bad),
        Status::Unknown => ("unknown", Role::Dim),
    };
    line.extend([Span::new(Role::Dim, " · "), Span::new(role, word)]);
    used += 3 + word.width();
    if !link.reason.is_empty() {
        let reason = shortened(&printable(&link.reason), room.saturating_sub(used + 2).max(10));
        line.push(Span::new(Role::Dim, format!(": {reason}")));
    }
    line
}

/// The reference, and below it the mark of a suspect.
fn reference(link: &Link, room: usize) -> Vec<Vec<Span>> {
    let name = if link.reference.is_empty() { "(inside)" } else { &link.reference };
    let name = shortened(&printable(name), room);
    let role = if link.suspect { Role::Warn } else { Role::Plain };
    let mut lines =
        vec![vec![Span::new(Role::Dim, "│    "), Span::new(Role::Dim, "↓ "), Span::new(role, &name)]];
    if link.suspect {
        lines.push(vec![
            Span::new(Role::Dim, "│    "),
            Span::new(Role::Warn, format!("  {}", "~".repeat(name.width().max(1)))),
        ]);
    }
    lines
}

/// The holders whose chains are shown, with their places: the largest of what is not meant to be there for long, unless
/// that is little; where there is nothing else, the largest. `whole` shows all.
pub(crate) fn shown(holders: &Holders, most: usize, whole: bool) -> Vec<(usize, &Holder)> {
    let with_chain = || holders.holders.iter().enumerate().filter(|(_, holder)| !holder.chain.is_empty());
    if whole {
        return with_chain().take(most).collect();
    }
    let is_meant = |holder: &Holder| {
        matches!(holder.class, Class::Parameters | Class::Gradients | Class::OptimizerState | Class::Buffers)
    };
    let is_much = |holder: &Holder| holder.bytes.0.saturating_mul(100) >= holders.total.0;
    let some = with_chain().filter(|(_, holder)| !is_meant(holder) && is_much(holder));
    let some: Vec<(usize, &Holder)> = some.take(most).collect();
    if some.is_empty() { with_chain().take(1).collect() } else { some }
}

/// Whether any reference of a chain may be one too many.
pub(crate) fn has_suspects(holder: &Holder) -> bool {
    holder.chain.iter().any(|link| link.suspect)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::Page;
    use crate::style::Palette;
    use vramscope_view::holders::{AlsoHeldBy, Bytes, Through};

    fn link(object: &str, type_name: &str, reference: &str, suspect: bool, status: Status) -> Link {
        let reason = match status {
            Status::Alive => "a module is never dead",
            Status::Dead => "its backward pass has ended",
            Status::Unknown => "",
        };
        Link {
            object: object.into(),
            type_name: type_name.into(),
            reference: reference.into(),
            suspect,
            status,
            reason: reason.into(),
        }
    }

    fn check(chain: &[Link], whole: bool) -> String {
        let mut page = Page::new(Palette::Plain, 80);
        for line in lines(chain, whole, 80) {
            page.line(line);
        }
        page.finish()
    }

    #[test]
    fn who_else_holds_it_is_told_in_words() {
        let also = |path: &str, through, mib: u64| AlsoHeldBy {
            path: path.into(),
            through,
            bytes: Bytes(mib << 20),
            blocks: 1,
        };
        let check = |also_held_by: &[AlsoHeldBy], more_mib: u64, want: &str| {
            let holder = Holder {
                path: "__main__.cache[*]".into(),
                through: None,
                class: Class::UserHeld,
                bytes: Bytes(16 << 20),
                exclusive_bytes: Bytes(0),
                also_held_by: also_held_by.to_vec(),
                held_by_more: Bytes(more_mib << 20),
                blocks: 4,
                fingerprint: String::new(),
                chain: Vec::new(),
            };
            let lines: Vec<String> = others(&holder).into_iter().map(|line| line.concat()).collect();
            assert_eq!(lines.join("\n"), want);
        };
        let graph = also("__main__.loss", Some(Through::Autograd), 4);
        let list = also("__main__.items[*]", None, 12);
        check(&[], 0, "");
        check(
            std::slice::from_ref(&list),
            0,
            "also held by __main__.items[*] (12.0 MiB): freeing needs both",
        );
        check(
            &[list, graph.clone()],
            0,
            "also held by __main__.items[*] (12.0 MiB)\n\
             also held by __main__.loss through the autograd graph (4.0 MiB): freeing it all needs all of these",
        );
        check(
            &[graph],
            1,
            "also held by __main__.loss through the autograd graph (4.0 MiB)\n\
             also held by more, not named here (1.0 MiB): freeing it all needs all of these",
        );
        check(&[], 2, "also held by others, not named here (2.0 MiB): freeing it all needs all of these");
    }

    #[test]
    fn the_root_is_at_the_top_and_suspects_are_underlined() {
        let chain = [
            link("__main__", "module", ".losses", true, Status::Alive),
            link("list of 40", "list", "[*]", true, Status::Unknown),
            link("Tensor [] float32", "Tensor", ".grad_fn", false, Status::Dead),
            link("61 autograd nodes", "ConvolutionBackward0", "saved input", false, Status::Unknown),
            link("block of 2.0 MiB", "", "", false, Status::Unknown),
        ];
        insta::assert_snapshot!(check(&chain, false), @r"
        ┬───
        ├─ __main__ (module) · alive: a module is never dead
        │    ↓ .losses
        │      ~~~~~~~
        ├─ list of 40 · unknown
        │    ↓ [*]
        │      ~~~
        ├─ Tensor [] float32 · DEAD: its backward pass has ended
        │    ↓ .grad_fn
        ├─ 61 autograd nodes (ConvolutionBackward0) · unknown
        │    ↓ saved input
        ╰→ block of 2.0 MiB · unknown
        ");
        assert_eq!(check(&[], false), "");
    }

    #[test]
    fn the_middle_of_a_long_chain_is_left_out_but_no_suspect() {
        let of = |suspect| link("x", "X", ".next", suspect, Status::Unknown);
        let mut chain = vec![of(false); 40];
        chain[20] = of(true);
        let shown = check(&chain, false);
        assert_eq!(shown.matches("more object").count(), 2, "{shown}");
        assert_eq!((shown.matches('~').count(), shown.matches("─ x").count()), (5, 12), "{shown}");
        assert_eq!(check(&chain, true).matches("─ x").count(), 39);
    }
}
