//! TensorFlow and Keras.

rules!();
