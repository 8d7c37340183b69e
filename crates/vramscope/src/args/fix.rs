//! What can be typed for `fix`.

use std::path::PathBuf;

use crate::source::SourceRoot;

#[derive(Debug, clap::Args)]
pub(crate) struct Fix {
    /// Recordings by `vramscope run`, snapshots, directories or patterns, as for `analyze`; where nothing is named, the latest
    /// recording in `.vramscope`
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Where the source code is: a directory, or `RECORDED=HERE` to replace the beginning of paths
    #[arg(long, value_name = "DIR", required = true)]
    pub(crate) source: Vec<SourceRoot>,
    /// Write the fixes into the files
    #[arg(long)]
    pub(crate) apply: bool,
    /// Also the fixes that may change what the program does
    #[arg(long)]
    pub(crate) unsafe_fixes: bool,
    /// Look at this device only
    #[arg(long, value_name = "N", help_heading = "Selection")]
    pub(crate) device: Option<u32>,
    /// Look at this rank only
    #[arg(long, value_name = "N", help_heading = "Selection")]
    pub(crate) rank: Option<u32>,
}
