//! What blocks without a storage are, as far as torch tells: workspaces of cuBLAS, buckets of `DistributedDataParallel`, pools of CUDA graphs.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use rustc_hash::{FxHashMap, FxHashSet};
use vramscope_heap::{HeldBlock, Holders, Known};

use super::allocator::AllocatorBlock;
use super::tag;
use crate::cpython::Walk;
use crate::torch::workspaces;

/// The class whose instances reduce gradients, if torch's package for it is loaded.
pub(super) fn distributed_class(py: Python<'_>) -> Option<Bound<'_, PyAny>> {
    let loaded = py.import("sys").and_then(|sys| sys.getattr("modules")).ok()?;
    loaded.get_item("torch.nn.parallel.distributed").ok()?.getattr("DistributedDataParallel").ok()
}

/// The modules of that class. What is returned refers to them: they outlive the walk, whose addresses do not.
pub(super) fn distributed_modules(class: Option<Bound<'_, PyAny>>, walk: &Walk<'_>) -> Vec<Py<PyAny>> {
    let Some(class) = class else { return Vec::new() };
    let modules = walk.instances.iter().filter(|(_, tag)| *tag == tag::MODULE);
    modules.filter_map(|&(node, _)| walk.instance_of(node, &class)).collect()
}

/// Names the blocks that nothing refers to, where something is known of them. Code of Python may run.
pub(super) fn explain(
    py: Python<'_>,
    holders: &mut Holders,
    blocks: &[AllocatorBlock],
    distributed: &[Py<PyAny>],
) {
    if holders.unexplained.0 == 0 {
        return;
    }
    let by_place: FxHashMap<(u32, u64), &AllocatorBlock> =
        blocks.iter().map(|block| ((block.device, block.address), block)).collect();
    let workspaces: FxHashSet<u64> =
        workspaces::addresses().into_iter().map(|address| address as u64).collect();
    let buckets: FxHashSet<u64> =
        distributed.iter().flat_map(|module| bucket_sizes(module.bind(py)).unwrap_or_default()).collect();
    holders.explain(|HeldBlock { device, address, .. }| {
        let block = by_place.get(&((*device)?, *address))?;
        if workspaces.contains(address) {
            return Some(Known {
                path: "C++: workspaces of cuBLAS".into(),
                reason: "torch keeps one for each stream and thread that multiplied matrices; not a leak"
                    .into(),
            });
        }
        if let Some((graphs, own)) = block.pool {
            return Some(Known {
                path: match graphs {
                    0 => format!("C++: memory pool (0, {own})"),
                    _ => format!("C++: CUDA graph pool ({graphs}, {own})"),
                },
                reason: "in a pool of its own, which is kept as long as the graph or pool object".into(),
            });
        }
        buckets.contains(&block.requested).then(|| Known {
            path: "C++: gradient buckets of DistributedDataParallel".into(),
            reason:
                "as many bytes as one of its buckets; not a leak (gradient_as_bucket_view=True saves as much)"
                    .into(),
        })
    });
}

/// The bytes of each bucket that one reduces its gradients in; of the first step's until they are made anew for the second.
fn bucket_sizes(module: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
    let data = module.call_method0("_get_ddp_logging_data")?.cast_into::<PyDict>()?;
    let text = match data.get_item("rebuilt_bucket_sizes")? {
        Some(text) => Some(text),
        None => data.get_item("bucket_sizes")?,
    };
    let text: String = text.map(|text| text.extract()).transpose()?.unwrap_or_default();
    Ok(text.split(',').filter_map(|bytes| bytes.trim().parse().ok()).collect())
}
