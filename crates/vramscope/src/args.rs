//! What the user can type.

mod check;
mod fix;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Parser, Subcommand, ValueEnum};
use vramscope_view::analysis::Moment;

pub(crate) use check::{Check, Least, Lsp, Rule};
pub(crate) use fix::Fix;

use crate::source::SourceRoot;

/// Finds out where a deep-learning job's GPU memory went: whether it leaks, at which line, how fast and since when.
///
/// Reads the memory snapshots that PyTorch writes (`torch.cuda.memory._dump_snapshot`), and what `vramscope run` records.
/// Nothing in a file is executed, and nothing leaves the machine.
#[derive(Debug, Parser)]
#[command(name = "vramscope", version, propagate_version = true, max_term_width = 100)]
#[command(
    after_help = "Exit status: 0 if nothing is wrong (or there is not enough to tell), 1 if something is (`inspect`: \
                  if a file contradicts itself; `whatif`: if memory runs out; `check`: if an error or a warning was found), 2 if the command could not do its work."
)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What holds for every command.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct Global {
    /// How the answer is written
    #[arg(long, global = true, value_parser = one_of(&[Format::Text, Format::Json, Format::Markdown]), default_value = "text")]
    pub(crate) format: Format,
    /// Write the answer to a file
    #[arg(short, long, global = true, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Overwrite the file of `--output` if it is there
    #[arg(long, global = true, requires = "output")]
    pub(crate) force: bool,
    /// When to use colour; `NO_COLOR` is respected
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    pub(crate) color: Color,
    /// No warnings, notes or progress
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Show what is left out: whole stacks, every device, phases, settings
    #[arg(short, long, global = true, action = ArgAction::SetTrue)]
    pub(crate) verbose: bool,
}

/// How an answer is written. Each command takes some of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For a terminal
    Text,
    /// One line each
    Concise,
    /// For programs; everything is in it
    Json,
    /// For an issue or a chat
    Markdown,
    /// SARIF 2.1.0, for code scanning and editors
    Sarif,
    /// Annotations of GitHub Actions
    Github,
    /// JUnit's XML, for servers that build and test
    Junit,
}

/// Takes these formats and no others.
fn one_of(formats: &[Format]) -> impl TypedValueParser<Value = Format> + use<> {
    let names = formats.iter().filter_map(Format::to_possible_value);
    PossibleValuesParser::new(names).map(|name| Format::from_str(&name, false).unwrap_or(Format::Text))
}

