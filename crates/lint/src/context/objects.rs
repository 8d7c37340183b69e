//! Questions about objects: where they come from, and how often they are made.

use super::{Context, Repetition};
use crate::{
    facts::{Branch, Call, Callee, Position, Root},
    flow::value::Class,
    names::{ClassId, Definition, FunctionId, LoopId, Usage},
    syntax::{
        Ranged,
        ast::{self, CmpOp, Expr},
        mentions,
    },
};

impl<'a> Context<'a> {
    /// Whether what an expression begins with is made anew in every round of a loop: then it does not outlive the round.
    pub(crate) fn is_made_within(&self, function: FunctionId, the_loop: LoopId, expr: &'a Expr) -> bool {
        self.is_made_in_round(function, the_loop, expr, 4)
    }

    fn is_made_in_round(&self, function: FunctionId, the_loop: LoopId, expr: &'a Expr, hops: u32) -> bool {
        let (Some(hops), Some(name)) = (hops.checked_sub(1), first_name(expr)) else { return true };
        let whole = self.names.the_loop(the_loop).node.range();
        let Some(entry) = self.names.name(self.scope(function), name) else { return false };
        entry.definitions.iter().any(|it| match it {
            // `layer = model.layers[0]` is as old as the model; `model = Net()` is new.
            Definition::Value(value, _) if whole.contains_range(value.range()) => match value {
                Expr::Name(_) | Expr::Attribute(_) | Expr::Subscript(_) => {
                    self.is_made_in_round(function, the_loop, value, hops)
                }
                _ => true,
            },
            Definition::Other(range) => whole.contains_range(*range),
            Definition::Loop(id) if *id == the_loop => true,
            Definition::Loop(id) => {
                let node = self.names.the_loop(*id).node;
                whole.contains_range(node.range())
                    && node.iterable().is_none_or(|it| self.is_made_in_round(function, the_loop, it, hops))
            }
            _ => false,
        })
    }

    /// Whether an expression is made from a parameter of the function, so that callers decide what it is.
    pub(crate) fn comes_from_parameter(&self, function: FunctionId, expr: &'a Expr) -> bool {
        self.comes_from(function, expr, 4)
    }

    fn comes_from(&self, function: FunctionId, expr: &'a Expr, hops: u32) -> bool {
        let Some(hops) = hops.checked_sub(1) else { return false };
        match expr {
            Expr::Tuple(it) => return it.elts.iter().any(|it| self.comes_from(function, it, hops)),
            // A program has few devices, whatever it is called with.
            Expr::Attribute(it) if matches!(it.attr.as_str(), "device" | "dtype" | "type" | "index") => {
                return false;
            }
            _ => {}
        }
        let own = self.names.function(function);
        let scope = self.names.scope(own.scope);
        mentions_name(expr, &|name| {
            own.receiver() != Some(name)
                && !is_of_a_few(name)
                && scope.names.get(name).is_some_and(|entry| {
                    entry.definitions.iter().any(|it| match it {
                        Definition::Parameter(it) => {
                            !it.annotation.as_deref().is_some_and(|it| is_of_a_few_type(self.text(it)))
                        }
                        Definition::Value(value, _) => self.comes_from(function, value, hops),
                        _ => false,
                    })
                })
        })
    }

