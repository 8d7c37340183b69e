//! What compiles or traces functions.

/// Compiles.
pub(super) const JIT: &[&str] = &[
    "jax.jit",
    "jax.pmap",
    "jax.api.jit",
    "jax.experimental.pjit.pjit",
    "flax.nnx.jit",
    "flax.nnx.pmap",
    "equinox.filter_jit",
];

/// Calls the function with tracers, whose state is the caller's own business: what `flax.nnx` and `equinox` trace may be updated.
pub(super) const TRACE: &[&str] = &[
    "jax.jit",
    "jax.pmap",
    "jax.experimental.pjit.pjit",
    "jax.vmap",
    "jax.grad",
    "jax.value_and_grad",
    "jax.checkpoint",
    "jax.remat",
];
