//! Autograd graphs that stay.

pub(crate) mod kept;

rules!(
    accumulate_attached_loss,
    append_attached_tensor,
    host_copy_without_detach,
    dict_accumulate_attached,
    cat_accumulate,
    aux_term_not_backpropagated,
    retain_graph_with_kept_value,
    needless_retain_graph,
    hidden_state_carry,
    attached_module_state,
);
