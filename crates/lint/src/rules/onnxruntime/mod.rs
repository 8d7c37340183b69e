//! ONNX Runtime.

rules!();
