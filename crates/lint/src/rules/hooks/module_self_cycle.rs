//! A model, or an object that holds tensors, refers to itself, in a class whose objects are made again and again.
//!
//! ## Why it matters
//! A lambda that mentions `self`, a bound method, or an object that was given `self`, stored on `self` or registered as a hook of a
//! part of it, makes a cycle. Dropping the last name of such an object then frees nothing: of a module its parameters, gradients and buffers stay until Python's garbage collector runs, which looks at how many
//! objects there are, never at how much GPU memory they hold. Measured: all parameters stay for each module that is made,
//! 4.2 MB for one of width 1024, until the next full collection.
//!
//! ## Example
//! ```python
//! import torch.nn as nn
//!
//! class Net(nn.Module):
//!     def __init__(self):
//!         super().__init__()
//!         self.fc = nn.Linear(1024, 1024)
//!         self.act = lambda x: self.fc(x).relu()
//!
//! for epoch in range(100):
//!     net = Net().cuda()
//! ```
//! Use instead:
//! ```python
//! import torch.nn as nn
//!
//! class Net(nn.Module):
//!     def __init__(self):
//!         super().__init__()
//!         self.fc = nn.Linear(1024, 1024)
//!
//!     def act(self, x):
//!         return self.fc(x).relu()
//!
//! for epoch in range(100):
//!     net = Net().cuda()
//! ```
//!
//! ## When it is silent
//! Nothing in sight makes objects of the class in a loop: one model for a whole process may refer to itself. Objects that hold
//! neither modules nor tensors.
//!
//! ## Fix
//! Only advice: make the lambda a method, or keep a `weakref` of the object.
//!
//! ## References
//! - pytorch/pytorch#28647, pytorch/pytorch#46386, pytorch/pytorch#128211, SimplexLab/TorchJD#423

use crate::{
    context::{Context, Repetition},
    diagnostic::{Diagnostic, Severity},
    facts::Callee,
    flow::value::Class,
    names::ClassId,
    rule::{Framework, Rule},
    syntax::{
        ast::{self, Expr},
        mentions,
    },
};

pub(crate) static RULE: Rule = Rule {
    code: "LK305",
    name: "module-self-cycle",
    frameworks: &[Framework::Torch],
    severity: Severity::Warning,
    default: true,
    fix: None,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for id in (0..context.names.classes.len() as u32).map(ClassId) {
        let class = context.names.class(id);
        let Some(init) = class.methods.get("__init__").copied() else { continue };
        let Some(receiver) = context.names.function(init).receiver() else { continue };
        // A module without either, such as a loss, has next to nothing to hold.
        if !context.has_tensors(id) {
            continue;
        }
        let severity = match context.made_repeatedly(id) {
            Some(Repetition::Loop(_)) => Severity::Info,
            Some(_) => Severity::Warning,
            None => continue,
        };
        let own = Own { context, class: id, receiver };
        let stored = context.facts.assignments.iter().filter(|it| {
            it.at.function == init && own.is_attribute(it.target) && own.is_referred_to_by(it.expr)
        });
        let hooked = context.facts.calls.iter().filter(|it| {
            it.at.function == init
                && crate::flow::hooks::registered_by(it.last_name()).is_some()
                && it.method().is_some_and(|(object, ..)| is_name(object, receiver) || own.is_attribute(object))
                && it.expr.arguments.args.first().is_some_and(|it| own.is_referred_to_by(it))
        });
        let name = class.node.name.as_str();
        for expr in stored.map(|it| it.expr).chain(hooked.filter_map(|it| it.expr.arguments.args.first())) {
            let message = format!("each `{name}` refers to itself, so it stays until the garbage collector runs");
            found.push(
                Diagnostic::new(&RULE, severity, expr, message)
                    .because(format!("`{name}` is made again and again"))
                    .because("the garbage collector does not see how much GPU memory is waiting for it")
                    .advise("make it a method, or refer to the object by `weakref.proxy`"),
            );
        }
    }
}

/// A class whose objects are looked at.
struct Own<'c, 'a> {
    context: &'c Context<'a>,
    class: ClassId,
    /// What its methods call the object.
    receiver: &'a str,
}

impl Own<'_, '_> {
    /// `self.name`
    fn is_attribute(&self, expr: &Expr) -> bool {
        matches!(expr, Expr::Attribute(it) if is_name(&it.value, self.receiver))
    }

    /// Whether a value holds the object: a bound method of it, a lambda that mentions it, an object that keeps what it is given, or
    /// several of these.
    fn is_referred_to_by(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Attribute(it) => {
                self.is_attribute(expr) && self.context.names.class(self.class).methods.contains_key(it.attr.as_str())
            }
            Expr::Lambda(it) => mentions(&it.body, &|it| is_name(it, self.receiver)),
            Expr::List(it) => it.elts.iter().any(|it| self.is_referred_to_by(it)),
            Expr::Tuple(it) => it.elts.iter().any(|it| self.is_referred_to_by(it)),
            Expr::Dict(it) => it.items.iter().any(|it| self.is_referred_to_by(&it.value)),
            Expr::Call(it) => self.is_kept_by(it),
            _ => false,
        }
    }

    /// `Callback(self)`, where the constructor stores what it is given.
    fn is_kept_by(&self, call: &ast::ExprCall) -> bool {
        let Some(position) = call.arguments.args.iter().position(|it| is_name(it, self.receiver)) else {
            return false;
        };
        let made = self.context.call_of(call);
        let Some(Callee::Class(Class::Project(file, class))) = made.map(|it| &it.callee) else { return false };
        if *file != self.context.file {
            return false;
        }
        let Some(init) = self.context.names.class(*class).methods.get("__init__") else { return false };
        let function = self.context.names.function(*init);
        let Some(parameter) = function.parameters().nth(position + 1) else { return false };
        self.context.facts.assignments.iter().any(|it| {
            it.at.function == *init
                && matches!(it.target, Expr::Attribute(it) if function.receiver().is_some_and(|own| is_name(&it.value, own)))
                && is_name(it.expr, parameter.parameter.name.as_str())
        })
    }
}

fn is_name(expr: &Expr, name: &str) -> bool {
    matches!(expr, Expr::Name(it) if it.id.as_str() == name)
}
