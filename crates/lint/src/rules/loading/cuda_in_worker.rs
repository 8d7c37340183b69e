//! Puts tensors on the GPU in code that runs in the workers of a data loader.
//!
//! ## Why it matters
//! Every worker that touches the GPU gets a CUDA context of its own, which takes some hundred megabytes of device memory
//! before any tensor; with 8 workers, 8 of them. Forked workers cannot start CUDA at all if the main
//! process has, and tensors that are sent between processes stay allocated until the receiver lets go of them.
//!
//! ## Example
//! ```python
//! from torch.utils.data import DataLoader, Dataset
//!
//! class Images(Dataset):
//!     def __getitem__(self, index):
//!         return read(self.paths[index]).cuda()
//!
//! loader = DataLoader(Images(), num_workers=4)
//! ```
//! Use instead:
//! ```python
//! from torch.utils.data import DataLoader, Dataset
//!
//! class Images(Dataset):
//!     def __getitem__(self, index):
//!         return read(self.paths[index])
//!
//! loader = DataLoader(Images(), num_workers=4, pin_memory=True)
//! for images in loader:
//!     images = images.cuda(non_blocking=True)
//! ```
//!
//! ## When it is silent
//! All loaders of the dataset in the file are made without workers. The device is a variable whose value is not seen. If no
//! loader of the dataset is in sight, or its number of workers is not, it is only an info.
//!
//! ## Fix
//! Only advice: the transfer belongs into the loop over the loader.
//!
//! ## References
//! - [torch.utils.data: it is generally not recommended to return CUDA tensors in multi-process loading](https://docs.pytorch.org/docs/stable/data.html)
//! - pytorch/pytorch#31039

use crate::{
    context::{Context, LOADERS, Workers},
    diagnostic::{Diagnostic, Severity},
    facts::Call,
    flow::value::{Class, Value},
    names::FunctionId,
    rule::{Framework, Rule},
    syntax::{ast::Expr, text_literal},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK406",
    name: "cuda-in-worker",
    frameworks: &[Framework::Torch],
    severity: Severity::Warning,
    default: true,
    fix: None,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if context.is_test() {
        return;
    }
    for call in ["cuda", "to"].into_iter().flat_map(|it| context.calls_named(it)) {
        if !puts_on_gpu(context, call) || call.at.branch.is_some() {
            continue;
        }
        let Some((severity, loader)) = runs_in_worker(context, call.at.function) else { continue };
        let function = context.names.function(call.at.function).name;
        let mut diagnostic = Diagnostic::new(
            &RULE,
            severity,
            call.expr,
            format!("`{function}` uses the GPU: each worker that runs it holds a CUDA context of its own"),
        );
        if let Some(loader) = loader {
            diagnostic = diagnostic.because_of(loader.expr, "this loader runs it");
        }
        found.push(diagnostic.advise("move batches to the GPU in the loop over the loader, which pins them"));
    }
}

/// `x.cuda()`, `x.to("cuda")`, `x.to(device)` where the device is seen to be one.
fn puts_on_gpu<'a>(context: &Context<'a>, call: &Call<'a>) -> bool {
    if call.method().is_none() {
        return false;
    }
    match call.last_name() {
        "cuda" => true,
        "to" => call.argument("device", 0).is_some_and(|device| {
            let device = context.only_value(call.at.function, device).unwrap_or(device);
            match device {
                Expr::Call(made) => {
                    made.arguments.args.first().and_then(text_literal).is_some_and(|it| it.starts_with("cuda"))
                }
                other => text_literal(other).is_some_and(|it| it.starts_with("cuda")),
            }
        }),
        _ => false,
    }
}

/// How bad it is that a function uses the GPU, if workers may run it, and the loader whose workers do.
fn runs_in_worker<'a>(
    context: &Context<'a>,
    function: FunctionId,
) -> Option<(Severity, Option<&'a Call<'a>>)> {
    let own = context.names.function(function);
    let loaders: Vec<&Call<'a>> = match own.class {
        Some(class) if matches!(own.name, "__getitem__" | "__getitems__") => {
            let class = Class::Project(context.file, class);
            let bases = context.project.foreign_bases(&class);
            if !bases.iter().any(|it| it.starts_with("torch") && it.ends_with("Dataset")) {
                return None;
            }
            let own = Value::Object(class);
            let reads = |it: &&Call<'a>| {
                it.argument("dataset", 0).is_some_and(|dataset| *it.value_of(dataset) == own)
            };
            let loaders: Vec<_> = context.calls_to(LOADERS).filter(reads).collect();
            if loaders.is_empty() {
                return Some((Severity::Info, None));
            }
            loaders
        }
        _ => {
            let own = Value::Function(context.file, function);
            context
                .calls_to(LOADERS)
                .filter(|it| it.keyword("collate_fn").is_some_and(|fun| *it.value_of(&fun.value) == own))
                .collect()
        }
    };
    let with = |workers| loaders.iter().copied().find(|it| context.workers(it) == workers);
    with(Workers::Some)
        .map(|it| (Severity::Warning, Some(it)))
        .or_else(|| with(Workers::Unknown).map(|it| (Severity::Info, Some(it))))
}
