//! Removes a hook only if nothing in between fails.
//!
//! ## Why it matters
//! Where the forward pass between registering and removing raises an exception (out of memory, for instance), the hook stays on
//! the model for as long as that lives, with all that its function refers to: 4.2 MB for a hook that holds one activation, and one
//! more hook each time that the caller tries again. Programs that end with the exception lose nothing, which is why the rule does
//! not run unless it is selected.
//!
//! ## Example
//! ```python
//! def features(model, images):
//!     found = []
//!     handle = model.register_forward_hook(lambda module, inputs, output: found.append(output.detach()))
//!     model(images)
//!     handle.remove()
//!     return found
//! ```
//! Use instead:
//! ```python
//! def features(model, images):
//!     found = []
//!     handle = model.register_forward_hook(lambda module, inputs, output: found.append(output.detach()))
//!     try:
//!         model(images)
//!     finally:
//!         handle.remove()
//!     return found
//! ```
//!
//! ## When it is silent
//! The hook is removed in a `finally`, or by a context manager; the handle goes elsewhere, too; nothing is called in between; the
//! module is made in the same function, and goes with it; the code is a script's own, or a test.
//!
//! ## Fix
//! Puts what stands between into a `try`, and the removal into its `finally`. Unsafe: what it does when something fails is changed
//! on purpose.
//!
//! ## References
//! - sebamenabar/Pytorch-IntermediateLayerGetter#2, TransformerLensOrg/TransformerLens#1323

use crate::{
    context::{Context, HOOK_METHODS, first_name},
    diagnostic::{Diagnostic, Severity},
    facts::Call,
    fix::{Applicability, Edit, Fix},
    names::{Definition, FunctionId, Usage, Use, method_name},
    rule::{Framework, Rule},
    syntax::{
        Ranged, TextRange,
        ast::{Expr, Stmt},
        statement_mentions,
    },
};

pub(crate) static RULE: Rule = Rule {
    code: "LK303",
    name: "hook-removal-not-in-finally",
    frameworks: &[Framework::Torch],
    severity: Severity::Info,
    default: false,
    fix: Some(Applicability::Unsafe),
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if context.is_test() {
        return;
    }
    let mut seen: Vec<TextRange> = Vec::new();
    for call in HOOK_METHODS.iter().flat_map(|it| context.calls_named(it)) {
        let Some((object, ..)) = call.method() else { continue };
        if call.at.function == FunctionId::MODULE || is_made_here(context, call.at.function, object) {
            continue;
        }
        let Some((name, removal)) = removal_of(context, call) else { continue };
        let Some(block) = Context::block_of(removal, context.body_of(call.at.function)) else { continue };
        let place = |it: &Stmt| it.range().contains_range(call.expr.range());
        let (Some(first), Some(last)) =
            (block.iter().position(place), block.iter().position(|it| std::ptr::eq(it, removal)))
        else {
            continue;
        };
        let between = block.get(first + 1..last).unwrap_or(&[]);
        if !may_fail(context, between) || seen.contains(&removal.range()) {
            continue;
        }
        seen.push(removal.range());
        // Of several, one in a `finally` would leave the others as they are, and hide that.
        let is_only = HOOK_METHODS.iter().flat_map(|it| context.calls_named(it)).all(|it| {
            it.at.function != call.at.function
                || removal_of(context, it).is_some_and(|(_, other)| std::ptr::eq(other, removal))
        });
        found.push(
            Diagnostic::new(
                &RULE,
                Severity::Info,
                call.expr,
                format!(
                    "if anything fails before `{name}` is removed, the hook stays on `{}`",
                    context.text(object)
                ),
            )
            .because_of(removal, "it is removed here only, and not in a `finally`")
            .advise("remove it in the `finally` of a `try` around what runs with it")
            .fixed_by(if is_only { wrap(context, between, removal) } else { None }),
        );
    }
}

/// The name of what removes the hook that a call registers, and the statement that does it, if there is one and the handle goes
/// nowhere else.
fn removal_of<'a>(context: &Context<'a>, call: &Call<'a>) -> Option<(&'a str, &'a Stmt)> {
    let scope = context.names.scope(context.scope(call.at.function));
    let of_name = |name: &'a str| {
        let entry = scope.names.get(name)?;
        let is_only =
            entry.elsewhere.is_none() && matches!(entry.definitions.as_slice(), [Definition::Value(..)]);
        is_only.then_some(&entry.uses[..])
    };
    if let Some(name) = call.name_of_result() {
        let name = name.id.as_str();
        return Some((name, only_removal(context, of_name(name)?)?));
    }
    let list = list_of(call)?;
    let statement = removed_in_loop(context, call.at.function, of_name(list)?)?;
    Some((list, statement))
}

