//! Makes a tensor longer at every step by concatenating it with the next piece.
//!
//! ## Why it matters
//! Each step copies everything that was gathered so far into a new block, which is larger than any freed one: the device does the
//! work of all steps again and again, and the allocator is left with blocks of every size that nothing fits into. With a graph it also
//! keeps the activations of all steps: 16.8 MB a step in a small MLP, four times the data.
//!
//! ## Example
//! ```python
//! import torch
//!
//! model = torch.nn.Linear(10, 10).cuda()
//! outputs = torch.empty(0, 10, device="cuda")
//! for x in test_loader:
//!     outputs = torch.cat([outputs, model(x)])
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! model = torch.nn.Linear(10, 10).cuda()
//! outputs = []
//! for x in test_loader:
//!     outputs.append(model(x).detach().cpu())
//! outputs = torch.cat(outputs)
//! ```
//!
//! ## When it is silent
//! The loop is not one over data or steps: pieces of one step, layers, and the tokens of one answer (a cache of keys and values) are
//! joined this way on purpose.
//!
//! ## Fix
//! Only advice: a list has to be made before the loop and joined after it.
//!
//! ## References
//! - pytorch/pytorch#13613, sgl-project/sglang#37120

use super::kept;
use crate::{
    context::{Context, Kind, Repetition},
    diagnostic::{Diagnostic, Severity},
    flow::value::Graph,
    rule::{Framework, Rule},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK106",
    name: "cat-accumulate",
    frameworks: &[Framework::Torch],
    severity: Severity::Error,
    default: true,
    fix: None,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for case in context.cases(Kind::Concatenation) {
        let may_be_wanted = match case.repetition {
            Repetition::Data(id) => context.is_over_range(id),
            // An attribute that every call makes longer, which may be a buffer that has to grow.
            Repetition::Called | Repetition::Framework if case.keep.outlives_call => true,
            _ => continue,
        };
        let target = context.text(case.keep.target);
        let severity = match case.graph {
            Graph::Likely | Graph::Attached => case.severity(),
            // What grows by a number of rounds rather than over data is as likely the text that is generated.
            _ if may_be_wanted => Severity::Info,
            _ => Severity::Warning,
        };
        let message = format!("`{target}` is copied as a whole into a larger block at every step");
        found.push(
            kept::report(context, &RULE, &case, severity, message)
                .advise("append `.detach().cpu()` of each piece to a list, and join the list once after the loop"),
        );
    }
}
