//! Who holds the memory of this process: the walk of the Python heap, torch's C++ objects and the allocator's blocks, put together.
//!
//! ```text
//!  cpython::walk ──► nodes, references ─┐
//!  torch::read   ──► tensors, storages ─┼─► assemble ──► heap::find_holders ──► answer
//!  allocator     ──► blocks ────────────┘      └─ names
//! ```
//!
//! All of it happens while the GIL is held, and nothing of Python runs between the walk and the answer: addresses stay good. What no reference
//! explains, torch is asked about after that (`unowned`).

mod allocator;
mod answer;
mod assemble;
mod joined;
mod names;
mod roles;
mod room;
mod unowned;

use pyo3::exceptions::{PyMemoryError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use vramscope_heap::{Options, find_holders};
use vramscope_view::holders::{Bytes, HoldersFile};

use crate::cpython::{self, Address, CollectionOff, Interest, Which};
use crate::torch;
use crate::torch::kinds::Kind;
use crate::torch::layout::Layout;
use allocator::{AllocatorBlock, Choice};

pub(crate) use answer::PyHolders;

/// What to look at, and what is known besides.
pub(crate) struct Request {
    /// Holders of less are summed.
    pub(crate) min_bytes: u64,
    /// `"cuda"`, `"cuda:1"`, `"cpu"`; CUDA if it is in use and the CPU otherwise where nothing is said.
    pub(crate) device: Option<String>,
    /// Addresses of objects that should be gone, and why.
    pub(crate) watched: Vec<(Address, String)>,
}

/// Tags of the types of interest.
pub(crate) mod tag {
    use crate::torch::kinds::Kind;

    pub(crate) const PARAMETER: u8 = 1;
    pub(crate) const TENSOR: u8 = 2;
    pub(crate) const STORAGE: u8 = 3;
    pub(crate) const CONTEXT: u8 = 4;
    pub(crate) const FUNCTION: u8 = 5;
    pub(crate) const MODULE: u8 = 6;
    pub(crate) const OPTIMIZER: u8 = 7;
    pub(crate) const SAVED: u8 = 8;

    /// The tag of what is torch's.
    pub(super) fn of(kind: Kind) -> u8 {
        match kind {
            Kind::Tensor => TENSOR,
            Kind::Storage => STORAGE,
            Kind::Context => CONTEXT,
            Kind::Function => FUNCTION,
            Kind::SavedTensor => SAVED,
        }
    }
}

/// Looks.
///
/// # Errors
/// If torch has not been imported, is one that cannot be read, or the device is not known.
pub(crate) fn look(py: Python<'_>, request: &Request) -> PyResult<HoldersFile> {
    let loaded = py.import("sys")?.getattr("modules")?;
    if !loaded.contains("torch")? {
        return Err(PyRuntimeError::new_err(
            "torch has not been imported, so no tensor can hold memory\nhint: call `holders()` in the program that uses torch",
        ));
    }
    room::check().map_err(PyMemoryError::new_err)?;
    // What waits for the collector is to be seen, and what is made here to look could start it.
    let _collection = CollectionOff::new(py)?;
    let choice = Choice::of(py, request.device.as_deref())?;
    let layout = torch::layout(py)?.as_ref().map_err(|reason| {
        PyRuntimeError::new_err(format!("this torch cannot be read: {reason}\nhint: please report it, with `python -c 'import torch; print(torch.__version__)'`"))
    })?;
    let blocks = allocator::blocks(py, choice)?;
    let interests = interests(py, layout)?;
    let distributed = unowned::distributed_class(py);
    let options = cpython::Options { interests, nn_module_tag: tag::MODULE, ..cpython::Options::default() };
    let walk = cpython::walk(py, &options)?;
    // Nothing of Python runs from here until the holders are found.
    let distributed = unowned::distributed_modules(distributed, &walk);
    let mut joined = joined::Joined::new(walk, layout);
    let heap = assemble::assemble(&mut joined, &blocks, choice, &request.watched);
    let names = names::JoinedNames::new(&joined, &blocks);
    let options = Options { min_bytes: Bytes(request.min_bytes), max_holders: None };
    let mut holders = find_holders(&heap.heap, &names, &options);
    holders.warnings.extend(joined.warnings());
    holders.warnings.extend(heap.warnings);
    drop(joined);
    if let Some(blocks) = &blocks {
        unowned::explain(py, &mut holders, blocks, &distributed);
    }
    Ok(HoldersFile { devices: choice.devices(&blocks), time_us: None, holders, ..HoldersFile::default() })
}

/// The types whose instances say what memory is.
fn interests(py: Python<'_>, layout: &Layout) -> PyResult<Vec<Interest>> {
    let of =
        |base: &Bound<'_, PyAny>, tag| Interest { which: Which::DerivedFrom(base.as_ptr() as Address), tag };
    let nn = py.import("torch.nn")?;
    // The first that fits counts, so parameters come before tensors.
    let mut interests =
        vec![of(&nn.getattr("Parameter")?, tag::PARAMETER), of(&nn.getattr("Module")?, tag::MODULE)];
    // `import torch` loads it in all releases, but nothing is lost without.
    if let Ok(optim) = py.import("sys")?.getattr("modules")?.get_item("torch.optim") {
        interests.push(of(&optim.getattr("Optimizer")?, tag::OPTIMIZER));
    }
    let kinds = torch::kinds::Kinds::new(py, layout)?;
    interests.extend(kinds.bases.iter().map(|(base, kind)| of(base.bind(py), tag::of(*kind))));
    interests.extend(kinds.wrappers_freed_by.map(|function| Interest {
        which: Which::FreedBy(function as Address),
        tag: tag::of(Kind::Function),
    }));
    Ok(interests)
}

/// Who holds the memory of tensors; see `vramscope.holders`.
#[pyfunction]
#[pyo3(signature = (min_bytes = 0, device = None, watched = Vec::new()))]
pub(crate) fn holders(
    py: Python<'_>,
    min_bytes: i64,
    device: Option<&Bound<'_, PyAny>>,
    watched: Vec<(Address, String)>,
) -> PyResult<PyHolders> {
    // A number, a text or a `torch.device`.
    let device = device
        .map(|device| {
            device
                .extract::<u32>()
                .map_or_else(|_| device.str().map(|s| s.to_string()), |n| Ok(format!("cuda:{n}")))
        })
        .transpose()?;
    let min_bytes = u64::try_from(min_bytes)
        .map_err(|_| PyValueError::new_err(format!("min_bytes cannot be negative: {min_bytes}")))?;
    let mut file = look(py, &Request { min_bytes, device, watched })?;
    file.time_us = answer::now_us();
    Ok(PyHolders::new(file))
}

/// All blocks that are to be explained, as far as an allocator tells of them.
pub(crate) type Blocks = Option<Vec<AllocatorBlock>>;
