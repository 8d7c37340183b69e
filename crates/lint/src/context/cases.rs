//! What kind of retention a [`Keep`] is. Each is at most one, so that no two rules report the same line for the same reason.

use super::{Context, Release, Repetition, repetition::Rounds};
use crate::{
    diagnostic::Severity,
    facts::{Hook, How, Keep, Root},
    flow::value::{Graph, Size, Value},
    names::{Definition, FunctionId, LoopId},
    syntax::{TextRange, ast::Expr, is_same_place, mentions},
};

/// A keep that matters, and why.
#[derive(Clone, Copy)]
pub(crate) struct Case<'a> {
    pub(crate) keep: &'a Keep<'a>,
    pub(crate) kind: Kind,
    pub(crate) graph: Graph,
    pub(crate) release: Release,
    pub(crate) repetition: Repetition,
    pub(crate) size: Size,
}

/// The kinds of retention, each with a rule of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A running total of attached tensors.
    Total,
    /// A list of attached tensors.
    List,
    /// A list of attached tensors that were moved or copied, which does not cut the graph.
    Copies,
    /// A dict of attached tensors, or of lists or totals of them.
    Dict,
    /// A tensor that grows by concatenation.
    Concatenation,
    /// Something beside the loss, which its backward does not reach.
    Auxiliary,
    /// Something whose graph `retain_graph=True` keeps.
    RetainedGraph,
    /// A state that is passed from step to step.
    Carried,
    /// A state of a module that goes on from itself.
    ModuleState,
    /// What goes through a module, kept by a hook on it.
    HookOutput,
    /// What goes backward through a module, kept by a hook on it.
    HookGradient,
    /// Data without a graph, gathered on the device.
    DeviceData,
}

impl Case<'_> {
    /// How bad it is, by what was measured: a graph that nothing frees is the worst, data comes next, and of a graph that
    /// a backward pass has freed only nodes on the host stay.
    pub(crate) fn severity(&self) -> Severity {
        let is_sure = self.graph == Graph::Attached && !matches!(self.repetition, Repetition::Loop(_));
        match (self.release, self.size) {
            (Release::Kept, _) if is_sure => Severity::Error,
            (Release::Kept, _) => Severity::Warning,
            (Release::Released, Size::Array) if !matches!(self.repetition, Repetition::Loop(_)) => {
                Severity::Warning
            }
            _ => Severity::Info,
        }
    }

    /// Whether it is proven that what is kept is a tensor, so that a method of tensors can be called on it.
    pub(crate) fn is_proven(&self) -> bool {
        self.graph == Graph::Attached && matches!(self.keep.value, Value::Tensor(_))
    }
}

