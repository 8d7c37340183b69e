//! Hugging Face, Lightning, torchmetrics.

mod lightning;

rules!(
    trainer_metrics_accumulate_logits,
    generate_extras_kept,
    past_key_values_kept,
    use_cache_while_training,
    step_outputs_never_cleared,
    memory_retaining_epoch_end_hook,
    step_returns_tensors,
    predict_returns_everything,
    metric_not_reset,
    gather_accumulate_on_device,
);
