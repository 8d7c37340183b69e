//! `vramscope lsp`.

use crate::args::{Format, Global};
use crate::exit::ExitStatus;
use crate::failure::Failure;
use crate::language_server;

pub(crate) fn run(global: &Global) -> anyhow::Result<ExitStatus> {
    if global.format != Format::Text || global.output.is_some() {
        return Err(Failure::error(
            "`vramscope lsp` talks to an editor in the editor's own language",
            "for files that other programs read: `vramscope check --format json --output FILE`",
        ));
    }
    let has_said_so = language_server::serve().map_err(|error| {
        Failure::error(
            format!("the editor could not be understood: {error}"),
            "let an editor start this command; for the terminal there is `vramscope check`",
        )
    })?;
    Ok(if has_said_so { ExitStatus::Clean } else { ExitStatus::Trouble })
}
