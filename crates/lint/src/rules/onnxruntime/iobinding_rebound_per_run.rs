//! Makes a new I/O binding of an ONNX Runtime session in every round of a loop.
//!
//! ## Why it matters
//! A binding holds the buffers of its inputs and outputs until it is collected. A new one for each batch allocates them again, beside
//! those of the round before; some versions of ONNX Runtime have kept them for good.
//!
//! ## Example
//! ```python
//! import onnxruntime
//!
//! session = onnxruntime.InferenceSession("model.onnx")
//! for batch in loader:
//!     binding = session.io_binding()
//!     binding.bind_cpu_input("x", batch)
//!     binding.bind_output("y")
//!     session.run_with_iobinding(binding)
//! ```
//! Use instead:
//! ```python
//! import onnxruntime
//!
//! session = onnxruntime.InferenceSession("model.onnx")
//! value = onnxruntime.OrtValue.ortvalue_from_numpy(first_batch, "cuda", 0)
//! binding = session.io_binding()
//! binding.bind_ortvalue_input("x", value)
//! binding.bind_output("y")
//! for batch in loader:
//!     value.update_inplace(batch)
//!     session.run_with_iobinding(binding)
//! ```
//!
//! ## When it is silent
//! The binding is made once, or its loop does not go over data.
//!
//! ## Fix
//! Only advice: inputs that change their shape have to be bound again, after `clear_binding_inputs()`.
//!
//! ## References
//! - microsoft/onnxruntime#7611, #8144

use crate::{
    context::{Context, Repetition},
    diagnostic::{Diagnostic, Severity},
    rule::{Framework, Rule},
    syntax::Ranged,
};

pub(crate) static RULE: Rule = Rule {
    code: "LK904",
    name: "iobinding-rebound-per-run",
    frameworks: &[Framework::OnnxRuntime],
    severity: Severity::Info,
    default: true,
    fix: None,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    // The name is ONNX Runtime's alone.
    for call in context.calls_named("io_binding").filter(|it| it.method().is_some() && it.at.branch.is_none()) {
        let Some(Repetition::Data(id)) = context.repetition_at(&call.at) else { continue };
        let node = context.names.the_loop(id).node;
        found.push(
            Diagnostic::new(&RULE, Severity::Info, call.expr, "a new binding in every round, with buffers of its own")
                .because_of(node.iterable().map_or(node.range(), Ranged::range), "this loop runs for each batch or step")
                .advise("bind once to an `OrtValue` before the loop, and `update_inplace` it"),
        );
    }
}
