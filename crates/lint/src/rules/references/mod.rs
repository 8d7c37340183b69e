//! References held by ordinary Python.

pub(crate) mod to_host;

rules!(
    oom_retry_inside_except,
    exception_object_kept,
    view_pins_base,
    global_container_of_tensors,
    class_level_container,
    mutable_default_argument,
    device_results_list,
);
