//! JAX.

rules!();
