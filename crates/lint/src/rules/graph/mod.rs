//! Autograd graphs that stay.

mod kept;

rules!(append_attached_tensor, backward_create_graph, saved_tensor_hook_keeps_grad_fn, anomaly_mode_left_on);