impl<'a> Context<'a> {
    /// The keeps that matter, of one kind.
    pub(crate) fn cases(&self, kind: Kind) -> impl Iterator<Item = Case<'a>> {
        let of_kind: Vec<Case<'a>> = self.all_cases().iter().filter(|it| it.kind == kind).copied().collect();
        of_kind.into_iter()
    }

    /// Whether a keep within a function matters by itself, so that a rule reports its line.
    pub(crate) fn has_case_in(&self, function: FunctionId) -> bool {
        self.all_cases().iter().any(|it| it.keep.at.function == function)
    }

    /// Whether a keep in a part of the source matters by itself.
    pub(crate) fn has_case_within(&self, range: TextRange) -> bool {
        self.all_cases().iter().any(|it| range.contains_range(it.keep.range))
    }

    fn all_cases(&self) -> &[Case<'a>] {
        self.cases.get_or_init(|| self.facts.keeps.iter().filter_map(|it| self.case(it)).collect())
    }

    fn case(&self, keep: &'a Keep<'a>) -> Option<Case<'a>> {
        let tensor = keep.value.tensor_within()?;
        let graph = self.graph(&keep.value, &keep.at);
        // `x[mask] = y` may be a tensor's.
        if keep.how == How::SetItem && !matches!(keep.before, Value::Group(_)) {
            return None;
        }
        let repetition = self.repetition(keep)?;
        // A list that is passed in may be gone after the call.
        let is_passed_in = matches!(self.definitions(keep.root), [Definition::Parameter(_)]);
        if is_passed_in && !matches!(repetition, Repetition::Data(_))
            || self.is_within_one_step(keep, repetition)
        {
            return None;
        }
        if self.is_bounded(keep) || Self::has_constant_key(keep) && keep.how == How::SetItem {
            return None;
        }
        // A parameter is where graphs begin; it has none of its own, and a copy of it is data.
        let graph = match (tensor.nodes.is_empty(), tensor.graph) {
            (true, Graph::Attached) if is_copy(keep.kept) => Graph::Detached,
            (true, _) => graph.min(Graph::Unknown),
            (false, _) => graph,
        };
        let release = self.release(&keep.value, &keep.at);
        let size = match tensor.size {
            Size::Unknown if self.is_output_of_model(keep) => Size::Array,
            size => size,
        };
        let kind = if graph >= Graph::Likely {
            self.kind_of_attached(keep, release, repetition)?
        } else {
            self.kind_of_data(keep, graph, repetition)?
        };
        Some(Case { keep, kind, graph, release, repetition, size })
    }

    /// Whether the target lives no longer than one call of a function that is a part of a step: the layers of a model, the tiles of an
    /// image, the parts of a loss are gathered in such lists, and go with them.
    fn is_within_one_step(&self, keep: &Keep<'a>, repetition: Repetition) -> bool {
        let function = keep.at.function;
        if keep.outlives_call || function == FunctionId::MODULE {
            return false;
        }
        !matches!(repetition, Repetition::Data(_))
            || self.is_part_of_model(function) && self.training_loop(keep.at.in_loop).is_none()
    }

    fn kind_of_attached(&self, keep: &Keep<'a>, release: Release, repetition: Repetition) -> Option<Kind> {
        match repetition {
            Repetition::Hook(Hook::Forward) if keep.how != How::SetAttribute => {
                return Some(Kind::HookOutput);
            }
            Repetition::Hook(Hook::Backward) => return Some(Kind::HookGradient),
            _ => {}
        }
        if self.reaches_backward(keep.root) && !matches!(keep.how, How::Chain) {
            return None;
        }
        let in_training_loop = self.training_loop(keep.at.in_loop).is_some();
        let retains = self.retains_graph(keep.at.function);
        match keep.how {
            How::Chain if self.is_state_of_module(keep) => {
                matches!(keep.kept, Expr::Call(_)).then_some(Kind::ModuleState)
            }
            How::Chain => {
                // What starts anew in each round of the loop that trains is carried within one step only.
                let outlives_training = self.training_loop(keep.at.in_loop).is_some_and(|trains| {
                    let whole = |id: LoopId| self.names.the_loop(id).node.range();
                    keep.outlived_loop.is_some_and(|it| whole(it).contains_range(whole(trains)))
                });
                let carries =
                    keep.carried.is_some() && outlives_training && matches!(keep.root, Root::Name(..));
                carries.then_some(Kind::Carried)
            }
            How::SetAttribute => None,
            How::Concatenate => Some(Kind::Concatenation),
            How::Accumulate if self.is_state_of_module(keep) => Some(Kind::ModuleState),
            _ if in_training_loop && retains && release == Release::Kept => Some(Kind::RetainedGraph),
            _ if in_training_loop
                && release == Release::Kept
                && self.is_single_backward(keep.at.function) =>
            {
                (!self.may_be_used_later(keep)).then_some(Kind::Auxiliary)
            }
            _ if self.trains(keep.at.function)
                && release == Release::Kept
                && self.may_be_used_later(keep) =>
            {
                None
            }
            How::Accumulate if keep.key.is_some() => Some(Kind::Dict),
            How::Accumulate => Some(Kind::Total),
            How::SetItem | How::Update => Some(Kind::Dict),
            How::Append | How::Extend => match (is_copy(keep.kept), keep.target) {
                (true, _) => Some(Kind::Copies),
                (false, Expr::Subscript(_)) => Some(Kind::Dict),
                (false, _) => Some(Kind::List),
            },
        }
    }

    fn kind_of_data(&self, keep: &Keep<'a>, graph: Graph, repetition: Repetition) -> Option<Kind> {
        let tensor = keep.value.tensor_within()?;
        let is_on_device = tensor.place != crate::flow::value::Place::Host;
        let is_large = matches!(tensor.size, Size::Array | Size::Unknown);
        if let Repetition::Hook(Hook::Forward) = repetition
            && keep.how != How::SetAttribute
        {
            return Some(Kind::HookOutput);
        }
        if let Repetition::Hook(Hook::Backward) = repetition {
            return Some(Kind::HookGradient);
        }
        if graph > Graph::Unknown || !is_on_device || !is_large {
            return None;
        }
        match keep.how {
            How::Concatenate if graph == Graph::Detached => Some(Kind::Concatenation),
            How::Append | How::Extend => Some(Kind::DeviceData),
            How::SetItem if self.is_keyed_by_round(keep, repetition) => Some(Kind::DeviceData),
            _ => None,
        }
    }

    /// Whether a network gave what is kept, and it is no loss: that is a number.
    fn is_output_of_model(&self, keep: &Keep<'a>) -> bool {
        let goes_backward = || match keep.kept {
            Expr::Name(it) => self.reaches_backward(Root::Name(keep.at.function, it.id.as_str())),
            _ => false,
        };
        !is_called_loss(keep.kept)
            && self.is_result_of(keep.at.function, keep.kept, &|it| self.is_forward(it))
            && !goes_backward()
    }

    /// Whether each round of the loop has a key of its own: `outputs[step] = y`.
    fn is_keyed_by_round(&self, keep: &Keep<'a>, repetition: Repetition) -> bool {
        let (Some(key), Repetition::Data(id)) = (keep.key, repetition) else { return false };
        let target = self.names.the_loop(id).node.target();
        target.is_some_and(|target| {
            mentions(key, &|it| {
                matches!(it, Expr::Name(_)) && mentions(target, &|own| is_same_place(own, it))
            })
        })
    }

    /// The innermost loop around that trains.
    pub(crate) fn training_loop(&self, innermost: Option<LoopId>) -> Option<LoopId> {
        self.names.loops_from(innermost).find(|it| self.names.the_loop(*it).trains)
    }

    /// Whether a backward pass in a function keeps the graph.
    pub(crate) fn retains_graph(&self, function: FunctionId) -> bool {
        self.calls_named("backward").any(|call| {
            call.at.function == function
                && call
                    .keyword("retain_graph")
                    .is_some_and(|it| crate::syntax::bool_literal(&it.value) == Some(true))
        })
    }

    /// Whether there is one backward pass in a function, of something that is understood.
    fn is_single_backward(&self, function: FunctionId) -> bool {
        let unknown = self.facts.functions.get(function.0 as usize).is_some_and(|it| it.has_unknown_backward);
        !unknown && self.calls_named("backward").filter(|it| it.at.function == function).count() == 1
    }

    /// Whether what is kept may be part of a loss that is made later: its elements are looked at where the training is.
    fn may_be_used_later(&self, keep: &Keep<'a>) -> bool {
        use crate::names::Usage;
        self.uses(keep.root).iter().any(|it| match it.usage {
            Usage::Iterated | Usage::Item | Usage::Returned | Usage::Gathered => true,
            Usage::Argument(call) => !is_report(&call.func),
            _ => false,
        })
    }

    /// Whether nothing but code in sight reads what is kept: no caller, no other method, no function that is not known to report only.
    pub(crate) fn is_read_here_only(&self, root: Root<'a>) -> bool {
        use crate::names::Usage;
        matches!(root, Root::Name(..))
            && !self.uses(root).iter().any(|it| match it.usage {
                Usage::Returned => true,
                Usage::Argument(call) => !is_report(&call.func),
                _ => false,
            })
    }

    fn is_state_of_module(&self, keep: &Keep<'a>) -> bool {
        let function = self.names.function(keep.at.function);
        let is_own = |it: &Expr| matches!(it, Expr::Name(it) if function.receiver() == Some(it.id.as_str()));
        // `batch.x = self.norm(batch.x)` is the batch's.
        matches!(keep.target, Expr::Attribute(it) if is_own(&it.value)) && function.name == "forward"
    }

    /// Whether the loop is one over data.
    pub(crate) fn is_over_data(&self, id: LoopId) -> bool {
        self.rounds(id) == Rounds::Data
    }
}

