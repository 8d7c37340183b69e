//! Data loading and host memory.

rules!(
    cycle_on_loader,
    loader_restarted_each_step,
    loader_created_in_loop,
    containers_in_dataset,
    kept_worker_batch,
    cuda_in_worker,
    many_pinned_batches,
    materialised_loader,
    cuda_tensor_through_queue,
);
