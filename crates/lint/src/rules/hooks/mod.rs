//! Hooks, cycles and caches.

rules!(
    hook_appends_activations,
    hook_handle_discarded,
    hook_removal_not_in_finally,
    tensor_hook_captures_own_tensor,
    module_self_cycle,
    lr_lambda_captures_self,
    lru_cache_on_method,
    lru_cache_with_tensor_argument,
    unbounded_shape_keyed_cache,
    per_session_state_never_evicted,
    gc_disabled,
    watch_registered_in_loop,
    backward_hook_keeps_grads,
);
