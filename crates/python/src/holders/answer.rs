//! What `holders()` returns.

use std::time::{SystemTime, UNIX_EPOCH};

use pyo3::prelude::*;
use vramscope_report::{Excerpts, Palette, json, text};
use vramscope_view::holders::HoldersFile;

/// Columns where nobody says.
const WIDTH: usize = 100;
/// Holders that are shown with their chain.
const TOP: usize = 10;

/// Who holds the memory, at the moment when it was asked.
#[pyclass(name = "Holders", module = "vramscope", frozen)]
pub(crate) struct PyHolders {
    file: HoldersFile,
}

impl PyHolders {
    pub(super) fn new(file: HoldersFile) -> Self {
        Self { file }
    }
}

#[pymethods]
impl PyHolders {
    /// Bytes of all live blocks.
    #[getter]
    fn total_bytes(&self) -> u64 {
        self.file.holders.total.0
    }

    /// Bytes of blocks of which nothing is known.
    #[getter]
    fn unexplained_bytes(&self) -> u64 {
        self.file.holders.unexplained.0
    }

    /// The same as JSON of the schema `vramscope.holders/1`: on one line if `compact`, else for reading.
    #[pyo3(signature = (compact = false))]
    fn to_json(&self, compact: bool) -> String {
        if compact { json::holders::render_compact(&self.file) } else { json::holders::render(&self.file) }
    }

    /// The same as plain data, of the schema `vramscope.holders/1`.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?.call_method1("loads", (json::holders::render_compact(&self.file),))
    }

    /// The same for reading: at most `top` holders, `width` columns wide, with `colour` for a terminal.
    #[pyo3(signature = (top = TOP, width = WIDTH, colour = false, verbose = false))]
    fn text(&self, top: usize, width: usize, colour: bool, verbose: bool) -> String {
        let palette = if colour { Palette::Coloured } else { Palette::Plain };
        let excerpts = Excerpts::default();
        text::holders::render(
            std::slice::from_ref(&self.file),
            &text::Layout { palette, width, top, verbose, excerpts: &excerpts },
        )
    }

    fn __str__(&self) -> String {
        self.text(TOP, WIDTH, false, false)
    }

    fn __repr__(&self) -> String {
        format!(
            "<vramscope.Holders of {} in {} holders>",
            self.file.holders.total,
            self.file.holders.holders.len()
        )
    }
}

/// Now, µs since 1970 UTC.
pub(super) fn now_us() -> Option<i64> {
    SystemTime::now().duration_since(UNIX_EPOCH).ok().and_then(|since| i64::try_from(since.as_micros()).ok())
}
