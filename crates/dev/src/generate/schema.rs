//! `docs/schema/*.json` from the types that are written as JSON.

use anyhow::Context as _;

use super::Document;

pub(super) fn documents() -> anyhow::Result<Vec<Document>> {
    let documents = vramscope_report::json::schemas().into_iter().map(|(id, schema)| {
        let name = id.strip_prefix("vramscope.").and_then(|n| n.split_once('/'));
        let (name, _) = name.with_context(|| format!("`{id}` is not named as schemas are"))?;
        let text = serde_json::to_string_pretty(&schema)? + "\n";
        Ok(Document { path: format!("docs/schema/{name}.json"), text })
    });
    documents.collect()
}
