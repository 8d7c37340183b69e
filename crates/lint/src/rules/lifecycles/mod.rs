//! Models, optimizers, checkpoints and their lifecycles.

mod model_loads;
mod on_gpu;

rules!(
    param_group_added_in_loop,
    stale_optimizer_state,
    deepcopy_on_device,
    load_without_map_location,
    checkpoint_kept,
    models_kept_in_loop,
    trainer_in_loop,
    optuna_keeps_models,
    accelerate_prepare_in_loop,
    adapter_loaded_in_loop,
    model_built_per_request,
    streamlit_uncached_model,
    vllm_recreated,
    empty_cache_each_step,
    gradients_zeroed_in_place,
);
