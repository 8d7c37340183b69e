//! The blocks of PyTorch's caching allocator, as `torch.cuda.memory_snapshot` lists them.

use std::collections::BTreeSet;

use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::Blocks;

/// A block that is in use, or waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AllocatorBlock {
    /// Devices have address ranges of their own, but nobody promises it.
    pub(crate) device: u32,
    /// Where it starts.
    pub(crate) address: u64,
    /// Bytes, after rounding.
    pub(crate) bytes: u64,
    /// Given back by the program, while another stream may still use it.
    pub(crate) pending: bool,
    /// Bytes that were asked for.
    pub(crate) requested: u64,
    /// The private pool it is from: one of CUDA graphs, or a `MemPool`.
    pub(crate) pool: Option<Pool>,
}

/// The identity of a private pool: those that captures of CUDA graphs make count in the first number, those that programs make in the second.
pub(crate) type Pool = (u64, u64);

/// Whose memory is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// The host's.
    Cpu,
    /// That of one device, or of all.
    Cuda(Option<u32>),
}

impl Choice {
    /// From what the user said.
    pub(super) fn of(py: Python<'_>, device: Option<&str>) -> PyResult<Self> {
        let Some(device) = device else {
            return Ok(if cuda_is_in_use(py)? { Self::Cuda(None) } else { Self::Cpu });
        };
        let choice = match device.split_once(':') {
            None if device == "cpu" => Some(Self::Cpu),
            None if device == "cuda" => Some(Self::Cuda(None)),
            Some(("cuda", number)) => number.parse().ok().map(|number| Self::Cuda(Some(number))),
            _ => None,
        };
        let choice = choice.ok_or_else(|| {
            PyValueError::new_err(format!(
                "`{device}` is no device whose memory can be told\nhint: say \"cuda\", \"cuda:0\" or \"cpu\""
            ))
        })?;
        if choice != Self::Cpu && !cuda_is_in_use(py)? {
            return Err(PyRuntimeError::new_err(format!(
                "nothing of CUDA is in use in this process, so there is nothing on `{device}`\nhint: say device=\"cpu\" for tensors of the CPU"
            )));
        }
        Ok(choice)
    }

    /// The devices whose memory was looked at.
    pub(super) fn devices(self, blocks: &Blocks) -> Vec<u32> {
        match (self, blocks) {
            (Self::Cpu, _) => Vec::new(),
            (Self::Cuda(Some(device)), _) => vec![device],
            (Self::Cuda(None), None) => vec![0],
            (Self::Cuda(None), Some(blocks)) => {
                blocks.iter().map(|block| block.device).collect::<BTreeSet<u32>>().into_iter().collect()
            }
        }
    }

    /// Whether memory of that device is asked for.
    pub(super) fn includes(self, device: u32) -> bool {
        matches!(self, Self::Cuda(None)) || self == Self::Cuda(Some(device))
    }
}

/// Whether the program has touched CUDA. Asking does not initialise it.
fn cuda_is_in_use(py: Python<'_>) -> PyResult<bool> {
    let torch = py.import("torch")?;
    torch.getattr("cuda")?.call_method0("is_initialized")?.is_truthy()
}

/// The blocks in use, in order; none where there is no caching allocator whose blocks could be told.
pub(super) fn blocks(py: Python<'_>, choice: Choice) -> PyResult<Blocks> {
    if choice == Choice::Cpu {
        return Ok(None);
    }
    let cuda = py.import("torch")?.getattr("cuda")?;
    let snapshot = cuda.getattr("memory_snapshot")?;
    // The history of a run would take seconds to make and is not needed; older releases cannot leave it out.
    let without_history = PyDict::new(py);
    without_history.set_item("include_traces", false)?;
    let segments = match snapshot.call((), Some(&without_history)) {
        Err(error) if error.is_instance_of::<PyTypeError>(py) => snapshot.call0()?,
        other => other?,
    };
    let mut blocks = Vec::new();
    for segment in segments.cast_into::<PyList>()?.iter() {
        let device: u32 = segment.get_item("device")?.extract()?;
        if !choice.includes(device) {
            continue;
        }
        let pool = segment.get_item("segment_pool_id").and_then(|pool| pool.extract::<Pool>());
        let pool = pool.ok().filter(|&pool| pool != (0, 0));
        // Blocks tile their segment, so their addresses need not be told (and were not, before 2.1).
        let mut address: u64 = segment.get_item("address")?.extract()?;
        for block in segment.get_item("blocks")?.cast_into::<PyList>()?.iter() {
            let bytes: u64 = block.get_item("size")?.extract()?;
            // Older releases do not tell.
            let requested =
                block.get_item("requested_size").and_then(|bytes| bytes.extract()).unwrap_or(bytes);
            let state = block.get_item("state")?;
            let state: String = state.extract()?;
            let pending = match state.as_str() {
                "active_allocated" => Some(false),
                "active_pending_free" | "active_awaiting_free" => Some(true),
                _ => None,
            };
            blocks.extend(pending.map(|pending| AllocatorBlock {
                device,
                address,
                bytes,
                pending,
                requested,
                pool,
            }));
            address = address.wrapping_add(bytes);
        }
    }
    blocks.sort_unstable();
    Ok(Some(blocks))
}
