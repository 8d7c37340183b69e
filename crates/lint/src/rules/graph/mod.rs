//! Autograd graphs that stay.

mod ctx_attributes;
mod ctx_saving;
pub(crate) mod kept;
mod parameter_loops;

rules!(
    accumulate_attached_loss,
    append_attached_tensor,
    host_copy_without_detach,
    meter_update_attached,
    dict_accumulate_attached,
    cat_accumulate,
    aux_term_not_backpropagated,
    retain_graph_with_kept_value,
    needless_retain_graph,
    hidden_state_carry,
    attached_module_state,
    ema_without_no_grad,
    unrolled_update_with_create_graph,
    backward_create_graph,
    eval_loop_without_no_grad,
    inference_entry_without_no_grad,
    replay_buffer_attached,
    log_attached,
    sum_of_losses_single_backward,
    iterative_input_not_detached,
    ctx_stores_input,
    ctx_stores_output,
    grad_inside_function_backward,
    saved_tensor_hook_keeps_grad_fn,
    anomaly_mode_left_on
);
