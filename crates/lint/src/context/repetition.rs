//! Whether code runs again and again, and how that is known.

use super::Context;
use crate::{
    calling::Repeated,
    facts::{Hook, Keep, Position},
    flow::value::{Class, Value},
    names::{FunctionId, LoopId, LoopNode, Usage, method_name},
    syntax::{
        Ranged,
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
        Some(match self.calling.repeated(self.file, function)? {
            Repeated::Called => Repetition::Called,
            Repeated::Hook(hook) => Repetition::Hook(hook),
            Repeated::Framework => Repetition::Framework,
        })
    }

    /// Whether a function is called by its name where it is defined, rather than passed on.
    pub(crate) fn is_called_by_name(&self, function: FunctionId) -> bool {
        let own = self.names.function(function);
        let Some(parent) = own.parent else { return true };
        let scope = self.names.function(parent).scope;
        self.names.scope(scope).names.get(own.name).is_some_and(|it| {
            !it.uses.is_empty() && it.uses.iter().all(|it| matches!(it.usage, Usage::Called(_)))
        })
    }

    /// Whether a function is one that a framework calls at every step, or for each request.
    pub(crate) fn is_called_by_framework(&self, function: FunctionId) -> bool {
        if self.is_route(function) || self.is_handler(function) {
            return true;
        }
        let own = self.names.function(function);
        let (Some(class), method) = (own.class, own.name) else { return false };
        let has_base = |names: &[&str]| self.derives_from(class, names);
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
            // Trainers of Hugging Face's libraries.
            "compute_loss" | "prediction_step" => {
                let bases = self.project.foreign_bases(&Class::Project(self.file, class));
                bases.iter().any(|base| base.rsplit('.').next().is_some_and(|it| it.ends_with("Trainer")))
            }
            _ => false,
        }
    }

    /// Whether a method is one that Lightning calls with gradients turned off, as its loops over data for validation, test and
    /// prediction do: with all their hooks, those at the end of an epoch, too.
    pub(crate) fn is_evaluated_by_framework(&self, function: FunctionId) -> bool {
        let own = self.names.function(function);
        let Some(class) = own.class else { return false };
        let is_hook = ["validation", "test", "predict"].iter().any(|stage| {
            let rest = own.name.strip_prefix("on_").unwrap_or(own.name).strip_prefix(stage);
            rest.is_some_and(|it| {
                matches!(
                    it,
                    "_step"
                        | "_batch_start"
                        | "_batch_end"
                        | "_epoch_start"
                        | "_epoch_end"
                        | "_start"
                        | "_end"
                )
            })
        });
        is_hook && self.derives_from(class, &["LightningModule", "Callback", "LightningDataModule"])
    }

    /// Whether a loop counts its rounds rather than goes over data.
    pub(crate) fn is_over_range(&self, id: LoopId) -> bool {
        self.names.the_loop(id).node.iterable().is_some_and(is_range)
    }

    /// How often a loop goes round.
    pub(crate) fn rounds(&self, id: LoopId) -> Rounds {
        match self.rounds.get(id.index()) {
            Some(known) => *known.get_or_init(|| self.rounds_of(id)),
            None => Rounds::Unknown,
        }
    }

    fn rounds_of(&self, id: LoopId) -> Rounds {
        let it = self.names.the_loop(id);
        if it.trains {
            return Rounds::Data;
        }
        let at_top = it.function == FunctionId::MODULE;
        match it.node {
            LoopNode::While(node) => match &*node.test {
                Expr::BooleanLiteral(_) | Expr::NumberLiteral(_) if self.is_run(it.function) => Rounds::Data,
                test if mentions_word(test, DATA) => Rounds::Data,
                test if self.is_run(it.function) && mentions_word(test, STEPS) => Rounds::Data,
                _ => Rounds::Unknown,
            },
            LoopNode::For(_) | LoopNode::Comprehension(_) => {
                let Some(iterable) = it.node.iterable() else { return Rounds::Unknown };
                match self.rounds_over(it.function, iterable) {
                    // The outermost loops of a script are its run.
                    Rounds::Unknown if at_top && it.parent.is_none() && is_range(iterable) => Rounds::Data,
                    Rounds::Unknown if self.brings_batches(id) => Rounds::Data,
                    rounds => rounds,
                }
            }
        }
    }

    /// Whether each round moves a part of what it is about to a device, for a network: `for x, y in val: net(x.cuda())`.
    fn brings_batches(&self, id: LoopId) -> bool {
        let it = self.names.the_loop(id);
        let Some(Expr::Tuple(target)) = it.node.target() else { return false };
        let scope = self.names.scope(self.scope(it.function));
        let is_moved = |name: &str| {
            let is_weight = words_of(name).iter().any(|it| WEIGHTS.contains(&it.as_str()));
            !is_weight
                && scope.names.get(name).is_some_and(|entry| {
                    entry.uses.iter().any(|one| match one.usage {
                        Usage::Method(call) => {
                            matches!(method_name(call), "cuda" | "to")
                                && it.node.range().contains_range(call.range())
                        }
                        _ => false,
                    })
                })
        };
        !self.is_part_of_model(it.function)
            && self.calls_within(it.node.range()).any(|call| self.is_forward(call))
            && target.elts.iter().any(|it| matches!(it, Expr::Name(name) if is_moved(name.id.as_str())))
    }

    /// Whether a function is a method of a module, or is in one.
    pub(crate) fn is_part_of_model(&self, function: FunctionId) -> bool {
        self.class_around(function).is_some_and(|it| self.is_module_class(&Class::Project(self.file, it)))
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
                    ("range", Some(_)) => {
                        return rounds_of_range(&call.arguments.args, self.is_run(function));
                    }
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
        if mentions_word(iterable, DATA) || self.is_run(function) && mentions_word(iterable, STEPS) {
            Rounds::Data
        } else if mentions_word(iterable, PARTS) {
            Rounds::Parts
        } else {
            Rounds::Unknown
        }
    }

    /// Whether a function is a program's run rather than a part of one step: the module itself, `main`, `train`, `evaluate`.
    fn is_run(&self, function: FunctionId) -> bool {
        const RUNS: &[&str] = &[
            "main", "train", "fit", "run", "eval", "valid", "test", "predict", "infer", "loop", "bench",
            "collect",
        ];
        let name = self.names.function(function).name;
        function == FunctionId::MODULE
            || !self.is_part_of_model(function)
                && RUNS.iter().any(|it| name.trim_start_matches('_').starts_with(it))
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

/// Words for what is read from beginning to end, wherever they stand.
const DATA: &[&str] = &[
    "loader",
    "loaders",
    "dataloader",
    "dataloaders",
    "dl",
    "batches",
    "minibatches",
    "dataset",
    "datasets",
    "epoch",
    "epochs",
    "episode",
    "episodes",
    "rollouts",
];

/// Words for rounds of a run; in a function of a model they are as likely the parts of one step.
const STEPS: &[&str] = &[
    "batch",
    "step",
    "steps",
    "iteration",
    "iterations",
    "iters",
    "iter",
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
    "timesteps",
    "data",
    "examples",
];

/// Words for what is moved to a device once.
const WEIGHTS: &[&str] = &[
    "param",
    "params",
    "parameter",
    "weight",
    "weights",
    "buffer",
    "layer",
    "module",
    "model",
    "net",
    "state",
    "k",
    "v",
    "key",
    "value",
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
        words_of(identifier).iter().any(|it| {
            // `trainloader`
            words.contains(&it.as_str()) || it.ends_with("loader") && words.contains(&"loader")
        })
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

/// Whether it is `range(…)`, or a bar of progress over one.
fn is_range(expr: &Expr) -> bool {
    let Expr::Call(call) = expr else { return false };
    let name = match &*call.func {
        Expr::Name(it) => it.id.as_str(),
        Expr::Attribute(it) => it.attr.as_str(),
        _ => return false,
    };
    match name {
        "range" | "trange" => true,
        "tqdm" | "enumerate" | "track" => call.arguments.args.first().is_some_and(is_range),
        _ => false,
    }
}

fn rounds_of_range(args: &[Expr], is_run: bool) -> Rounds {
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
        // A function that splits its input counts batches, too; what it gathers are the parts of one result.
        _ if !is_run && args.iter().any(|it| mentions_word(it, &["batches", "minibatches"])) => {
            Rounds::Unknown
        }
        _ if args.iter().any(|it| mentions_word(it, DATA)) => Rounds::Data,
        _ if is_run && args.iter().any(|it| mentions_word(it, STEPS)) => Rounds::Data,
        _ if args.iter().any(|it| mentions_word(it, PARTS)) => Rounds::Parts,
        _ => Rounds::Unknown,
    }
}