/// Whether a function only reports numbers: what it gets does not go into a loss.
fn is_report(func: &Expr) -> bool {
    let name = match func {
        Expr::Name(it) => it.id.as_str(),
        Expr::Attribute(it) => it.attr.as_str(),
        _ => "",
    };
    matches!(
        name,
        "len"
            | "print"
            | "float"
            | "sum"
            | "mean"
            | "max"
            | "min"
            | "plot"
            | "str"
            | "round"
            | "format"
            | "info"
            | "log"
            | "debug"
            | "array"
            | "average"
            | "median"
            | "std"
            | "save"
            | "write"
            | "append"
            | "tensor"
    )
}

/// Whether the expression copies or moves a tensor, which many take for a way to let go of its graph.
pub(crate) fn is_copy(expr: &Expr) -> bool {
    matches!(expr, Expr::Call(call) if matches!(
        &*call.func,
        Expr::Attribute(it) if matches!(it.attr.as_str(), "cpu" | "clone" | "to" | "float" | "half" | "double" | "contiguous")
    ))
}

/// Whether its name says that it is a loss, which is a single number as a rule.
pub(crate) fn is_called_loss(expr: &Expr) -> bool {
    mentions(expr, &|it| match it {
        Expr::Name(it) => it.id.as_str().contains("loss"),
        Expr::Attribute(it) => it.attr.as_str().contains("loss"),
        _ => false,
    })
}
