//! Whether code runs again and again, and how that is known.

use super::Context;
use crate::{
    facts::{Hook, Keep, Position},
    flow::value::{Class, FileId, Value},
    names::{FunctionId, LoopId, LoopNode},
    syntax::{
        ast::{self, Expr},
        int_literal,
    },
};

/// Loops over fewer literal items than this do not accumulate.
const FEW: usize = 9;

/// Why code runs again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repetition {
    /// In this loop over data, steps or epochs.
    Data(LoopId),
    /// In this loop of unknown length.
    Loop(LoopId),
    /// Its function is called in a loop.
    Called,
    /// Its function is registered as a hook.
    Hook(Hook),
    /// Its function is one that a framework calls: `forward`, `training_step`, `__getitem__`.
    Framework,
}

/// How often a loop goes round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounds {
    /// Over batches, steps, epochs: as long as the program runs.
    Data,
    /// A fixed small number.
    Few,
    /// Over layers, heads, keys: the parts of something.
    Parts,
    Unknown,
}

impl<'a> Context<'a> {
    /// Whether what is kept is kept again and again.
    pub(crate) fn repetition(&self, keep: &Keep<'a>) -> Option<Repetition> {
        let mut found = None;
        if let Some(outlived) = keep.outlived_loop {
            let inner = self.names.loops_from(keep.at.in_loop);
            let all: Vec<LoopId> = inner.collect();
            let until = all.iter().position(|it| *it == outlived).unwrap_or(0);
            for id in all.iter().take(until + 1) {
                match self.rounds(*id) {
                    Rounds::Data => return Some(Repetition::Data(*id)),
                    Rounds::Unknown => found = found.or(Some(Repetition::Loop(*id))),
                    Rounds::Few | Rounds::Parts => {}
                }
            }
        }
        if keep.outlives_call {
            return self.repetition_of_function(keep.at.function).or(found);
        }
        found
    }

    /// Whether code at a place runs again and again.
    pub(crate) fn repetition_at(&self, at: &Position<'a>) -> Option<Repetition> {
        let mut found = None;
        for id in self.names.loops_from(at.in_loop) {
            match self.rounds(id) {
                Rounds::Data => return Some(Repetition::Data(id)),
                Rounds::Unknown => found = found.or(Some(Repetition::Loop(id))),
                Rounds::Few | Rounds::Parts => {}
            }
        }
        found.or_else(|| self.repetition_of_function(at.function))
    }

    /// Whether a function runs again and again.
    pub(crate) fn repetition_of_function(&self, function: FunctionId) -> Option<Repetition> {
        self.repeats(self.file, function, 5)
    }

    fn repeats(&self, file: FileId, function: FunctionId, hops: u32) -> Option<Repetition> {
        let hops = hops.checked_sub(1)?;
        if file != self.file || function == FunctionId::MODULE {
            return None;
        }
        let own = self.names.function(function);
        if let Some(hook) = self.facts.functions.get(function.0 as usize).and_then(|it| it.hook) {
            return Some(Repetition::Hook(hook));
        }
        if let Some(class) = own.class
            && self.is_called_by_framework(class, own.name)
        {
            return Some(Repetition::Framework);
        }
        if own.name.is_empty() || own.name == "__init__" {
            return None;
        }
        for caller in self.project.callers(own.name) {
            let is_meant = caller.callee == Some((file, function));
            if !is_meant {
                continue;
            }
            if caller.file == self.file {
                let in_loop = self
                    .names
                    .loops_from(caller.in_loop)
                    .any(|id| matches!(self.rounds(id), Rounds::Data | Rounds::Unknown));
                if in_loop {
                    return Some(Repetition::Called);
                }
                if caller.function != function && self.repeats(file, caller.function, hops).is_some() {
                    return Some(Repetition::Called);
                }
            } else if caller.in_loop.is_some() {
                return Some(Repetition::Called);
            }
        }
        None
    }

