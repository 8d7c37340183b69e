//! Hugging Face, Lightning, torchmetrics.

rules!();
