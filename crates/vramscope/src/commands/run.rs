//! `vramscope run`: what is asked for is read here; the Python package does it, inside the program's own process.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use crate::args::{Format, Global, Run, Stacks, YesNo};
use crate::exit::ExitStatus;
use crate::failure::Failure;

/// A program to be recorded, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Whether the program is named as a module.
    pub module: bool,
    /// The program's name and its arguments.
    pub program: Vec<OsString>,
    /// Where recordings go.
    pub out: OsString,
    /// The rest of the settings by the names that the recorder knows them by: numbers, words, `yes` and `no`.
    pub settings: Vec<(&'static str, String)>,
}

impl Recorded {
    pub(crate) fn new(command: Run, global: &Global) -> Self {
        let yes = |set: bool| if set { "yes" } else { "no" }.to_owned();
        let stacks = match command.stacks {
            Stacks::Python => "python",
            Stacks::All => "all",
            Stacks::None => "none",
        };
        let settings = vec![
            ("steps", command.steps.to_string()),
            ("first_window", yes(command.first_window == YesNo::Yes)),
            ("always", yes(command.always)),
            ("every_s", command.every.unwrap_or(0).to_string()),
            ("stacks", stacks.to_owned()),
            ("max_entries", command.max_entries.to_string()),
            ("holders", yes(!command.no_holders)),
            ("max_disk_bytes", command.max_disk.to_string()),
            ("children", yes(command.children)),
            ("quiet", yes(global.quiet)),
        ];
        Self { module: command.module, program: command.program, out: command.out.into_os_string(), settings }
    }
}

/// What a program prints is its own; what is said at its end is text on the standard error.
///
/// # Errors
/// When another kind of answer is asked for.
pub(crate) fn check_output(global: &Global) -> anyhow::Result<()> {
    if global.format == Format::Text && global.output.is_none() {
        return Ok(());
    }
    Err(Failure::error(
        "`vramscope run` says what it found as text, after all that the program prints",
        "record first, then ask: `vramscope analyze --format json --output FILE`",
    ))
}

/// Hands over to the package `vramscope` of the Python on the path. Returns only where there is none.
pub(crate) fn by_python(words: Vec<OsString>) -> anyhow::Result<ExitStatus> {
    let python = || Command::new("python3");
    // Not `import`: a package that is there but broken should say so itself.
    let finds = "import importlib.util, sys; sys.exit(importlib.util.find_spec('vramscope') is None)";
    let found = python().args(["-c", finds]).stdin(Stdio::null()).stderr(Stdio::null()).status();
    match found {
        Ok(status) if status.success() => {
            let error = python().args(["-m", "vramscope"]).args(words.into_iter().skip(1)).exec();
            Err(anyhow::Error::new(error).context("`python3` could not be started"))
        }
        Ok(_) => Err(Failure::error(
            "`python3` has no package `vramscope`, which does the recording",
            "`pip install vramscope` into the environment of the program",
        )),
        Err(error) => Err(Failure::error(
            format!("`python3` could not be started: {error}"),
            "recording is done inside a Python program; activate its environment",
        )),
    }
}
