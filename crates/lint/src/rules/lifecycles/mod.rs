//! Models, optimizers, checkpoints and their lifecycles.

rules!();
