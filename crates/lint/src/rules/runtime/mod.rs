//! Compilers, streams, process groups, profilers.

rules!(
    compile_in_loop,
    cudagraph_compile_with_dynamic_shapes,
    cuda_graph_per_shape_private_pool,
    stream_created_in_loop,
    cudnn_benchmark_variable_shapes,
    thread_per_request_inference,
    jit_trace_or_script_in_loop,
    new_group_in_loop,
    process_group_not_destroyed,
    full_state_dict_on_gpu,
    checkpoint_closure_captures_output,
    memory_history_left_on,
    profiler_without_schedule,
    ray_gpu_task_reuse,
    cublas_workspace_misread,
);
