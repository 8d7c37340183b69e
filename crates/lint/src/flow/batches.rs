//! Batches that are moved part by part.

use super::Flow;
use crate::{names::LoopNode, syntax::ast::Expr};

impl Flow<'_, '_, '_> {
    /// Whether an expression is what a comprehension takes out of a dict: `v` in `{k: v.to(device) for k, v in batch.items()}`.
    /// What is moved like this is a batch, unless its name says that it is models.
    pub(super) fn is_part_of_batch(&mut self, object: &Expr) -> bool {
        let Some(id) = self.frame().in_loop else { return false };
        let (Expr::Name(part), LoopNode::Comprehension(it)) = (object, self.names.the_loop(id).node) else {
            return false;
        };
        let Expr::Call(items) = &it.iter else { return false };
        let Expr::Attribute(method) = &*items.func else { return false };
        let is_last = match &it.target {
            Expr::Name(name) => method.attr.as_str() == "values" && name.id == part.id,
            Expr::Tuple(tuple) => {
                method.attr.as_str() == "items"
                    && matches!(tuple.elts.last(), Some(Expr::Name(name)) if name.id == part.id)
            }
            _ => false,
        };
        let name = match &*method.value {
            Expr::Name(it) => it.id.as_str(),
            Expr::Attribute(it) => it.attr.as_str(),
            _ => "",
        }
        .to_ascii_lowercase();
        is_last && !["model", "net", "module", "optim", "layer", "metric"].iter().any(|it| name.contains(it))
    }
}