/// The list that a handle is put into, and nothing else: `handles.append(…)`, `handles = [… for …]`.
fn list_of<'a>(call: &Call<'a>) -> Option<&'a str> {
    match call.at.statement {
        Stmt::Expr(it) => {
            let Expr::Call(append) = &*it.value else { return None };
            let Expr::Attribute(method) = &*append.func else { return None };
            let Expr::Name(list) = &*method.value else { return None };
            let [Expr::Call(kept)] = &*append.arguments.args else { return None };
            let is_append = method.attr.as_str() == "append" && std::ptr::eq(kept, call.expr);
            is_append.then_some(list.id.as_str())
        }
        Stmt::Assign(it) => {
            let [Expr::Name(list)] = it.targets.as_slice() else { return None };
            let Expr::ListComp(all) = &*it.value else { return None };
            matches!(&*all.elt, Expr::Call(kept) if std::ptr::eq(kept, call.expr)).then_some(list.id.as_str())
        }
        _ => None,
    }
}

/// The only `handle.remove()`, if nothing else is done with the handle.
fn only_removal<'a>(context: &Context<'a>, uses: &[Use<'a>]) -> Option<&'a Stmt> {
    let mut removal = None;
    for it in uses {
        match it.usage {
            Usage::Stored | Usage::Deleted => {}
            Usage::Method(call) if removal.is_none() && method_name(call) == "remove" => {
                let call = context.call_of(call)?;
                removal = Some(call.at.statement).filter(|_| call.is_statement());
                removal?;
            }
            _ => return None,
        }
    }
    removal
}

/// The only `for handle in handles: handle.remove()`, if nothing else is done with the list but filling and emptying it.
fn removed_in_loop<'a>(context: &Context<'a>, function: FunctionId, uses: &[Use<'a>]) -> Option<&'a Stmt> {
    let mut removal = None;
    for it in uses {
        match it.usage {
            Usage::Stored => {}
            Usage::Method(call) if matches!(method_name(call), "append" | "clear") => {}
            Usage::Iterated if removal.is_none() => {
                removal = Some(for_over(context.body_of(function), it.expr)?);
            }
            _ => return None,
        }
    }
    removal
}

/// The `for` over an expression, if all that it does is to remove.
fn for_over<'a>(block: &'a [Stmt], iterable: &Expr) -> Option<&'a Stmt> {
    let around = block.iter().find(|it| it.range().contains_range(iterable.range()))?;
    if let Stmt::For(it) = around
        && it.iter.range() == iterable.range()
    {
        let removes = match it.body.as_slice() {
            [Stmt::Expr(only)] => {
                matches!(&*only.value, Expr::Call(call) if matches!(&*call.func, Expr::Attribute(method) if method.attr.as_str() == "remove"))
            }
            _ => false,
        };
        return removes.then_some(around);
    }
    crate::context::blocks_of(around).into_iter().find_map(|it| for_over(it, iterable))
}

/// Whether the module is made in the function, so that it goes with it.
fn is_made_here<'a>(context: &Context<'a>, function: FunctionId, object: &'a Expr) -> bool {
    let Some(name) = first_name(object) else { return false };
    let entry = context.names.scope(context.scope(function)).names.get(name);
    entry.into_iter().flat_map(|it| &it.definitions).any(|it| match it {
        Definition::Value(Expr::Call(made), _) => context
            .calls_within(made.range())
            .any(|it| std::ptr::eq(it.expr, made) && context.is_module(&it.result)),
        _ => false,
    })
}

/// Whether anything is called, or yielded to a caller who may raise, in these statements.
fn may_fail(context: &Context<'_>, statements: &[Stmt]) -> bool {
    let runs = |call: &Call<'_>| {
        !HOOK_METHODS.contains(&call.last_name())
            && !matches!(
                call.last_name(),
                "append" | "print" | "len" | "isinstance" | "dict" | "list" | "set"
            )
    };
    statements.iter().any(|it| {
        context.calls_within(it.range()).any(runs)
            || statement_mentions(it, &|it| matches!(it, Expr::Yield(_) | Expr::Await(_)))
    })
}

/// What stands between goes into a `try`, the removal into its `finally`.
fn wrap(context: &Context<'_>, between: &[Stmt], removal: &Stmt) -> Option<Fix> {
    let (first, last) = (between.first()?, between.last()?);
    if ![first, last, removal].into_iter().all(|it| context.is_alone_on_its_lines(it)) {
        return None;
    }
    let start = context.whole_lines(first).start();
    let end = context.whole_lines(removal).end();
    let inner = context.text(TextRange::new(start, context.whole_lines(removal).start()));
    let removing = context.text(TextRange::new(context.whole_lines(removal).start(), end));
    // What is part of a text, or goes on from the line before, must not be moved.
    if ["\"\"\"", "'''", "\\\n", "\\\r"].into_iter().any(|it| inner.contains(it) || removing.contains(it)) {
        return None;
    }
    let indentation = context.indentation(removal);
    let step = if indentation.starts_with('\t') { "\t" } else { "    " };
    let line = context.end_of_line();
    if line == "\r" {
        return None;
    }
    let text = format!(
        "{indentation}try:{line}{}{indentation}finally:{line}{}",
        indented(inner, step),
        indented(removing, step)
    );
    let edit = Edit::replace(TextRange::new(start, end), text);
    Some(Fix::new(Applicability::Unsafe, "remove it in a `finally`", vec![edit]))
}

fn indented(text: &str, step: &str) -> String {
    text.split_inclusive('\n')
        .map(|it| if it.trim().is_empty() { it.to_owned() } else { format!("{step}{it}") })
        .collect()
}
