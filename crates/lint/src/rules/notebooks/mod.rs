//! Notebooks.

rules!(notebook_output_history, model_reload_cell,);
