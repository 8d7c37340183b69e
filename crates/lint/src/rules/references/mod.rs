//! References held by ordinary Python.

pub(crate) mod to_host;

rules!(
    oom_retry_inside_except,
    exception_object_kept,
    loop_variable_outlives_loop,
    previous_step_overlap,
    view_pins_base,
    global_container_of_tensors,
    class_level_container,
    mutable_default_argument,
    unfinished_generator_kept,
    closure_captures_batch,
    device_results_list,
);
