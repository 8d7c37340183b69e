//! A module refers to itself, in a class whose objects are made again and again.
//!
//! ## Why it matters
//! A lambda that mentions `self`, or a bound method, stored on `self` makes a cycle. Dropping the last name of such a module
//! then frees nothing: its parameters, gradients and buffers stay until Python's garbage collector runs, which looks at how many
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
//! Nothing in sight makes objects of the class in a loop: one model for a whole process may refer to itself.
//!
//! ## Fix
//! Only advice: make the lambda a method, or keep a `weakref` of the object.
//!
//! ## References
//! - pytorch/pytorch#28647, pytorch/pytorch#46386, pytorch/pytorch#128211, SimplexLab/TorchJD#423

use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    flow::value::{Class, Value},
    names::ClassId,
    rule::{Framework, Rule},
    syntax::{
        ast::Expr,
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
        if !context.is_module_class(&Class::Project(context.file, id)) || !context.is_made_repeatedly(id) {
            continue;
        }
        let Some(init) = class.methods.get("__init__").copied() else { continue };
        let Some(receiver) = context.names.function(init).receiver() else { continue };
        let is_of_self = |expr: &Expr| matches!(expr, Expr::Attribute(it) if is_name(&it.value, receiver));
        let refers = |expr: &Expr| match expr {
            Expr::Lambda(it) => mentions(&it.body, &|it| is_name(it, receiver)),
            _ => false,
        };
        let name = class.node.name.as_str();
        let stored = context.facts.assignments.iter().filter(|it| {
            let is_bound_method = is_of_self(it.expr) && matches!(it.value, Value::Function(..));
            it.at.function == init && is_of_self(it.target) && (is_bound_method || refers(it.expr))
        });
        let hooked = context.facts.calls.iter().filter(|it| {
            it.at.function == init
                && crate::flow::hooks::registered_by(it.last_name()).is_some()
                && it.method().is_some_and(|(object, ..)| is_name(object, receiver))
                && it.expr.arguments.args.first().is_some_and(|it| is_of_self(it) || refers(it))
        });
        for expr in stored.map(|it| it.expr).chain(hooked.filter_map(|it| it.expr.arguments.args.first())) {
            let message = format!("each `{name}` refers to itself, so it stays until the garbage collector runs");
            found.push(
                Diagnostic::new(&RULE, Severity::Warning, expr, message)
                    .because(format!("`{name}` is made again and again"))
                    .because("the garbage collector does not see how much GPU memory is waiting for it")
                    .advise("make it a method, or refer to the object by `weakref.proxy`"),
            );
        }
    }
}

fn is_name(expr: &Expr, name: &str) -> bool {
    matches!(expr, Expr::Name(it) if it.id.as_str() == name)
}