    fn is_called_by_framework(&self, class: crate::names::ClassId, method: &str) -> bool {
        let bases = self.project.foreign_bases(&Class::Project(self.file, class));
        let has_base = |names: &[&str]| {
            bases.iter().any(|base| names.contains(&base.rsplit('.').next().unwrap_or(base)))
        };
        match method {
            "forward" => self.is_module_class(&Class::Project(self.file, class)) || has_base(&["Function"]),
            "training_step"
            | "validation_step"
            | "test_step"
            | "predict_step"
            | "on_train_batch_end"
            | "on_validation_batch_end"
            | "on_test_batch_end"
            | "on_train_batch_start"
            | "on_train_epoch_end"
            | "on_validation_epoch_end" => has_base(&["LightningModule", "Callback", "LightningDataModule"]),
            "__getitem__" | "__iter__" => has_base(&["Dataset", "IterableDataset", "Sampler", "MapDataset"]),
            "on_step_end" | "on_log" | "on_evaluate" | "on_epoch_end" | "on_substep_end" => {
                has_base(&["TrainerCallback", "Callback"])
            }
            _ => false,
        }
    }

    /// How often a loop goes round.
    pub(crate) fn rounds(&self, id: LoopId) -> Rounds {
        let it = self.names.the_loop(id);
        if it.trains {
            return Rounds::Data;
        }
        let at_top = it.function == FunctionId::MODULE;
        match it.node {
            LoopNode::While(node) => match &*node.test {
                Expr::BooleanLiteral(_) | Expr::NumberLiteral(_) => Rounds::Data,
                test if mentions_word(test, DATA) => Rounds::Data,
                _ => Rounds::Unknown,
            },
            LoopNode::For(_) | LoopNode::Comprehension(_) => {
                let Some(iterable) = it.node.iterable() else { return Rounds::Unknown };
                match self.rounds_over(it.function, iterable) {
                    // The loops of a script are its run.
                    Rounds::Unknown if at_top && is_range(iterable) => Rounds::Data,
                    rounds => rounds,
                }
            }
        }
    }

    fn rounds_over(&self, function: FunctionId, iterable: &'a Expr) -> Rounds {
        match iterable {
            Expr::List(ast::ExprList { elts, .. }) | Expr::Tuple(ast::ExprTuple { elts, .. })
                if elts.len() < FEW =>
            {
                return Rounds::Few;
            }
            Expr::Call(call) => {
                let name = match &*call.func {
                    Expr::Name(it) => it.id.as_str(),
                    Expr::Attribute(it) => it.attr.as_str(),
                    _ => "",
                };
                match (name, call.arguments.args.first()) {
                    ("range", Some(_)) => return rounds_of_range(&call.arguments.args),
                    (
                        "enumerate" | "tqdm" | "trange" | "track" | "iter" | "reversed" | "sorted" | "list",
                        Some(first),
                    ) => {
                        return self.rounds_over(function, first);
                    }
                    ("zip", Some(_)) => {
                        let all: Vec<_> =
                            call.arguments.args.iter().map(|it| self.rounds_over(function, it)).collect();
                        return [Rounds::Few, Rounds::Parts, Rounds::Data]
                            .into_iter()
                            .find(|it| all.contains(it))
                            .unwrap_or(Rounds::Unknown);
                    }
                    (
                        "parameters" | "named_parameters" | "modules" | "named_modules" | "children"
                        | "named_children" | "keys" | "values" | "items" | "chunk" | "split" | "unbind",
                        _,
                    ) => return Rounds::Parts,
                    _ => {}
                }
            }
            _ => {}
        }
        if let Some(value) = self.value_of_name(function, iterable) {
            match value {
                Value::Object(Class::External(path)) if path.ends_with("DataLoader") => return Rounds::Data,
                Value::Object(class) if self.is_module_class(class) => return Rounds::Parts,
                Value::Group(group) if !group.parts.is_empty() && group.parts.len() < FEW => {
                    return Rounds::Few;
                }
                _ => {}
            }
        }
        if mentions_word(iterable, DATA) {
            Rounds::Data
        } else if mentions_word(iterable, PARTS) {
            Rounds::Parts
        } else {
            Rounds::Unknown
        }
    }

