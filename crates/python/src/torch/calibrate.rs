//! Learns the layout of torch's objects from examples, of which Python tells the truth. So no table of releases is needed, and a release that moves things is noticed:
//! every offset is confirmed on two examples or more, and what is not found is not read.

use pyo3::prelude::*;
use pyo3::types::PyModule;
use rustc_hash::FxHashMap;

use super::class::{Classes, Family};
use super::getters::{EmptyFunction, IN_PYBIND};
use super::kinds::FREED_BY;
use super::layout::{
    AutogradAt, BaseAt, ContextAt, Count, Field, FunctionAt, Held, Layout, SavedAt, StorageAt, TensorAt,
};
use super::memory::Memory;

/// Bytes of an object that are searched.
const SEARCHED: usize = 768;

/// Rows of integers by the name of their table, as `examples.py` says.
type Tables = FxHashMap<String, Vec<Vec<usize>>>;

/// Builds the examples and learns from them. An error says what is missing so that nothing can be read.
pub(crate) fn calibrate(py: Python<'_>) -> PyResult<Result<Layout, String>> {
    let examples = PyModule::from_code(
        py,
        c_str(include_str!("examples.py"))?.as_c_str(),
        c"vramscope/_examples.py",
        c"vramscope._examples",
    )?;
    let (keep, tables, failed): (Bound<'_, PyAny>, Tables, Vec<String>) =
        examples.getattr("build")?.call0()?.extract()?;
    let Some(memory) = Memory::open() else {
        return Ok(Err("this system does not let a process copy its own memory".to_owned()));
    };
    let mut search = Search { memory, classes: Classes::default(), tables };
    let Some(mut layout) = search.layout() else {
        return Ok(Err("tensors of this release of torch are laid out in an unknown way".to_owned()));
    };
    layout.warnings.extend(failed.into_iter().map(|failed| format!("no example of {failed}")));
    search.fields(&examples, &mut layout)?;
    // Some refer to each other, and would wait for the collector.
    keep.call_method0("clear")?;
    Ok(Ok(layout))
}

fn c_str(text: &str) -> PyResult<std::ffi::CString> {
    Ok(std::ffi::CString::new(text)?)
}

struct Search {
    memory: Memory,
    classes: Classes,
    tables: Tables,
}

impl Search {
    fn layout(&mut self) -> Option<Layout> {
        let tensor = self.tensor()?;
        let storage = self.storage()?;
        let mut layout = Layout {
            tensor,
            storage,
            autograd: None,
            function: None,
            context: None,
            saved: None,
            wrappers_freed_by: None,
            warnings: Vec::new(),
        };
        if !(tensor.held.counts && storage.held.counts) {
            layout.warnings.push("owners of tensors and storages cannot be counted".to_owned());
        }
        layout.function = self.function();
        if let Some(function) = &layout.function {
            layout.autograd = self.autograd(function);
            layout.context = self.context();
            layout.saved = self.saved(function);
        }
        let parts = [
            (layout.function.is_some(), "functions of the backward pass"),
            (
                layout.autograd.as_ref().is_some_and(|autograd| autograd.grad_fn.is_some()),
                "what tensors have for the backward pass",
            ),
            (layout.autograd.as_ref().is_some_and(|autograd| autograd.base.is_some()), "what views are of"),
            (layout.context.is_some_and(|context| context.saved.is_some()), "custom functions"),
            (layout.saved.is_some(), "saved tensors"),
            (
                layout.saved.as_ref().is_some_and(|saved| saved.hooks.is_some() && saved.packed.len() >= 2),
                "saved tensors that a hook packed",
            ),
            (
                layout.function.as_ref().is_some_and(|function| function.variable.is_some()),
                "the leaves that gradients are added to",
            ),
            (
                layout.function.as_ref().is_some_and(|function| function.inner.is_some()),
                "in-place operations on views",
            ),
            (
                layout.function.as_ref().is_some_and(|function| function.hooks.len() == 3),
                "hooks of functions",
            ),
            (
                layout.function.as_ref().is_some_and(|function| function.count != Count::Unknown),
                "owners of functions",
            ),
        ];
        layout.warnings.extend(parts.iter().filter(|(found, _)| !found).map(|(_, part)| {
            format!("this release of torch keeps {part} in an unknown place; they are left out")
        }));
        Some(layout)
    }

    fn tensor(&mut self) -> Option<TensorAt> {
        let held = self.held("tensors", 0, 1, "tensor counts")?;
        let storage = self.find(&self.columns("tensors", 1, 2))?;
        Some(TensorAt { held, storage, sizes: self.sizes(), dtype: self.dtype() })
    }

    fn storage(&mut self) -> Option<StorageAt> {
        let held = self.held("storage wrappers", 0, 1, "storage counts")?;
        let data = self.find(&self.columns("tensors", 2, 3))?;
        let bytes = self.find(&self.columns("tensors", 2, 4))?;
        Some(StorageAt { held, data, bytes, device: self.device(bytes) })
    }

    /// How the Python objects of one column hold the C++ objects of another.
    fn held(&mut self, table: &str, object: usize, address: usize, counts: &str) -> Option<Held> {
        let at = self.find(&self.columns(table, object, address))?;
        // Only a flag can lie between the header and the pointer.
        let may_borrow = at == 24;
        let back: Vec<_> = self.columns(table, address, object);
        let back = self.find_by(&back, |word, object| word & !1 == object);
        let counts = self.columns(counts, 0, 1);
        let counts = !counts.is_empty()
            && counts.iter().all(|&(address, count)| {
                self.memory.half(address + 8).is_some_and(|found| found as usize == count)
            });
        Some(Held { at, may_borrow, back, counts })
    }

    fn sizes(&mut self) -> Option<usize> {
        let shapes = self.table("shapes");
        let inline = (0..SEARCHED).step_by(8).find(|at| {
            shapes.len() > 1
                && shapes.iter().all(|row| {
                    let Some((&tensor, shape)) = row.split_first() else { return false };
                    let expected = [shape.len()].into_iter().chain(shape.iter().copied());
                    expected
                        .enumerate()
                        .all(|(n, size)| self.memory.word(tensor + at + 8 * n) == Some(size as u64))
                })
        })?;
        // Longer shapes are kept elsewhere, and the first of these words says where.
        let deep = self.table("deep shape");
        let (&tensor, shape) = deep.first()?.split_first()?;
        let elsewhere = self.memory.pointer(tensor + inline + 8)?;
        let right = shape
            .iter()
            .enumerate()
            .all(|(n, &size)| self.memory.word(elsewhere + 8 * n) == Some(size as u64));
        right.then_some(inline)
    }

    fn dtype(&mut self) -> Option<usize> {
        let rows = self.columns("tensors", 1, 5);
        (16..SEARCHED).step_by(2).find(|at| {
            rows.iter().all(|&(tensor, code)| {
                self.memory.half(tensor + at).is_some_and(|word| (word & 0xffff) as usize == code)
            })
        })
    }

    /// The byte that is 0 for the CPU and 14 for the meta device, between the storage's address and its size.
    fn device(&mut self, bytes: usize) -> Option<usize> {
        let cpu: Vec<_> = self.columns("tensors", 2, 2).into_iter().map(|(storage, _)| storage).collect();
        let meta: Vec<_> =
            self.table("meta storage").into_iter().filter_map(|row| row.first().copied()).collect();
        (16..bytes).find(|at| {
            let mut is = |storage: usize, kind: u8| self.memory.byte(storage + at) == Some(kind);
            !meta.is_empty()
                && meta.iter().all(|&storage| is(storage, 14))
                && cpu.iter().all(|&storage| is(storage, 0))
        })
    }

    fn function(&mut self) -> Option<FunctionAt> {
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
    fn of_functions(&mut self, table: &str, in_object: usize) -> Vec<(usize, usize)> {
        let rows = self.table(table);
        rows.iter()
            .filter_map(|row| {
                Some((self.memory.pointer(row.first()? + in_object)?, row.get(1).copied().unwrap_or(0)))
            })
            .collect()
    }

    /// Where the next functions lie, and how far apart: the functions in the table are followed by as many as their row names, some of them none.
    fn next(&mut self, in_object: usize) -> Option<(usize, usize)> {
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

    fn count(&mut self, function: &FunctionAt) -> Count {
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
    fn inner(&mut self, in_object: usize, next: usize) -> Option<usize> {
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
    fn hooks(&mut self, rows: &[(usize, usize)]) -> Option<usize> {
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

    fn autograd(&mut self, function: &FunctionAt) -> Option<AutogradAt> {
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
    fn base(&mut self, views: &[(usize, usize)]) -> Option<BaseAt> {
        let base = self.find(views)?;
        let mut words = (base + 8..base + 96).step_by(8);
        let present =
            words.find(|at| views.iter().any(|&(meta, _)| self.memory.word(meta + at) != Some(0)))?;
        let flagged = views.iter().all(|&(meta, _)| self.memory.byte(meta + present) == Some(1));
        flagged.then_some(BaseAt { base, present })
    }

    fn context(&mut self) -> Option<ContextAt> {
        let contexts: Vec<_> = self.table("contexts").iter().filter_map(|row| row.first().copied()).collect();
        let function = (16..SEARCHED).step_by(8).find(|at| {
            let mut functions = contexts.iter().map(|context| {
                self.memory
                    .pointer(context + at)
                    .is_some_and(|function| self.classes.is(&mut self.memory, function, Family::Function))
            });
            contexts.len() > 1 && functions.all(|is| is)
        })?;
        let back: Vec<_> = contexts
            .iter()
            .filter_map(|&context| Some((self.memory.pointer(context + function)?, context)))
            .collect();
        let back = self.find_by(&back, |word, context| word & !1 == context)?;
        let size = self.saved_size();
        let rows = self.table("saved variables");
        let saved = (16..SEARCHED).step_by(8).find(|at| {
            rows.len() > 1
                && rows.iter().all(|row| {
                    let Some((context, saved)) = row.split_first() else { return false };
                    let Some(first) = saved.first().and_then(|saved| self.memory.pointer(saved + IN_PYBIND))
                    else {
                        return false;
                    };
                    let end = size.map(|size| first + size * saved.len());
                    self.memory.pointer(context + at) == Some(first)
                        && self.memory.pointer(context + at + 8) == end
                })
        });
        Some(ContextAt { function, back, saved })
    }

    /// How far apart two saved tensors of one list are.
    fn saved_size(&mut self) -> Option<usize> {
        let rows = self.table("saved variables");
        let row = rows.iter().find(|row| row.len() > 3)?;
        let places: Vec<_> =
            row.iter().skip(1).filter_map(|saved| self.memory.pointer(saved + IN_PYBIND)).collect();
        let size = places.get(1)?.checked_sub(*places.first()?)?;
        (places.windows(2).all(|pair| pair[1].checked_sub(pair[0]) == Some(size))
            && (16..1024).contains(&size))
        .then_some(size)
    }

    fn saved(&mut self, function: &FunctionAt) -> Option<SavedAt> {
        let size = self.saved_size()?;
        let mut known = self
            .table("saved by custom functions")
            .into_iter()
            .flat_map(|row| row.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect::<Vec<_>>());
        let first_word = known.all(|(saved, tensor)| {
            self.memory.pointer(saved + IN_PYBIND).and_then(|saved| self.memory.pointer(saved))
                == Some(tensor)
        });
        if !first_word {
            return None;
        }
        let rows: Vec<(usize, Vec<usize>)> = self
            .table("packed")
            .into_iter()
            .filter_map(|row| Some((self.memory.pointer(row.first()? + IN_PYBIND)?, row)))
            .collect();
        let hooks = (8..size).step_by(8).find(|at| {
            let mut are = rows.iter().map(|(saved, _)| {
                self.memory
                    .pointer(saved + at)
                    .is_some_and(|hooks| self.classes.is(&mut self.memory, hooks, Family::SavedHooks))
            });
            rows.len() > 1 && are.all(|is| is)
        });
        let mut at = SavedAt {
            size,
            hooks,
            owned: self.owned(),
            packed: Vec::new(),
            functions: Vec::new(),
            fields: FxHashMap::default(),
        };
        if let Some(hooks) = hooks {
            let held: Vec<_> = rows
                .iter()
                .filter_map(|(saved, row)| Some((self.memory.pointer(saved + hooks)?, row)))
                .collect();
            // The pack hook is let go of in some releases: the fifth column says whether it is held.
            let pack_held = rows.iter().all(|(_, row)| row.get(4).is_some_and(|&held| held > 0));
            for column in if pack_held { 1..4 } else { 2..4 } {
                let places: Vec<_> =
                    held.iter().filter_map(|(hooks, row)| Some((*hooks, *row.get(column)?))).collect();
                at.packed.extend(self.find(&places));
            }
            // With hooks, it holds the function that made the tensor, or the one that adds to a leaf's gradient.
            for made in [1, 0] {
                let sources = rows.iter().filter(|(_, row)| row.get(6) == Some(&made));
                let sources: Vec<_> = sources
                    .filter_map(|(saved, row)| {
                        Some((*saved, self.memory.pointer(row.get(5)? + function.in_object)?))
                    })
                    .collect();
                let place = (hooks..size).step_by(8).find(|place| {
                    !sources.is_empty()
                        && sources
                            .iter()
                            .all(|(saved, function)| self.memory.pointer(saved + place) == Some(*function))
                });
                at.functions.extend(place);
            }
        }
        Some(at)
    }

    /// Where it says that a saved tensor belongs to its Python object: set in the ones and not in the others.
    fn owned(&mut self) -> Option<usize> {
        let [owned, borrowed] =
            ["owned saved tensors", "borrowed saved tensors"].map(|table| self.columns(table, 0, 1));
        (IN_PYBIND + 8..128).find(|at| {
            let mut is =
                |object: usize, flag: u8| self.memory.byte(object + at).is_some_and(|byte| byte & 1 == flag);
            let mut told = |rows: &[(usize, usize)], flag: u8| {
                rows.len() > 1 && rows.iter().all(|&(object, _)| is(object, flag))
            };
            // One bit among others: bytes of pointers are even, or differ.
            at.is_multiple_of(8) && told(&owned, 1) && told(&borrowed, 0)
        })
    }

    /// Asks the getters of all generated types, if they tell the truth of real functions.
    fn fields(&mut self, examples: &Bound<'_, PyModule>, layout: &mut Layout) -> PyResult<()> {
        let types: Vec<(Bound<'_, PyAny>, String, Vec<String>)> =
            examples.getattr("function_types")?.call0()?.extract()?;
        let mut freed_by =
            types.iter().take(8).map(|(kind, ..)| self.memory.word(kind.as_ptr() as usize + FREED_BY));
        let first = freed_by.next().flatten();
        layout.wrappers_freed_by = first.filter(|&first| freed_by.all(|other| other == Some(first)));
        let (Some(function), Some(saved)) = (&layout.function, &mut layout.saved) else { return Ok(()) };
        let Some(mut empty) =
            EmptyFunction::new(function.in_object, saved.size).filter(|_| !types.is_empty())
        else {
            layout.warnings.push(
                "names of saved tensors cannot be asked for; they are recognised by what they look like"
                    .to_owned(),
            );
            return Ok(());
        };
        let truths = self.truths(function.in_object, saved.size);
        let told = truths.iter().all(|truth| {
            let kind = types.iter().find(|(kind, ..)| kind.as_ptr() as usize == truth.kind);
            kind.and_then(|(kind, ..)| empty.field(&mut self.memory, kind, &truth.attribute))
                .is_some_and(|field| (field.at, field.list) == (truth.at, truth.list))
        });
        if !told || truths.len() < 4 {
            layout.warnings.push("what functions saved cannot be asked for in this release of torch; saved tensors are recognised by what they look like".to_owned());
            return Ok(());
        }
        for (kind, name, attributes) in types {
            let known: Option<Vec<Field>> =
                attributes.iter().map(|attribute| empty.field(&mut self.memory, &kind, attribute)).collect();
            // A class of which not all is known is looked at as one that says nothing.
            if let Some(known) = known {
                saved.fields.insert(name, known);
            }
        }
        Ok(())
    }

    fn truths(&mut self, in_object: usize, size: usize) -> Vec<Truth> {
        let mut truths = Vec::new();
        for row in self.table("saved") {
            let &[object, saved, kind, name] = row.as_slice() else { continue };
            let (function, saved) =
                (self.memory.pointer(object + in_object), self.memory.pointer(saved + IN_PYBIND));
            let at = function.zip(saved).and_then(|(function, saved)| saved.checked_sub(function));
            let attribute = ["_raw_saved_self", "_raw_saved_other", "_raw_saved_mat2"]
                .get(name)
                .copied()
                .unwrap_or_default()
                .to_owned();
            // An impossible place, which no getter tells, if it is not known.
            truths.push(Truth { kind, attribute, at: at.unwrap_or(usize::MAX), list: false });
        }
        for row in self.table("saved lists") {
            let [object, kind, saved @ ..] = row.as_slice() else { continue };
            let function = self.memory.pointer(object + in_object);
            let first = saved.first().and_then(|saved| self.memory.pointer(saved + IN_PYBIND));
            let at = function.zip(first).and_then(|(function, first)| {
                let is = |memory: &mut Memory, at: usize| {
                    memory.pointer(function + at) == Some(first)
                        && memory.pointer(function + at + 8) == Some(first + size * saved.len())
                };
                (16..SEARCHED * 2).step_by(8).find(|&at| is(&mut self.memory, at))
            });
            truths.push(Truth {
                kind: *kind,
                attribute: "_raw_saved_indices".to_owned(),
                at: at.unwrap_or(usize::MAX),
                list: true,
            });
        }
        truths
    }

    fn table(&self, name: &str) -> Vec<Vec<usize>> {
        self.tables.get(name).cloned().unwrap_or_default()
    }

    fn columns(&self, table: &str, first: usize, second: usize) -> Vec<(usize, usize)> {
        self.table(table).iter().filter_map(|row| Some((*row.get(first)?, *row.get(second)?))).collect()
    }

    /// The first offset at which each object has the value that goes with it.
    fn find(&mut self, examples: &[(usize, usize)]) -> Option<usize> {
        self.find_by(examples, |word, value| word == value)
    }

    fn find_by(&mut self, examples: &[(usize, usize)], is: impl Fn(usize, usize) -> bool) -> Option<usize> {
        let mut places = (8..SEARCHED).step_by(8);
        places.find(|at| {
            examples.len() > 1
                && examples.iter().all(|&(object, value)| {
                    self.memory.word(object + at).is_some_and(|word| is(word as usize, value))
                })
        })
    }
}

/// What a real function says about one of its saved tensors.
struct Truth {
    kind: usize,
    attribute: String,
    at: usize,
    list: bool,
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
