//! What methods put of their parameters into their object: what callers must know who pass a tensor.

use rustc_hash::FxHashMap;

use crate::{
    facts::{Branch, Facts, Grad, How, Keep, Root},
    names::{Definition, FunctionId, Names, ScopeId, Usage, method_name},
    syntax::{
        ast::{Expr, Operator},
        mentions,
    },
};

/// How far names are followed to what they were given.
const HOPS: u32 = 3;

/// A parameter that a method adds to something of its object, with the graph that comes with it.
#[derive(Clone, Debug)]
pub(crate) struct KeptParameter {
    pub(crate) name: String,
    /// Its position among the arguments; the object itself is none.
    pub(crate) position: usize,
    /// The attribute that it is added to.
    pub(crate) attribute: String,
}

/// The parameters that the methods of a file keep.
pub(crate) fn kept_parameters(
    names: &Names<'_>,
    facts: &Facts<'_>,
) -> FxHashMap<FunctionId, Vec<KeptParameter>> {
    let mut kept: FxHashMap<FunctionId, Vec<KeptParameter>> = FxHashMap::default();
    for keep in &facts.keeps {
        let Root::SelfAttribute(_, attribute) = keep.root else { continue };
        let id = keep.at.function;
        let function = names.function(id);
        let Some(receiver) = function.receiver() else { continue };
        let is_own = mentions(keep.target, &|it| matches!(it, Expr::Name(it) if it.id.as_str() == receiver));
        if !is_own || function.name == "__init__" || !grows(names, keep, attribute) {
            continue;
        }
        let parameters = function.parameters().skip(1).map(|it| it.parameter.name.as_str());
        for (position, name) in parameters.enumerate() {
            if !carries(names, function.scope, keep.kept, name, HOPS) {
                continue;
            }
            let all = kept.entry(id).or_default();
            if !all.iter().any(|it| it.position == position) {
                all.push(KeptParameter { name: name.to_owned(), position, attribute: attribute.to_owned() });
            }
        }
    }
    kept
}

/// Whether a keep adds something at each call, and nothing takes it out again.
fn grows(names: &Names<'_>, keep: &Keep<'_>, attribute: &str) -> bool {
    let adds = match keep.how {
        How::Append | How::Extend | How::Accumulate | How::Concatenate => true,
        // A place for each key is a store, not a total: that is the matter of other rules.
        How::SetItem | How::Update | How::Chain | How::SetAttribute => false,
    };
    let is_bounded = keep.before.as_group().is_some_and(|it| it.is_bounded);
    let records = matches!(keep.at.grad, Grad::On | Grad::AsCaller);
    adds && !is_bounded && records && !depends_on_type(keep) && !is_emptied(names, keep, attribute)
}

/// Whether it depends on the type of the value: `if isinstance(value, Tensor): … else: …` may keep numbers only.
fn depends_on_type(keep: &Keep<'_>) -> bool {
    let Some(Branch::If(test)) = keep.at.branch else { return false };
    mentions(test, &|it| match it {
        Expr::Name(it) => matches!(it.id.as_str(), "isinstance" | "hasattr" | "is_tensor" | "type"),
        Expr::Attribute(it) => it.attr.as_str() == "is_tensor",
        _ => false,
    })
}

/// Whether what is put into the attribute is taken out one by one, or given up where it is put in.
fn is_emptied(names: &Names<'_>, keep: &Keep<'_>, attribute: &str) -> bool {
    names.attributes.get(attribute).into_iter().flatten().any(|it| match it.usage {
        Usage::Method(call) | Usage::ItemMethod(call) => match method_name(call) {
            "pop" | "popleft" | "popitem" | "remove" | "discard" => true,
            "clear" => it.function == keep.at.function,
            _ => false,
        },
        Usage::ItemDeleted => true,
        Usage::ItemStored(item) => matches!(&*item.slice, Expr::Slice(_)),
        Usage::Stored => {
            it.function == keep.at.function && keep.how != How::Accumulate && keep.how != How::Concatenate
        }
        _ => false,
    })
}

/// Whether an expression is a parameter, or is computed from it by what keeps its graph.
fn carries(names: &Names<'_>, scope: ScopeId, expr: &Expr, parameter: &str, hops: u32) -> bool {
    let goes_on = |it: &Expr| carries(names, scope, it, parameter, hops);
    match expr {
        Expr::Name(it) => {
            let name = it.id.as_str();
            match names.scope(scope).names.get(name).map(|it| it.definitions.as_slice()) {
                // What is given another value may have been made a number.
                Some([Definition::Parameter(_)]) => name == parameter,
                Some([Definition::Value(value, _)]) => {
                    hops > 0 && carries(names, scope, value, parameter, hops - 1)
                }
                _ => false,
            }
        }
        Expr::BinOp(it) => it.op != Operator::Mod && (goes_on(&it.left) || goes_on(&it.right)),
        Expr::UnaryOp(it) => goes_on(&it.operand),
        Expr::Subscript(it) => goes_on(&it.value),
        Expr::List(it) => it.elts.iter().any(goes_on),
        Expr::Tuple(it) => it.elts.iter().any(goes_on),
        Expr::Call(it) => match &*it.func {
            Expr::Attribute(method) => keeps_graph(method.attr.as_str()) && goes_on(&method.value),
            _ => false,
        },
        _ => false,
    }
}

/// Whether a method of tensors gives what still has the graph.
fn keeps_graph(name: &str) -> bool {
    matches!(
        name,
        "cpu"
            | "cuda"
            | "to"
            | "clone"
            | "float"
            | "double"
            | "half"
            | "sum"
            | "mean"
            | "view"
            | "reshape"
            | "flatten"
            | "squeeze"
            | "unsqueeze"
            | "contiguous"
    )
}
