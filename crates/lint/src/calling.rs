//! Who calls what in a project: whether functions run again and again, and whether autograd records in them.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::{
    context::{Context, Rounds},
    facts::{Callee, Grad, Hook},
    flow::value::{FileId, Value},
    names::FunctionId,
};

/// A function of the project.
type Key = (FileId, FunctionId);

/// The calls of all files.
#[derive(Default)]
pub(crate) struct Calling<'a> {
    grad: FxHashMap<Key, Grad>,
    repeated: FxHashMap<Key, Repeated>,
    /// Names under which something is called that is not understood.
    unknown: FxHashSet<&'a str>,
    known: FxHashSet<Key>,
}

/// Why a function runs again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeated {
    /// It is called in a loop, or by a function that runs again and again.
    Called,
    /// It is registered as a hook.
    Hook(Hook),
    /// A framework calls it at every step.
    Framework,
}

/// What one file says: its functions, and whom they call.
pub(crate) struct FileCalls<'a> {
    file: FileId,
    functions: Vec<Own<'a>>,
    calls: Vec<Edge<'a>>,
}

struct Own<'a> {
    name: &'a str,
    /// What is known without its callers.
    grad: Option<Grad>,
    repeated: Option<Repeated>,
    /// `__init__`, whose effects end with the object.
    is_constructor: bool,
}

struct Edge<'a> {
    caller: FunctionId,
    callee: Option<Key>,
    name: &'a str,
    grad: Grad,
    in_loop: bool,
}

impl<'a> FileCalls<'a> {
    /// Reads the calls of a file.
    pub(crate) fn of(context: &Context<'a>) -> Self {
        let facts = context.facts;
        let functions = (0..context.names.functions.len() as u32)
            .map(|index| {
                let id = FunctionId(index);
                let function = context.names.function(id);
                let known = &facts.functions[index as usize];
                let is_local = function.name.is_empty()
                    || function.class.is_none() && function.parent.is_some_and(|it| it != FunctionId::MODULE);
                let grad = known.decorated.or(match id {
                    FunctionId::MODULE => Some(Grad::On),
                    _ if known.has_backward => Some(Grad::On),
                    _ if context.is_evaluated_by_framework(id) => Some(Grad::Off),
                    // Passed around: called by who knows whom.
                    _ if is_local && !context.is_called_by_name(id) => Some(Grad::Unknown),
                    _ => None,
                });
                let repeated = known
                    .hook
                    .map(Repeated::Hook)
                    .or_else(|| context.is_called_by_framework(id).then_some(Repeated::Framework));
                Own { name: function.name, grad, repeated, is_constructor: function.name == "__init__" }
            })
            .collect();
        let calls = facts
            .calls
            .iter()
            .filter_map(|call| {
                let name = match &call.callee {
                    Callee::Method { name, .. } => *name,
                    Callee::Object(Value::Object(_)) => "forward",
                    Callee::Class(_) => "__init__",
                    Callee::External(_) => return None,
                    _ => call.last_name(),
                };
                let callee = context.project.called(&call.callee);
                let in_loop = context
                    .names
                    .loops_from(call.at.in_loop)
                    .any(|id| matches!(context.rounds(id), Rounds::Data | Rounds::Unknown));
                let is_understood = callee.is_some() || !name.is_empty();
                is_understood.then_some(Edge {
                    caller: call.at.function,
                    callee,
                    name,
                    grad: call.at.grad,
                    in_loop,
                })
            })
            .collect();
        Self { file: context.file, functions, calls }
    }
}