/// When colour is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// In terminals
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Is it a leak, and where? The verdict, sums that add up to the byte, and the lines that allocate
    #[command(
        after_help = "Exit status: 0 if nothing is wrong (or there is not enough to tell), 1 if something is, or if the \
                      run would run out of memory within `--capacity`, 2 if the command could not do its work."
    )]
    Analyze(Analyze),
    /// Which lines keep memory? Patterns in Python source that retain GPU memory, and the edits that remove them
    ///
    /// Reads `.py` files and notebooks without running anything. Rules and paths can be set in `[tool.vramscope]` of
    /// `pyproject.toml` or in `vramscope.toml`; a comment `# vramscope: ignore[LK102]` suppresses a rule on its line.
    #[command(
        after_help = "Exit status: 0 if nothing was found, or information only, 1 if an error or a warning was (with \
                      `--diff`: if anything would change), 2 if a file could not be read or the command could not do its work."
    )]
    Check(Check),
    /// What changed? Born, died and persisted between snapshots, by place
    Diff(Diff),
    /// Write the edits that stop proven leaks: of what `check` finds, only what a recording convicts
    ///
    /// Analyzes a recording as `analyze` does, and finds the pattern in the source code that each leak comes from. Shows the
    /// edits as a diff that `git apply -p0` and `patch -p0` understand, or writes them with `--apply`. Only leaks
    /// are fixed; memory that grows is if the object that holds it is known and the pattern fills it.
    #[command(
        after_help = "Exit status: 0 if no leak is convicted, or all were fixed with `--apply`, 1 if any is left (without \
                      `--apply`: if there is any), 2 if a file could not be written or the command could not do its work."
    )]
    Fix(Fix),
    /// Who holds the memory? Live bytes by what keeps them alive, and the references that lead to them
    ///
    /// Shows what `vramscope run` found out about the objects of a program: files `*.holders.json`, or those of a recording.
    #[command(after_help = "Exit status: 0 if any were shown, 2 if not.")]
    Holders(Holders),
    /// What is this file, and can it be trusted?
    Inspect(Inspect),
    /// What if the allocator had been set otherwise? The peak and the cost of each setting, and which one to set
    ///
    /// Replays what the program asked for under other settings of PyTorch's caching allocator, and first under its own,
    /// to show how far that can be believed. Of several devices it takes the one where most was reserved.
    #[command(
        after_help = "Exit status: 0 if memory suffices, 1 if it runs out under the recording's own settings, or a \
                      request failed when recorded that the replay serves under them (with \
                      `--conf` and without `--sweep`: under all settings that were named), 2 if the command could not do \
                      its work."
    )]
    Whatif(Whatif),
    /// Record a program while it runs, without changing it, and say at its end where its GPU memory went
    ///
    /// The program runs as without vramscope: same results, output, exit status. At the end of each step the allocator's
    /// counters are read; a window of history is recorded at the start, and again where memory grows, at an
    /// out-of-memory error, or on `kill -USR2`. All of it goes into one directory, which `vramscope analyze` reads.
    #[command(
        after_help = "Examples:\n  vramscope run train.py --epochs 3\n  vramscope run -m package.train --epochs 3\n  \
                      vramscope run torchrun --nproc-per-node=8 train.py\n  torchrun --nproc-per-node=8 -m vramscope run \
                      train.py\n\nSteps are counted by `vramscope.step()` where the program calls it, else by \
                      `optimizer.step()`, rounds of a `DataLoader`, or `backward()`; without any of them the counters are \
                      read a few times a second.\n\nExit status: that of the program."
    )]
    Run(Run),
    /// Shows what `check` finds in an editor, with its fixes: a language server on the standard input and output
    #[command(
        after_help = "Exit status: 0 if the editor said that it leaves, 1 if it went without a word, 2 if it could not be understood."
    )]
    Lsp(Lsp),
    /// What does a rule of `check` look for, and why? Its page, or a list of all rules
    #[command(after_help = "Exit status: 0 if there is such a rule, 2 if not.")]
    Rule(Rule),
}

