//! Autograd graphs that stay.

rules!(accumulate_attached_loss);
