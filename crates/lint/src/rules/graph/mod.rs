//! Autograd graphs that stay.

mod kept;

rules!(append_attached_tensor);