impl Command {
    /// What is read, as it was named.
    pub(crate) fn paths(&self) -> &[PathBuf] {
        match self {
            Self::Analyze(command) => &command.paths,
            Self::Diff(command) => &command.paths,
            Self::Fix(command) => &command.paths,
            Self::Holders(command) => &command.paths,
            Self::Inspect(command) => &command.paths,
            Self::Whatif(command) => &command.paths,
            // Python files are many, and looked for by the command itself.
            Self::Check(_) | Self::Lsp(_) | Self::Rule(_) | Self::Run(_) => &[],
        }
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct Analyze {
    /// Snapshots, directories with snapshots, or patterns such as `run/*.pickle`. Snapshots of one process are put
    /// together; ranks are told apart by their paths (`rank0/…`, `…_rank1.pickle`). Of a recording by `vramscope run` all is
    /// read: steps, who holds the memory, settings. Of `.vramscope`, which is taken where nothing is named, it is the
    /// latest recording
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Look at this device only
    #[arg(long, value_name = "N", help_heading = "Selection")]
    pub(crate) device: Option<u32>,
    /// Look at this rank only
    #[arg(long, value_name = "N", help_heading = "Selection")]
    pub(crate) rank: Option<u32>,
    /// Leave out what was before: `step:40` (the start of step 40; the first one is step 1), `event:1000`, `50%`,
    /// `12.5s` after the first event, `2026-03-01T10:11:12Z`, or µs since 1970
    #[arg(long, value_name = "MOMENT", value_parser = crate::moment::parse, help_heading = "Selection")]
    pub(crate) since: Option<Moment>,
    /// Leave out what was after; `step:40` stands for the end of step 40
    #[arg(long, value_name = "MOMENT", value_parser = crate::moment::parse, help_heading = "Selection")]
    pub(crate) until: Option<Moment>,
    /// Memory that the device has for this process, such as `80GiB`: says whether and where the run would run out on such
    /// a device, and when it will be full
    #[arg(long, value_name = "SIZE", value_parser = crate::size::parse)]
    pub(crate) capacity: Option<u64>,
    /// How many findings and places to show
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) top: usize,
    /// Where the source code is, to show the lines and the pattern in them that keeps memory, with its fix: a directory, or
    /// `RECORDED=HERE` to replace the beginning of paths
    #[arg(long, value_name = "DIR")]
    pub(crate) source: Vec<SourceRoot>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Diff {
    /// Two or more snapshots, earlier ones first, or a directory with those of one process: each is compared with the
    /// next, and the first with the last. Of two or more directories or patterns, each a run, the last snapshots are
    /// compared
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Compare this device only
    #[arg(long, value_name = "N")]
    pub(crate) device: Option<u32>,
    /// How many places to show
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) top: usize,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Holders {
    /// Files `*.holders.json`, recordings by `vramscope run`, or `.vramscope` for the latest, which is taken where nothing is
    /// named
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Look at this rank only
    #[arg(long, value_name = "N")]
    pub(crate) rank: Option<u32>,
    /// Show every file of a recording rather than the last of each rank
    #[arg(long)]
    pub(crate) all: bool,
    /// How many holders to show
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) top: usize,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Inspect {
    /// Snapshots, directories or patterns
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Whatif {
    /// Snapshots of one process, directories or patterns. The history must be recorded; best from the start of the
    /// program on
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Try this setting, written as for `PYTORCH_CUDA_ALLOC_CONF`; may be given more than once
    #[arg(long, value_name = "STRING", allow_hyphen_values = true)]
    pub(crate) conf: Vec<String>,
    /// Try a set of sensible settings; this is what happens without `--conf`, too
    #[arg(long)]
    pub(crate) sweep: bool,
    /// Memory that the device has for this process, such as `80GiB`: says under which settings it would suffice
    #[arg(long, value_name = "SIZE", value_parser = crate::size::parse, help_heading = "Limits")]
    pub(crate) capacity: Option<u64>,
    /// Share of it that the process may reserve, as in `torch.cuda.set_per_process_memory_fraction`; overrides the
    /// settings
    #[arg(long, value_name = "SHARE", value_parser = crate::share::parse, help_heading = "Limits")]
    pub(crate) memory_fraction: Option<f64>,
    /// Replay this device
    #[arg(long, value_name = "N", help_heading = "Selection")]
    pub(crate) device: Option<u32>,
    /// Look at this rank only
    #[arg(long, value_name = "N", help_heading = "Selection")]
    pub(crate) rank: Option<u32>,
}

#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "switches, each on its own")]
pub(crate) struct Run {
    /// Run a module, as `python -m` does
    #[arg(short, long)]
    pub(crate) module: bool,
    /// Where recordings go: each run gets a directory of its own in it
    #[arg(long, value_name = "DIR", default_value = ".vramscope", help_heading = "Recording")]
    pub(crate) out: PathBuf,
    /// Steps in a window of recorded history
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Recording")]
    pub(crate) steps: u32,
    /// Whether a window is recorded from the start of the program on. `no`: only the counters are read until something
    /// looks wrong, and what was allocated by then has no stack
    #[arg(long, value_enum, value_name = "WHETHER", default_value_t = YesNo::Yes, help_heading = "Recording")]
    pub(crate) first_window: YesNo,
    /// Record history all the time, as far back as `--max-entries` allows
    #[arg(long, help_heading = "Recording")]
    pub(crate) always: bool,
    /// Also record a window so many seconds after the last one ended
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Recording")]
    pub(crate) every: Option<u32>,
    /// Stacks of allocations: with Python's frames, with those of C++ too (slow to write), or none
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = Stacks::Python, help_heading = "Recording")]
    pub(crate) stacks: Stacks,
    /// Events of history that are kept; older ones are overwritten
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = clap::value_parser!(u32).range(1_000..), help_heading = "Recording")]
    pub(crate) max_entries: u32,
    /// Do not look for who holds the memory
    #[arg(long, help_heading = "Recording")]
    pub(crate) no_holders: bool,
    /// Room on the disk that a process may take; the windows in the middle are dropped first
    #[arg(long, value_name = "SIZE", default_value = "2GiB", value_parser = crate::size::parse, help_heading = "Recording")]
    pub(crate) max_disk: u64,
    /// Also record the Python processes that the program starts, once they use a GPU; so it is anyway where the program is
    /// a launcher such as `torchrun`
    #[arg(long, help_heading = "Recording")]
    pub(crate) children: bool,
    /// A script with its arguments, a module with `-m`, or any command that starts Python
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    pub(crate) program: Vec<OsString>,
}

/// Yes or no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum YesNo {
    /// Yes
    Yes,
    /// No
    No,
}

/// Which stacks are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Stacks {
    /// Python's frames
    Python,
    /// Python's and C++'s frames
    All,
    /// None
    None,
}