    /// What a name or attribute of `self` holds in the end.
    pub(crate) fn value_of_name(&self, function: FunctionId, expr: &'a Expr) -> Option<&'a Value> {
        match expr {
            Expr::Name(it) => {
                let scope = self.names.scope_of(self.scope(function), it.id.as_str())?;
                self.facts.names.get(&(self.names.scope(scope).function, it.id.as_str()))
            }
            Expr::Attribute(it) => {
                let class = self.class_around(function)?;
                let Expr::Name(object) = &*it.value else { return None };
                let is_receiver = self
                    .names
                    .functions_from(function)
                    .any(|id| self.names.function(id).receiver() == Some(object.id.as_str()));
                is_receiver.then(|| self.facts.attributes.get(&(class, it.attr.as_str()))).flatten()
            }
            _ => None,
        }
    }
}

const DATA: &[&str] = &[
    "loader",
    "dataloader",
    "loaders",
    "dl",
    "batches",
    "batch",
    "dataset",
    "datasets",
    "epoch",
    "epochs",
    "step",
    "steps",
    "iteration",
    "iterations",
    "iters",
    "iter",
    "episodes",
    "episode",
    "samples",
    "requests",
    "frames",
    "stream",
    "queue",
    "images",
    "sentences",
    "documents",
    "prompts",
    "videos",
    "minibatches",
    "timesteps",
    "rollouts",
    "data",
    "examples",
];

const PARTS: &[&str] = &[
    "layer",
    "layers",
    "blocks",
    "block",
    "heads",
    "stages",
    "modules",
    "depth",
    "levels",
    "branches",
    "convs",
    "keys",
    "params",
    "parameters",
    "scales",
    "fields",
    "names",
    "attention",
    "experts",
    "groups",
    "dims",
    "devices",
    "axes",
    "anchors",
    "channels",
    "weights",
    "chunks",
    "splits",
    "views",
];

/// Whether an identifier in the expression has one of these words in it: `val_loader`, `numEpochs`.
fn mentions_word(expr: &Expr, words: &[&str]) -> bool {
    crate::syntax::mentions(expr, &|it| {
        let identifier = match it {
            Expr::Name(it) => it.id.as_str(),
            Expr::Attribute(it) => it.attr.as_str(),
            _ => return false,
        };
        words_of(identifier).iter().any(|it| words.contains(&it.as_str()))
    })
}

/// The words of an identifier, in lower case.
pub(super) fn words_of(identifier: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in identifier.chars() {
        if c == '_' || (c.is_uppercase() && was_lower) {
            words.push(String::new());
        }
        was_lower = c.is_lowercase();
        if c.is_alphabetic()
            && let Some(last) = words.last_mut()
        {
            last.extend(c.to_lowercase());
        }
    }
    words
}

fn is_range(expr: &Expr) -> bool {
    matches!(expr, Expr::Call(call) if matches!(&*call.func, Expr::Name(it) if matches!(it.id.as_str(), "range" | "trange")))
}

fn rounds_of_range(args: &[Expr]) -> Rounds {
    let (start, stop) = match args {
        [stop] => (Some(0), int_literal(stop)),
        [start, stop, ..] => (int_literal(start), int_literal(stop)),
        [] => return Rounds::Unknown,
    };
    match (start, stop) {
        (Some(start), Some(stop)) => {
            if stop.saturating_sub(start) < FEW as i64 {
                Rounds::Few
            } else {
                Rounds::Unknown
            }
        }
        _ if args.iter().any(|it| mentions_word(it, DATA)) => Rounds::Data,
        _ if args.iter().any(|it| mentions_word(it, PARTS)) => Rounds::Parts,
        _ => Rounds::Unknown,
    }
}
