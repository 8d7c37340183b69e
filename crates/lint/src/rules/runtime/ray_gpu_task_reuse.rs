//! Tells Ray to keep the process of a GPU task.
//!
//! ## Why it matters
//! A process that has run a task on a GPU keeps its CUDA context and everything that PyTorch's or TensorFlow's allocator has
//! cached, for as long as it lives. Ray ends the process of a GPU task after one call for this reason (since 2.2), unless
//! `max_calls=0` tells it to use the process again without end: then idle processes hold GPU memory that no task can see.
//!
//! ## Example
//! ```python
//! import ray
//!
//! @ray.remote(num_gpus=1, max_calls=0)
//! def train(config):
//!     fit(config)
//! ```
//! Use instead:
//! ```python
//! import ray
//!
//! @ray.remote(num_gpus=1)
//! def train(config):
//!     fit(config)
//! ```
//! To keep a model loaded between calls use an actor, which can be killed.
//!
//! ## When it is silent
//! `max_calls` is not given or is not 0, no GPU is asked for, or an actor (a class) is made. Of Ray before 2.2, whose default
//! was to keep the process, nothing is said.
//!
//! ## Fix
//! Unsafe: takes `max_calls=0` away; each call then pays for a new process.
//!
//! ## References
//! - ray-project/ray#29606, ray-project/ray#30061, ray-project/ray#48134

use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    fix::{Applicability, Fix},
    rule::{Framework, Rule},
    syntax::int_literal,
};

pub(crate) static RULE: Rule = Rule {
    code: "LK614",
    name: "ray-gpu-task-reuse",
    frameworks: &[Framework::Serving],
    severity: Severity::Info,
    default: true,
    fix: Some(Applicability::Unsafe),
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for call in context.calls_to(&["ray.remote"]) {
        let gpus = call.keyword("num_gpus").filter(|it| int_literal(&it.value) != Some(0));
        let calls = call.keyword("max_calls").filter(|it| int_literal(&it.value) == Some(0));
        let (Some(gpus), Some(calls)) = (gpus, calls) else { continue };
        let fix = context
            .delete_keyword(call.expr, "max_calls")
            .map(|it| Fix::new(Applicability::Unsafe, "take `max_calls=0` away", vec![it]));
        found.push(
            Diagnostic::new(
                &RULE,
                Severity::Info,
                calls,
                "the process of this task is kept, with its context and all that its allocator has cached on the GPU",
            )
            .because_of(gpus, "the task runs on a GPU")
            .advise("leave `max_calls` out, so that Ray ends the process, or use an actor")
            .fixed_by(fix),
        );
    }
}
