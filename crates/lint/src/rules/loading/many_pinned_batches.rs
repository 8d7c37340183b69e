//! Lets the workers of a data loader prepare very many batches ahead, all of which end up in pinned memory.
//!
//! ## Why it matters
//! Up to `num_workers * prefetch_factor` batches wait to be used, in shared memory and then in pinned memory. The allocator of
//! pinned memory keeps what was once pinned, in blocks of powers of two, and batches of different sizes cannot use each
//! other's blocks: host memory stays at its highest mark, and pinned memory cannot be swapped out.
//!
//! ## Example
//! ```python
//! from torch.utils.data import DataLoader
//!
//! loader = DataLoader(dataset, batch_size=32, num_workers=16, prefetch_factor=16, pin_memory=True)
//! ```
//! Use instead:
//! ```python
//! from torch.utils.data import DataLoader
//!
//! loader = DataLoader(dataset, batch_size=32, num_workers=16, prefetch_factor=2, pin_memory=True)
//! ```
//!
//! ## When it is silent
//! Fewer than 64 batches ahead, a `prefetch_factor` of at most 4, no pinning, or numbers that are not written in the file.
//!
//! ## Fix
//! Only advice: how many batches are needed is for a measurement to say.
//!
//! ## References
//! - pytorch/pytorch#97432

use crate::{
    context::{Context, LOADERS},
    diagnostic::{Diagnostic, Severity},
    facts::Call,
    rule::{Framework, Rule},
    syntax::{bool_literal, int_literal},
};

/// From how many batches ahead on.
const MANY: i64 = 64;
/// Up to how many a worker nobody is asked to justify.
const USUAL: i64 = 4;

pub(crate) static RULE: Rule = Rule {
    code: "LK407",
    name: "many-pinned-batches",
    frameworks: &[Framework::Torch],
    severity: Severity::Info,
    default: true,
    fix: None,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if context.is_test() {
        return;
    }
    for call in context.calls_to(LOADERS) {
        let pins = call.argument("pin_memory", 7).and_then(bool_literal) == Some(true);
        let number = |name, position| -> Option<i64> {
            let argument = call.argument(name, position)?;
            int_literal(context.only_value(call.at.function, argument).unwrap_or(argument))
        };
        let Some(ahead) = number("num_workers", 5).zip(prefetched(call, number)) else { continue };
        let batches = ahead.0.saturating_mul(ahead.1);
        if pins && ahead.1 > USUAL && batches >= MANY {
            found.push(
                Diagnostic::new(
                    &RULE,
                    Severity::Info,
                    call.expr,
                    format!("up to {batches} batches wait in pinned memory"),
                )
                .because(format!("{} workers prepare {} batches each", ahead.0, ahead.1))
                .advise("lower `prefetch_factor` as long as the GPU does not wait for data"),
            );
        }
    }
}

fn prefetched(call: &Call<'_>, number: impl Fn(&'static str, usize) -> Option<i64>) -> Option<i64> {
    // It can only be given by name.
    call.keyword("prefetch_factor")?;
    number("prefetch_factor", usize::MAX)
}
