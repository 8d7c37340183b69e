//! Whose code is whose: the user's, a library's, or that of this package. And the frames of the interpreter where they can only be read by
//! asking for them.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use rustc_hash::FxHashMap;

use super::memory::{Address, dict_of_type, full_type_name, item, text};

/// This package, whose objects are not shown.
const PACKAGE: &str = "vramscope";

/// Whose code a module is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The user's.
    Own,
    /// Of the standard library, or installed.
    Library,
    /// Of this package.
    Tool,
}

/// Tells modules apart.
pub(super) struct Origins {
    standard_library: String,
    by_name: FxHashMap<String, Origin>,
}

impl Origins {
    pub(super) fn of(py: Python<'_>) -> PyResult<Self> {
        let file: String = py.import("os")?.getattr("__file__")?.extract()?;
        let folder = file.rsplit_once('/').map_or(file.as_str(), |(folder, _)| folder);
        Ok(Self { standard_library: format!("{folder}/"), by_name: FxHashMap::default() })
    }

    /// Looks at a module's namespace; says its name too.
    ///
    /// # Safety
    /// `namespace` must be a dict that is alive. The GIL must be held.
    pub(super) unsafe fn note(&mut self, namespace: Address) -> (String, Origin) {
        // SAFETY: the caller says that it is a dict.
        let (name, file, specification) = unsafe {
            (
                item(namespace, c"__name__").and_then(|name| text(name)).unwrap_or_default(),
                item(namespace, c"__file__").and_then(|file| text(file)),
                item(namespace, c"__spec__"),
            )
        };
        let origin = if is_tool(&name) {
            Origin::Tool
        } else if name == "__main__" {
            Origin::Own
        } else if let Some(file) = file {
            self.of_file(&file)
        } else if let Some(&origin) = name.split('.').next().and_then(|package| self.by_name.get(package)) {
            origin
        } else {
            // Built in, or made by a program.
            // SAFETY: None lives for ever.
            let none = unsafe { pyo3::ffi::Py_None() } as Address;
            if specification.is_some_and(|s| s != none) { Origin::Library } else { Origin::Own }
        };
        self.by_name.entry(name.clone()).or_insert(origin);
        (name, origin)
    }

    fn of_file(&self, file: &str) -> Origin {
        let installed = ["/site-packages/", "/dist-packages/"].iter().any(|folder| file.contains(folder));
        let library = installed || file.starts_with(&self.standard_library) || file.starts_with("<frozen");
        if library { Origin::Library } else { Origin::Own }
    }

    /// Whose code the functions with these globals are.
    ///
    /// # Safety
    /// `globals` must be a dict that is alive, or null. The GIL must be held.
    pub(super) unsafe fn of_globals(&self, globals: Address) -> Origin {
        if globals == 0 {
            return Origin::Library;
        }
        // SAFETY: the caller says that it is a dict.
        let name = unsafe { item(globals, c"__name__").and_then(|name| text(name)) };
        self.of_name(&name.unwrap_or_default()).unwrap_or(Origin::Own)
    }

    /// Whose code a class is.
    ///
    /// # Safety
    /// `class` must be a type that is alive. The GIL must be held.
    pub(super) unsafe fn of_class(&self, class: Address) -> Origin {
        // SAFETY: the caller says that it is a type; its dict is a dict.
        let module = unsafe {
            dict_of_type(class)
                .and_then(|dict| item(dict, c"__module__"))
                .and_then(|m| text(m))
                .unwrap_or_else(|| {
                    full_type_name(class)
                        .rsplit_once('.')
                        .map_or(String::new(), |(module, _)| module.to_owned())
                })
        };
        self.of_name(&module).unwrap_or(Origin::Library)
    }

    fn of_name(&self, module: &str) -> Option<Origin> {
        if is_tool(module) {
            return Some(Origin::Tool);
        }
        let package = || module.split('.').next().and_then(|package| self.by_name.get(package));
        self.by_name.get(module).or_else(package).copied()
    }
}

fn is_tool(module: &str) -> bool {
    module.strip_prefix(PACKAGE).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The variables, globals and function of a running frame.
pub(super) type ByLocals = (Vec<(String, Address)>, Address, String);

/// All running frames, read by `f_locals`: only where that does not keep variables alive, since 3.13.
///
/// The variables stay alive without a reference from here, since the frames do not go on before the walk is over.
pub(super) fn frames_by_locals(py: Python<'_>) -> PyResult<Vec<ByLocals>> {
    let mut all = Vec::new();
    if py.version_info() < (3, 13) {
        return Ok(all);
    }
    let tops = py.import("sys")?.call_method0("_current_frames")?.cast_into::<PyDict>()?;
    for top in tops.values() {
        let mut frame = Some(top);
        while let Some(this) = frame {
            let function: String = this.getattr("f_code")?.getattr("co_name")?.extract()?;
            let globals = this.getattr("f_globals")?;
            let locals = this.getattr("f_locals")?;
            let mut variables = Vec::new();
            if !locals.is(&globals) {
                for variable in locals.call_method0("items")?.try_iter()? {
                    let (name, value): (String, Bound<'_, PyAny>) = variable?.extract()?;
                    variables.push((name, value.as_ptr() as Address));
                }
            }
            all.push((variables, globals.as_ptr() as Address, function));
            frame = Some(this.getattr("f_back")?).filter(|back| !back.is_none());
        }
    }
    Ok(all)
}
