//! TensorFlow and Keras.

mod keras;
mod session;

/// What compiles functions.
const FUNCTION: &[&str] = &["tensorflow.function", "tensorflow.compat.v2.function"];

rules!(
    ops_built_in_session_loop,
    session_without_graph_scope_or_close,
    tf_function_python_scalar,
    tf_function_created_in_loop,
    keras_predict_in_loop,
    keras_model_in_loop,
    keras_compile_in_loop,
    persistent_tape_kept,
    tf_data_cache_or_huge_shuffle,
    py_function_or_dataset_in_loop,
    side_effect_append_in_traced_function,
);
