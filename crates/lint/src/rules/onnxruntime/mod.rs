//! ONNX Runtime.

mod shapes;

rules!(
    ort_session_per_call,
    ort_arena_dynamic_shapes,
    ort_mem_pattern_with_dynamic_shapes,
    iobinding_rebound_per_run,
    ort_session_cache_unbounded,
);
