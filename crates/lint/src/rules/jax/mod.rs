//! JAX.

mod wrappers;

rules!(
    jit_in_loop,
    jit_varying_shapes_or_statics,
    host_array_constant_in_jit,
    device_array_history,
    tracer_leak,
    state_update_without_donation,
);
