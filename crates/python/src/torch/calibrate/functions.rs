//! Where things lie in functions of the backward pass, and in what tensors have for it.

use super::super::class::Family;
use super::super::layout::{AutogradAt, BaseAt, Count, FunctionAt};
use super::{SEARCHED, Search};
use crate::own_memory::Memory;

impl Search {
    pub(super) fn function(&mut self) -> Option<FunctionAt> {
        let objects: Vec<_> = self.table("next").iter().filter_map(|row| row.first().copied()).collect();
        let in_object = (16..64).step_by(8).find(|at| {
            let mut functions = objects.iter().map(|object| {
                self.memory
                    .pointer(object + at)
                    .filter(|&function| self.classes.is(&mut self.memory, function, Family::Function))
            });
            functions.all(|function| function.is_some()) && !objects.is_empty()
        })?;
        let (next, stride) = self.next(in_object)?;
        let mut function = FunctionAt {
            in_object,
            next,
            stride,
            count: Count::Unknown,
            back: None,
            variable: None,
            inner: None,
            hooks: Vec::new(),
        };
        let back: Vec<_> = objects
            .iter()
            .filter_map(|&object| Some((self.memory.pointer(object + in_object)?, object)))
            .collect();
        function.back = self.find_by(&back, |word, object| word & !1 == object);
        function.count = self.count(&function);
        let variables = self.of_functions("variables", in_object);
        function.variable = self.find(&variables);
        function.inner = self.inner(in_object, next);
        for table in ["hooks before", "hooks on tensors", "hooks after"] {
            let hooked = self.of_functions(table, in_object);
            function.hooks.extend(self.hooks(&hooked));
        }
        Some(function)
    }

    /// Rows whose first column is the Python object of a function, with the function itself in its place.
    pub(super) fn of_functions(&mut self, table: &str, in_object: usize) -> Vec<(usize, usize)> {
        let rows = self.table(table);
        rows.iter()
            .filter_map(|row| {
                Some((self.memory.pointer(row.first()? + in_object)?, row.get(1).copied().unwrap_or(0)))
            })
            .collect()
    }

    /// Where the next functions lie, and how far apart: the functions in the table are followed by as many as their row names, some of them none.
    pub(super) fn next(&mut self, in_object: usize) -> Option<(usize, usize)> {
        let rows: Vec<(usize, Vec<Option<usize>>)> = self
            .table("next")
            .iter()
            .filter_map(|row| {
                let (&first, rest) = row.split_first()?;
                let following = rest
                    .iter()
                    .map(|&object| if object == 0 { None } else { self.memory.pointer(object + in_object) });
                let following = following.collect();
                Some((self.memory.pointer(first + in_object)?, following))
            })
            .collect();
        let strides = [16, 24, 32];
        let places = (8..SEARCHED).step_by(8).flat_map(|at| strides.map(|stride| (at, stride)));
        let mut places = places.filter(|&(at, stride)| {
            rows.iter().all(|(function, following)| {
                let Some(begin) = self.memory.pointer(function + at) else { return false };
                let length = following.len() * stride;
                self.memory.pointer(function + at + 8) == Some(begin + length)
                    && following.iter().enumerate().all(|(n, next)| {
                        self.memory.word(begin + n * stride) == Some(next.unwrap_or(0) as u64)
                    })
            })
        });
        let found = places.next();
        found.filter(|_| rows.len() > 1)
    }

    pub(super) fn count(&mut self, function: &FunctionAt) -> Count {
        let rows = self.of_functions("function counts", function.in_object);
        let holds = |count: Count, memory: &mut Memory| {
            rows.iter().all(|&(function, owners)| {
                count.of(memory, function).is_some_and(|found| found as usize == owners)
            })
        };
        [Count::Inside, Count::Beside]
            .into_iter()
            .find(|&count| rows.len() > 1 && holds(count, &mut self.memory))
            .unwrap_or(Count::Unknown)
    }

