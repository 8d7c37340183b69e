//! The generated documents: each has a file here that makes its text from the code, and so have the parts of others that are
//! generated.

mod cli;
mod detectors;
mod marked;
mod predictions;
mod rules;
mod schema;

use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// How to bring the documents up to date.
pub const COMMAND: &str = "cargo run -p vramscope-dev -- generate";

/// A document as it should be.
pub struct Document {
    /// Its path from the root of the repository.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// A document that is not as it should be.
pub struct Stale {
    /// Its path from the root of the repository.
    pub path: String,
    text: String,
    /// What is there, if anything is.
    found: Option<String>,
}

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every generated document.
pub fn documents() -> anyhow::Result<Vec<Document>> {
    let mut all = vec![cli::document(), detectors::document()];
    all.extend(rules::documents());
    all.extend(schema::documents()?);
    all.extend(marked::documents()?);
    Ok(all)
}

/// Those that are not as they should be.
pub fn stale() -> anyhow::Result<Vec<Stale>> {
    let stale = documents()?.into_iter().filter_map(|Document { path, text }| {
        let found = std::fs::read_to_string(root().join(&path)).ok();
        (found.as_ref() != Some(&text)).then_some(Stale { path, text, found })
    });
    Ok(stale.collect())
}

impl Stale {
    /// Puts it right.
    pub fn write(&self) -> anyhow::Result<()> {
        let path = root().join(&self.path);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
        std::fs::write(&path, &self.text).with_context(|| path.display().to_string())
    }

    /// Where it begins to differ, and what to do about it.
    pub fn difference(&self) -> String {
        let Self { path, text, found } = self;
        let Some(found) = found else { return format!("{path} is missing; run `{COMMAND}`") };
        let same = text.lines().zip(found.lines()).take_while(|(a, b)| a == b).count();
        let line = |text: &str| text.lines().nth(same).unwrap_or("the end of the file").to_owned();
        format!(
            "{path} is stale from line {} on; run `{COMMAND}`\n- {}\n+ {}",
            same + 1,
            line(found),
            line(text)
        )
    }
}
