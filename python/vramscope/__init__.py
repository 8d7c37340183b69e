"""vramscope: where a deep-learning job's GPU memory went, and who holds it."""
