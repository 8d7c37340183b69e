//! Calls that make a whole model.

use crate::{
    context::Context,
    facts::{Call, Callee},
    flow::value::Class,
    names::{Elsewhere, FunctionId, Path},
    syntax::ast::{Expr, Stmt},
};

/// The calls that load a model, unguarded and not into something that is there to keep it: they load anew each time.
pub(super) fn model_loads<'a>(context: &Context<'a>) -> impl Iterator<Item = &'a Call<'a>> {
    let facts = context.facts;
    facts.calls.iter().filter(|it| is_model_load(it) && it.at.branch.is_none() && !is_stored(context, it))
}

fn is_model_load(call: &Call<'_>) -> bool {
    match &call.callee {
        Callee::External(path) => is_path_of_load(path),
        Callee::Class(Class::External(path)) => is_path_of_load(&Path::of(path)),
        _ => false,
    }
}

fn is_path_of_load(path: &Path<'_>) -> bool {
    match path.parts() {
        [_, .., class, "from_pretrained" | "from_single_file"] => {
            !["Tokenizer", "Processor", "Config", "Extractor", "Scheduler"]
                .iter()
                .any(|it| class.contains(it))
        }
        ["transformers", "pipeline"]
        | ["torch", "hub" | "jit", "load"]
        | ["onnxruntime", "InferenceSession"]
        | ["sentence_transformers", "SentenceTransformer" | "CrossEncoder"]
        | ["ultralytics", "YOLO"]
        | ["whisper", "load_model"]
        | ["timm", "create_model"]
        | ["vllm", "LLM"]
        | ["tensorflow" | "keras", .., "load_model"] => true,
        _ => false,
    }
}

/// Whether a result is put where later calls find it: in a global, an attribute, an item.
pub(super) fn is_stored(context: &Context<'_>, call: &Call<'_>) -> bool {
    let targets: &[Expr] = match call.at.statement {
        Stmt::Assign(it) => &it.targets,
        Stmt::AnnAssign(it) => std::slice::from_ref(&*it.target),
        _ => return false,
    };
    let scope = context.scope(call.at.function);
    targets.iter().any(|it| match it {
        Expr::Name(name) => {
            let own = context.names.scope(scope).names.get(name.id.as_str());
            own.is_some_and(|it| matches!(it.elsewhere, Some(Elsewhere::Global | Elsewhere::Nonlocal)))
        }
        Expr::Tuple(_) | Expr::List(_) => false,
        _ => true,
    })
}

/// The calls of a function of the file whose results are not stored and that no condition guards.
pub(super) fn plain_calls_of<'a>(
    context: &Context<'a>,
    function: FunctionId,
) -> impl Iterator<Item = &'a Call<'a>> {
    let facts = context.facts;
    facts.calls_named(context.names.function(function).name).filter(move |it| {
        matches!(it.callee, Callee::Function(file, id) if file == context.file && id == function)
            && it.at.branch.is_none()
            && !is_stored(context, it)
    })
}
