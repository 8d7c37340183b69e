//! What a file tells about the shapes of its batches.

use super::Context;
use crate::{
    flow::value::{Class, Value},
    syntax::{Ranged, TextRange, bool_literal, text_literal},
};

const COLLATORS: &[&str] = &[
    "transformers.DataCollatorWithPadding",
    "transformers.DataCollatorForSeq2Seq",
    "transformers.DataCollatorForTokenClassification",
    "transformers.DataCollatorForLanguageModeling",
    "transformers.default_data_collator",
];

impl Context<'_> {
    /// Where batches are padded to their longest item, so that they come in many shapes.
    pub(crate) fn pads_to_longest(&self) -> Option<TextRange> {
        let padding = self.calls_to(&["torch.nn.utils.rnn.pad_sequence"]).find(|it| !it.has_unpacking());
        let collator = || {
            self.calls_to(COLLATORS)
                .find(|it| it.keyword("pad_to_multiple_of").is_none() && it.keyword("max_length").is_none())
        };
        // `tokenizer(texts, padding=True)`
        let tokenizer = || {
            self.facts.calls.iter().find(|it| {
                let pads = it.keyword("padding").is_some_and(|it| {
                    bool_literal(&it.value) == Some(true) || text_literal(&it.value) == Some("longest")
                });
                let tokenizes = it.last_name().contains("tokenizer")
                    || matches!(&it.callee, crate::facts::Callee::Object(Value::Object(Class::External(path))) if path.contains("Tokenizer"));
                pads && tokenizes && it.keyword("pad_to_multiple_of").is_none()
            })
        };
        padding.or_else(collator).or_else(tokenizer).map(|it| it.expr.range())
    }
}
