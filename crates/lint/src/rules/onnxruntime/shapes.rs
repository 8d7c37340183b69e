//! What shows that the inputs of a session have shapes that change.

use crate::{
    context::Context,
    syntax::{Ranged, TextRange, ast::Expr, bool_literal, text_literal},
};

/// Dotted names of sessions.
pub(super) const SESSION: &[&str] =
    &["onnxruntime.InferenceSession", "onnxruntime.capi.onnxruntime_inference_collection.InferenceSession"];

/// The place in the file that shows that shapes change: an export with dynamic axes, text padded to the longest of its batch.
pub(super) fn varying(context: &Context<'_>) -> Option<TextRange> {
    context.facts.calls.iter().find_map(|call| {
        let is_dynamic = ["dynamic_axes", "dynamic_shapes"]
            .iter()
            .any(|it| call.keyword(it).is_some_and(|it| !matches!(it.value, Expr::NoneLiteral(_))));
        let padding = call.keyword("padding").map(|it| &it.value);
        let is_padded =
            padding.is_some_and(|it| bool_literal(it) == Some(true) || text_literal(it) == Some("longest"));
        (is_dynamic || is_padded).then(|| call.expr.range())
    })
}
