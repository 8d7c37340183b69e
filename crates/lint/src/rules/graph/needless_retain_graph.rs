//! Keeps the graph after the only backward pass over it.
//!
//! ## Why it matters
//! `retain_graph=True` leaves the activations of the step alive until the last tensor of it is given up, usually while the next step
//! already makes its own: the peak can be twice as high. It also hides the error message that tells of a graph that reaches into the step
//! before, which is a leak.
//!
//! ## Example
//! ```python
//! import torch
//!
//! model = torch.nn.Linear(10, 10).cuda()
//! optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
//! for x in train_loader:
//!     optimizer.zero_grad()
//!     loss = model(x).square().mean()
//!     loss.backward(retain_graph=True)
//!     optimizer.step()
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! model = torch.nn.Linear(10, 10).cuda()
//! optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
//! for x in train_loader:
//!     optimizer.zero_grad()
//!     loss = model(x).square().mean()
//!     loss.backward()
//!     optimizer.step()
//! ```
//!
//! ## When it is silent
//! The function has another backward pass or asks for gradients otherwise, or something is carried from step to step (see LK110).
//!
//! ## Fix
//! Takes `retain_graph=True` away: unsafe, since a second pass somewhere else would fail then.
//!
//! ## References
//! - EagleW/Writing-editing-Network#3, grey-eye/talking-heads#7, jlamprou/Infini-Attention#3

use crate::{
    context::{Context, Kind},
    diagnostic::{Diagnostic, Severity},
    fix::{Applicability, Fix},
    rule::{Framework, Rule},
    syntax::bool_literal,
};

pub(crate) static RULE: Rule = Rule {
    code: "LK109",
    name: "needless-retain-graph",
    frameworks: &[Framework::Torch],
    severity: Severity::Info,
    default: true,
    fix: Some(Applicability::Unsafe),
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for call in context.calls_named("backward") {
        let Some(keyword) = call.keyword("retain_graph") else { continue };
        let function = call.at.function;
        // The loss must be computed here: a graph that comes from elsewhere may be wanted there.
        let is_own = call.method().is_some_and(|(_, value, _)| {
            value.as_tensor().is_some_and(|it| !it.nodes.is_empty()) && call.expr.arguments.args.is_empty()
        });
        let in_function = |name| context.calls_named(name).filter(|it| it.at.function == function).count();
        let others = in_function("backward") + in_function("grad") + in_function("manual_backward");
        let carries = context.cases(Kind::Carried).any(|it| it.keep.at.function == function);
        let carries = carries || context.has_module_state();
        let trains = context.training_loop(call.at.in_loop).is_some();
        if bool_literal(&keyword.value) != Some(true) || !is_own || others != 1 || carries || !trains {
            continue;
        }
        let fix = context
            .delete_keyword(call.expr, "retain_graph")
            .map(|edit| Fix::new(Applicability::Unsafe, "take `retain_graph=True` away", vec![edit]));
        found.push(
            Diagnostic::new(&RULE, Severity::Info, keyword, "the graph outlives the only backward pass over it, which raises the peak")
                .because("no other backward pass of this function uses the graph again")
                .advise("take `retain_graph=True` away")
                .fixed_by(fix),
        );
    }
}