impl<'a> Calling<'a> {
    /// Puts the calls of all files together; they are in the order of their numbers.
    pub(crate) fn of(files: &[FileCalls<'a>]) -> Self {
        let mut callers: FxHashMap<Key, Vec<(Key, Grad, bool)>> = FxHashMap::default();
        let mut unknown = FxHashSet::default();
        for file in files {
            for edge in &file.calls {
                match edge.callee {
                    Some(callee) => {
                        callers.entry(callee).or_default().push((
                            (file.file, edge.caller),
                            edge.grad,
                            edge.in_loop,
                        ));
                    }
                    None => {
                        unknown.insert(edge.name);
                    }
                }
            }
        }
        let known = callers.keys().copied().collect();
        let mut calling = Self { unknown, known, repeated: repeated(files), ..Self::default() };
        let mut search = Search { files, callers: &callers, visiting: FxHashSet::default() };
        for file in files {
            for index in 0..file.functions.len() as u32 {
                let key = (file.file, FunctionId(index));
                search.grad(key, &mut calling, 0);
            }
        }
        calling
    }

    /// Whether autograd records in a function, as far as its decorators, its own backward passes and all its callers tell.
    pub(crate) fn grad(&self, file: FileId, function: FunctionId) -> Grad {
        self.grad.get(&(file, function)).copied().unwrap_or(Grad::Unknown)
    }

    /// Whether a function runs again and again.
    pub(crate) fn repeated(&self, file: FileId, function: FunctionId) -> Option<Repeated> {
        self.repeated.get(&(file, function)).copied()
    }

    /// Whether anything in the project is seen to call a function.
    pub(crate) fn is_called(&self, file: FileId, function: FunctionId) -> bool {
        self.known.contains(&(file, function))
    }
}

struct Search<'s, 'a> {
    files: &'s [FileCalls<'a>],
    callers: &'s FxHashMap<Key, Vec<(Key, Grad, bool)>>,
    visiting: FxHashSet<Key>,
}

/// How far callers of callers are followed.
const HOPS: u32 = 40;

impl Search<'_, '_> {
    fn own(&self, key: Key) -> Option<&Own<'_>> {
        self.files.get(key.0.0 as usize)?.functions.get(key.1.0 as usize)
    }

    fn grad(&mut self, key: Key, calling: &mut Calling<'_>, hops: u32) -> Grad {
        if let Some(grad) = calling.grad.get(&key) {
            return *grad;
        }
        let Some(own) = self.own(key) else { return Grad::Unknown };
        if let Some(grad) = own.grad {
            calling.grad.insert(key, grad);
            return grad;
        }
        let is_called_by_others = calling.unknown.contains(own.name);
        if hops > HOPS || !self.visiting.insert(key) {
            return Grad::AsCaller;
        }
        let mut grads = Vec::new();
        for (caller, grad, _) in self.callers.get(&key).into_iter().flatten() {
            let grad = match grad {
                Grad::AsCaller => self.grad(*caller, calling, hops + 1),
                grad => *grad,
            };
            // A function that calls itself says nothing about how it was called first.
            if grad != Grad::AsCaller {
                grads.push(grad);
            }
        }
        self.visiting.remove(&key);
        let grad = if grads.contains(&Grad::Off) {
            Grad::Off
        } else if !grads.is_empty() && grads.iter().all(|it| *it == Grad::On) && !is_called_by_others {
            Grad::On
        } else {
            Grad::Unknown
        };
        calling.grad.insert(key, grad);
        grad
    }
}

/// The functions that run again and again: those of which it is known, those that are called in a loop, and all that these call.
fn repeated(files: &[FileCalls<'_>]) -> FxHashMap<Key, Repeated> {
    let own = |key: Key| files.get(key.0.0 as usize).and_then(|it| it.functions.get(key.1.0 as usize));
    let mut callees: FxHashMap<Key, Vec<Key>> = FxHashMap::default();
    let mut repeated = FxHashMap::default();
    let mut waiting = Vec::new();
    for file in files {
        for (index, function) in file.functions.iter().enumerate() {
            if let Some(reason) = function.repeated {
                let key = (file.file, FunctionId(index as u32));
                repeated.insert(key, reason);
                waiting.push(key);
            }
        }
        for edge in &file.calls {
            let Some(callee) = edge.callee else { continue };
            if edge.in_loop {
                waiting.push(callee);
            }
            // What the module itself does it does once.
            if edge.caller != FunctionId::MODULE {
                callees.entry((file.file, edge.caller)).or_default().push(callee);
            }
        }
    }
    let mut seen = FxHashSet::default();
    while let Some(key) = waiting.pop() {
        let is_known = repeated.contains_key(&key);
        if !is_known && own(key).is_none_or(|it| it.is_constructor) || !seen.insert(key) {
            continue;
        }
        repeated.entry(key).or_insert(Repeated::Called);
        waiting.extend(callees.get(&key).into_iter().flatten());
    }
    repeated
}
