//! Loads a model in a Streamlit script without caching it.
//!
//! ## Why it matters
//! Streamlit runs the whole script again after every click, for every user. Without `@st.cache_resource` each run loads a model
//! of its own, and the old ones stay on the GPU until Python has collected them: a few clicks fill it.
//!
//! ## Example
//! ```python
//! import streamlit as st
//! from transformers import pipeline
//!
//! def load():
//!     return pipeline("summarization", device=0)
//!
//! summarize = load()
//! st.write(summarize(st.text_area("Text")))
//! ```
//! Use instead:
//! ```python
//! import streamlit as st
//! from transformers import pipeline
//!
//! @st.cache_resource
//! def load():
//!     return pipeline("summarization", device=0)
//!
//! summarize = load()
//! st.write(summarize(st.text_area("Text")))
//! ```
//!
//! ## When it is silent
//! The function that loads has a decorator; a condition guards the call (`if "model" not in st.session_state`, a button); the
//! model is put into a global or the session's state. Files that show nothing by themselves: they are imported, once.
//!
//! ## Fix
//! Adds `@st.cache_resource` to a function that loads and returns the model and takes no arguments: unsafe, because all users
//! then share one model, and the function no longer runs each time.
//!
//! ## References
//! - [st.cache_resource](https://docs.streamlit.io/develop/api-reference/caching-and-state/st.cache_resource)
//! - streamlit/streamlit#5998, streamlit/streamlit#3885, golden-panther/glaucoma-detector#3

use super::model_loads::{model_loads, plain_calls_of};
use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    facts::Callee,
    fix::{Applicability, Edit, Fix},
    flow::value::Value,
    names::{Definition, FunctionId, FunctionNode, ScopeId},
    rule::{Framework, Rule},
    syntax::Ranged,
};

pub(crate) static RULE: Rule = Rule {
    code: "LK512",
    name: "streamlit-uncached-model",
    frameworks: &[Framework::Serving],
    severity: Severity::Warning,
    default: true,
    fix: Some(Applicability::Unsafe),
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let Some(streamlit) = name_of_streamlit(context) else { return };
    if context.is_test() || !is_script(context) {
        return;
    }
    for load in model_loads(context) {
        let function = load.at.function;
        let own = context.names.function(function);
        let (place, fix) = if function == FunctionId::MODULE {
            (None, None)
        } else if own.node.decorators().is_empty() && own.parent == Some(FunctionId::MODULE) {
            let call =
                plain_calls_of(context, function).find(|it| it.at.function == FunctionId::MODULE);
            let Some(call) = call else { continue };
            (Some(call), cache(context, function, streamlit))
        } else {
            continue;
        };
        let mut diagnostic = Diagnostic::new(
            &RULE,
            Severity::Warning,
            load.expr,
            "every run of the script loads another model, and Streamlit runs it after every click",
        );
        if let Some(call) = place {
            diagnostic = diagnostic.because_of(call.expr, "the script calls the function that loads here");
        }
        found.push(
            diagnostic
                .advise(format!("load it in a function with `@{streamlit}.cache_resource`"))
                .fixed_by(fix),
        );
    }
}

/// `st` of `import streamlit as st`
fn name_of_streamlit<'a>(context: &Context<'a>) -> Option<&'a str> {
    let mut names: Vec<&'a str> = context
        .names
        .scope(ScopeId::MODULE)
        .names
        .iter()
        .filter(|(_, it)| {
            it.definitions.iter().any(|it| matches!(it, Definition::Import(path) if path.is("streamlit")))
        })
        .map(|(name, _)| *name)
        .collect();
    names.sort_unstable();
    names.first().copied()
}

/// Whether the file shows something when it is run, itself or in a function that it calls: other files are only imported, once.
fn is_script(context: &Context<'_>) -> bool {
    context.facts.calls.iter().any(|call| {
        let shows = matches!(&call.callee, Callee::External(path)
            if path.first() == "streamlit" && !path.last().starts_with("cache"));
        let function = call.at.function;
        shows
            && (function == FunctionId::MODULE
                || plain_calls_of(context, function).any(|it| it.at.function == FunctionId::MODULE))
    })
}

fn cache(context: &Context<'_>, function: FunctionId, streamlit: &str) -> Option<Fix> {
    let own = context.names.function(function);
    let FunctionNode::Def(def) = own.node else { return None };
    let returns = context.facts.functions.get(function.0 as usize).map(|it| &it.returns);
    let has_result = returns.is_some_and(|it| !matches!(it, Value::Plain));
    if own.parameters().next().is_some() || !has_result || def.is_async {
        return None;
    }
    let start = def.start();
    Some(Fix::new(
        Applicability::Unsafe,
        format!("add `@{streamlit}.cache_resource`"),
        vec![Edit::insert(start, format!("@{streamlit}.cache_resource{}", context.end_of_line()))],
    ))
}