    /// Whether an expression has such a call in it, or a name in it was given the result of one in the same function.
    pub(crate) fn is_result_of(
        &self,
        function: FunctionId,
        expr: &'a Expr,
        is_meant: &dyn Fn(&Call<'a>) -> bool,
    ) -> bool {
        self.is_result_within(function, expr, is_meant, 3)
    }

    fn is_result_within(
        &self,
        function: FunctionId,
        expr: &'a Expr,
        is_meant: &dyn Fn(&Call<'a>) -> bool,
        hops: u32,
    ) -> bool {
        let Some(hops) = hops.checked_sub(1) else { return false };
        let has_call = self.calls_within(expr.range()).any(is_meant);
        has_call
            || mentions_name(expr, &|name| {
                let entry = self.names.scope(self.scope(function)).names.get(name);
                entry.into_iter().flat_map(|it| &it.definitions).any(|it| match it {
                    Definition::Value(value, _) => self.is_result_within(function, value, is_meant, hops),
                    _ => false,
                })
            })
    }

    /// Whether anything asks for the length of a container: then it is usually to keep it short.
    pub(crate) fn is_measured(&self, root: Root<'a>) -> bool {
        self.uses(root).iter().any(|it| match it.usage {
            Usage::Argument(call) => matches!(&*call.func, Expr::Name(it) if it.id.as_str() == "len"),
            _ => false,
        })
    }

    /// Whether objects of a class are made again and again.
    pub(crate) fn made_repeatedly(&self, class: ClassId) -> Option<Repetition> {
        let calls = self.facts.calls.iter().filter(|it| {
            matches!(&it.callee, Callee::Class(Class::Project(file, made)) if *file == self.file && *made == class)
        });
        let mut all: Vec<Repetition> = calls.filter_map(|it| self.repetition_at(&it.at)).collect();
        // One of which more is known comes first.
        all.sort_by_key(|it| matches!(it, Repetition::Loop(_)));
        all.into_iter().find(|it| !matches!(it, Repetition::Hook(_)))
    }

    /// Whether a module of the file changes attributes of its own while it runs, so that one forward pass may go on from another.
    pub(crate) fn has_module_state(&self) -> bool {
        self.names.attributes.values().flatten().any(|it| {
            let function = self.names.function(it.function);
            matches!(it.usage, Usage::Stored)
                && function.name != "__init__"
                && function.class.is_some_and(|it| self.is_module_class(&Class::Project(self.file, it)))
        })
    }

    /// Whether objects of a class hold device memory: they are modules, or have modules or tensors as attributes.
    pub(crate) fn holds_memory(&self, class: ClassId) -> bool {
        self.is_module_class(&Class::Project(self.file, class)) || self.has_tensors(class)
    }

    /// Whether objects of a class are seen to have modules or tensors as attributes.
    pub(crate) fn has_tensors(&self, class: ClassId) -> bool {
        self.facts.attributes.iter().any(|((owner, _), value)| {
            *owner == class && (value.tensor_within().is_some() || self.is_module(value))
        })
    }

    /// Whether an expression runs a network, as far as types or names tell.
    pub(crate) fn is_forward(&self, call: &Call<'a>) -> bool {
        match &call.callee {
            Callee::Object(value) => self.is_module(value),
            Callee::Unknown | Callee::Method { .. } => {
                matches!(
                    call.last_name(),
                    "model" | "net" | "network" | "encoder" | "decoder" | "backbone" | "forward" | "generate"
                )
            }
            _ => false,
        }
    }
}

/// Whether the condition around a place is one that is usually true once: `if x is None`, `if step == 0`, `if not done`.
pub(crate) fn is_done_once(at: &Position<'_>) -> bool {
    let Some(Branch::If(test)) = at.branch else { return false };
    mentions(test, &|it| match it {
        Expr::Compare(it) => {
            it.ops.iter().any(|op| matches!(op, CmpOp::Is | CmpOp::IsNot | CmpOp::NotIn | CmpOp::Eq))
        }
        Expr::UnaryOp(it) => it.op == ast::UnaryOp::Not,
        Expr::Call(call) => matches!(&*call.func, Expr::Name(it) if it.id.as_str() == "hasattr"),
        _ => false,
    })
}

/// The methods that put a hook on a module, and give a handle that removes it.
pub(crate) const HOOK_METHODS: &[&str] = &[
    "register_forward_hook",
    "register_forward_pre_hook",
    "register_full_backward_hook",
    "register_full_backward_pre_hook",
    "register_backward_hook",
];

/// The variable that an expression begins with: `model` in `model.layers[0].conv`.
pub(crate) fn first_name(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Name(it) => Some(it.id.as_str()),
        Expr::Attribute(it) => first_name(&it.value),
        Expr::Subscript(it) => first_name(&it.value),
        Expr::Call(it) => match &*it.func {
            // `model.modules()`, `enumerate(layers)`, `zip(layers, names)`
            Expr::Attribute(method) => first_name(&method.value),
            Expr::Name(name)
                if matches!(name.id.as_str(), "enumerate" | "zip" | "list" | "reversed" | "iter") =>
            {
                it.arguments.args.first().and_then(first_name)
            }
            _ => None,
        },
        Expr::Starred(it) => first_name(&it.value),
        _ => None,
    }
}

fn mentions_name(expr: &Expr, is_meant: &dyn Fn(&str) -> bool) -> bool {
    mentions(expr, &|it| matches!(it, Expr::Name(it) if is_meant(it.id.as_str())))
}

/// Whether what has this name has few values in one program.
fn is_of_a_few(name: &str) -> bool {
    const FEW: &[&str] = &[
        "device", "dtype", "name", "layer", "mode", "kind", "type", "rank", "cls", "key_name", "config",
        "backend", "arch", "variant", "module", "path", "url", "model",
    ];
    FEW.iter()
        .any(|few| name == *few || name.ends_with(few) && name.contains('_') || name.starts_with("layer_"))
}

fn is_of_a_few_type(annotation: &str) -> bool {
    ["str", "bool", "device", "dtype", "Module", "type", "Type", "Path"]
        .iter()
        .any(|it| annotation.split(|c: char| !c.is_alphanumeric()).any(|part| part == *it))
}