    /// The pointer to another function that lies behind those to the next ones.
    pub(super) fn inner(&mut self, in_object: usize, next: usize) -> Option<usize> {
        let functions: Vec<_> = self.of_functions("written views", in_object);
        (next + 24..SEARCHED).step_by(8).find(|at| {
            functions.len() > 1
                && functions.iter().all(|&(function, _)| {
                    let inner = self
                        .memory
                        .pointer(function + at)
                        .and_then(|inner| self.classes.of(&mut self.memory, inner));
                    inner.is_some_and(|(class, _)| self.classes.name(class).contains("::Mul"))
                })
        })
    }

    /// The vector of hooks of which one refers to the object in the second column.
    pub(super) fn hooks(&mut self, rows: &[(usize, usize)]) -> Option<usize> {
        (16..SEARCHED).step_by(8).find(|at| {
            rows.len() > 1
                && rows.iter().all(|&(function, object)| {
                    let hook =
                        self.memory.pointer(function + at).and_then(|begin| self.memory.pointer(begin));
                    let Some(hook) =
                        hook.filter(|&hook| self.classes.is(&mut self.memory, hook, Family::Hook))
                    else {
                        return false;
                    };
                    (8..40).step_by(8).any(|at| self.memory.word(hook + at) == Some(object as u64))
                })
        })
    }

    pub(super) fn autograd(&mut self, function: &FunctionAt) -> Option<AutogradAt> {
        let tensors: Vec<_> = self
            .table("grads")
            .iter()
            .chain(&self.table("views"))
            .filter_map(|row| row.first().copied())
            .collect();
        let meta = (16..SEARCHED).step_by(8).find(|at| {
            let mut metas = tensors.iter().map(|tensor| {
                self.memory
                    .pointer(tensor + at)
                    .is_some_and(|meta| self.classes.is(&mut self.memory, meta, Family::AutogradMeta))
            });
            !tensors.is_empty() && metas.all(|is| is)
        })?;
        let mut of = |table: &str, tensor: usize, value: usize| -> Vec<(usize, usize)> {
            let rows = self.columns(table, tensor, value);
            rows.into_iter()
                .filter_map(|(tensor, value)| Some((self.memory.pointer(tensor + meta)?, value)))
                .collect()
        };
        let (grads, functions, views) = (of("grads", 0, 1), of("functions", 1, 2), of("views", 0, 1));
        let functions: Vec<_> = functions
            .into_iter()
            .filter_map(|(meta, object)| Some((meta, self.memory.pointer(object + function.in_object)?)))
            .collect();
        let grad = self.find(&grads)?;
        let grad_fn = self.find(&functions);
        Some(AutogradAt { meta, grad, grad_fn, base: self.base(&views) })
    }

    /// Where the base is, and the flag that says that it is. Between them lies what makes the view anew, which the examples do without.
    pub(super) fn base(&mut self, views: &[(usize, usize)]) -> Option<BaseAt> {
        let base = self.find(views)?;
        let mut words = (base + 8..base + 96).step_by(8);
        let present =
            words.find(|at| views.iter().any(|&(meta, _)| self.memory.word(meta + at) != Some(0)))?;
        let flagged = views.iter().all(|&(meta, _)| self.memory.byte(meta + present) == Some(1));
        flagged.then_some(BaseAt { base, present })
    }
}

impl Count {
    /// The number of owners of the function at this address.
    pub(crate) fn of(self, memory: &mut Memory, function: usize) -> Option<u32> {
        match self {
            Self::Inside => memory.half(function + 8),
            Self::Beside => {
                // `std::enable_shared_from_this`: a pointer to itself and one to the control block, in which the count follows the virtual table.
                memory.pointer(function + 8).filter(|&own| own == function)?;
                let block = memory.pointer(function + 16)?;
                memory.half(block + 8)
            }
            Self::Unknown => None,
        }
    }
}
