//! The rules: a directory each area, a file each rule, a line each in the list of its area.

use crate::rule::Registered;

/// Declares the modules of rules, and lists them: each has a `RULE`, and a page in its module documentation.
macro_rules! rules {
    ($($module:ident),* $(,)?) => {
        $(mod $module;)*

        pub(crate) const RULES: &[crate::rule::Registered] = &[
            $(crate::rule::Registered {
                rule: &$module::RULE,
                source: include_str!(concat!(stringify!($module), ".rs")),
            }),*
        ];
    };
}

mod graph;
mod hooks;
mod jax;
mod layers;
mod lifecycles;
mod loading;
mod notebooks;
mod onnxruntime;
mod references;
mod runtime;
mod tensorflow;

/// Every rule, in the order of codes.
pub(crate) fn all() -> impl Iterator<Item = &'static Registered> {
    [
        graph::RULES,
        references::RULES,
        hooks::RULES,
        loading::RULES,
        lifecycles::RULES,
        runtime::RULES,
        layers::RULES,
        tensorflow::RULES,
        onnxruntime::RULES,
        jax::RULES,
        notebooks::RULES,
    ]
    .into_iter()
    .flatten()
}
