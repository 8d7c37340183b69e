//! `vramscope.holders/1`: who holds the memory. The recorder writes it, and it is read back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use vramscope_view::holders::{self as view, Bytes};

/// The name of the schema.
pub const SCHEMA: &str = "vramscope.holders/1";

/// Who held the memory of a process at one moment.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Holders")]
pub struct Document {
    /// `vramscope.holders/1`.
    pub schema: String,
    /// The version of vramscope that wrote this.
    #[serde(default)]
    pub version: String,
    /// When it was, µs since 1970 UTC.
    #[serde(default)]
    pub time_us: Option<i64>,
    /// The step of the program that it came after, as the recorder counts; null where nothing was counted.
    #[serde(default)]
    pub step: Option<u64>,
    /// What steps were counted by: `optimizer`.
    #[serde(default)]
    pub step_source: Option<String>,
    /// The rank of the process, if known.
    #[serde(default)]
    pub rank: Option<u32>,
    /// The devices whose memory this is; empty for that of the CPU.
    #[serde(default)]
    pub devices: Vec<u32>,
    /// Bytes of all live blocks: the sum of `classes`.
    pub total_bytes: u64,
    /// These bytes by what keeps them alive; each block counts once.
    pub classes: Classes,
    /// Who holds them, most bytes first.
    pub holders: Vec<Holder>,
    /// The part of `classes.cpp_held` for which not even a storage was found.
    pub unexplained_bytes: u64,
    /// Each block as `[address, bytes, device, holder]`: the device is null for memory of the host, the holder is its place in
    /// `holders`, from 0.
    #[serde(default)]
    pub held_blocks: Vec<(u64, u64, Option<u32>, u32)>,
    /// What could not be looked at.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// Bytes by what keeps them alive.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Classes {
    /// Parameters of modules.
    pub parameters: u64,
    /// Gradients of parameters.
    pub gradients: u64,
    /// State of optimizers.
    pub optimizer_state: u64,
    /// Held only by the autograd graph.
    pub activations: u64,
    /// Buffers of modules.
    pub buffers: u64,
    /// Held by a path of Python references.
    pub user_held: u64,
    /// Unreachable, waiting for Python's garbage collector.
    pub cycle_garbage: u64,
    /// Given back, but another stream may still use it.
    pub pending: u64,
    /// Held by C++ code: no path from Python was found.
    pub cpp_held: u64,
}

/// What keeps a block alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Parameters of modules.
    Parameters,
    /// Gradients of parameters.
    Gradients,
    /// State of optimizers.
    OptimizerState,
    /// Held only by the autograd graph.
    Activations,
    /// Buffers of modules.
    Buffers,
    /// Held by a path of Python references.
    UserHeld,
    /// Unreachable, waiting for Python's garbage collector.
    CycleGarbage,
    /// Given back, but another stream may still use it.
    Pending,
    /// Held by C++ code: no path from Python was found.
    CppHeld,
}

/// Who holds memory: a path of references and what hangs on it.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Holder {
    /// The path as a programmer would write it, with indexes and keys as `[*]`: `__main__.losses[*]`.
    pub path: String,
    /// `autograd graph` where the memory hangs on the autograd graph of the object that the path names.
    pub through: Option<Through>,
    /// What keeps it alive.
    pub class: Class,
    /// Bytes of the blocks that it holds.
    pub bytes: u64,
    /// Bytes that nothing else holds: giving this up frees them.
    pub exclusive_bytes: u64,
    /// Who else holds the blocks, most bytes first: what has to be given up, too, before they are free. Empty in files of earlier
    /// versions, which did not look.
    #[serde(default)]
    pub also_held_by: Vec<AlsoHeldBy>,
    /// Bytes of the blocks that would still be held if everything in `also_held_by` were given up, too.
    #[serde(default)]
    pub held_by_more_bytes: u64,
    /// Blocks that it holds.
    pub blocks: u64,
    /// The same in every run of the same program for the same path.
    pub fingerprint: String,
    /// From the root to the memory.
    pub chain: Vec<Link>,
}

/// Another path to blocks of a holder.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct AlsoHeldBy {
    /// The path; for parameters and buffers that of their module.
    pub path: String,
    /// `autograd graph` where the memory hangs on the autograd graph of the object that the path names.
    pub through: Option<Through>,
    /// Bytes of the holder's blocks that this path holds, too.
    pub bytes: u64,
    /// How many blocks.
    pub blocks: u64,
}

/// Through what memory hangs on the object that the path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Through {
    /// The autograd graph.
    #[serde(rename = "autograd graph")]
    Autograd,
}

/// One object of a chain, and the reference that leads on from it.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// The object: `__main__`, `list of 40`.
    pub object: String,
    /// Its type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// How it refers to the next one; empty at the end.
    pub reference: String,
    /// Whether the object should still be there.
    pub status: Status,
    /// How that is known.
    pub reason: String,
    /// Whether the reference is a likely cause.
    #[serde(default)]
    pub suspect: bool,
}

/// Whether an object should still be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It should.
    Alive,
    /// It should be gone.
    Dead,
    /// Nobody can tell.
    Unknown,
}

/// Why a text is no holders.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It is damaged, or a field is missing or of another kind.
    #[error("damaged at byte {offset}: {reason}")]
    Damaged {
        /// Where, in bytes.
        offset: usize,
        /// What is wrong there; it names the field.
        reason: String,
    },
    /// It is of another schema.
    #[error("of schema `{found}`, not `{SCHEMA}`")]
    Schema {
        /// Its schema, or what stands in its place.
        found: String,
    },
}

/// The document as text.
pub fn render(file: &view::HoldersFile) -> String {
    super::text(&Document::from(file))
}

/// The document on one line, for files that nobody reads by eye: of many blocks it takes a fifth of the room.
pub fn render_compact(file: &view::HoldersFile) -> String {
    // As for `text`.
    serde_json::to_string(&Document::from(file)).unwrap_or_default() + "\n"
}

/// Several documents as text: one as itself, several as an array.
pub fn render_all(files: &[view::HoldersFile]) -> String {
    match files {
        [file] => render(file),
        _ => super::text(&super::list::<_, Document>(files)),
    }
}

/// Reads what [`render`] wrote, or something like it: nothing in it is trusted. The result has no path.
///
/// # Errors
/// When it is damaged or something else: where, and which field.
pub fn parse(text: &[u8]) -> Result<view::HoldersFile, Error> {
    #[derive(Deserialize)]
    struct Head {
        schema: Option<String>,
    }
    let damaged = |error: &serde_json::Error| Error::Damaged {
        offset: offset(text, error.line(), error.column()),
        reason: if error.is_eof() { "it ends too early".to_owned() } else { reason(error) },
    };
    let head: Head = serde_json::from_slice(text).map_err(|error| damaged(&error))?;
    match head.schema.as_deref() {
        Some(SCHEMA) => {}
        Some(other) => return Err(Error::Schema { found: excerpt(other) }),
        None => return Err(Error::Schema { found: "none".to_owned() }),
    }
    let document: Document = serde_json::from_slice(text).map_err(|error| damaged(&error))?;
    Ok(document.into())
}

/// The number of bytes before a place.
fn offset(text: &[u8], line: usize, column: usize) -> usize {
    let lines = text.split(|&b| b == b'\n').take(line.saturating_sub(1));
    (lines.map(|line| line.len() + 1).sum::<usize>() + column).min(text.len())
}

/// What a parser says, without its own way of telling the place.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let end = text.rfind(" at line ").unwrap_or(text.len());
    excerpt(text.get(..end).unwrap_or(&text))
}

/// As much of a text as a message bears.
fn excerpt(text: &str) -> String {
    const MOST: usize = 120;
    let mut shown: String = text.chars().take(MOST).flat_map(char::escape_debug).collect();
    if text.chars().nth(MOST).is_some() {
        shown.push('…');
    }
    shown
}

/// One to one, in both directions.
macro_rules! same {
    ($name:ident: $($variant:ident),+) => {
        impl From<view::$name> for $name {
            fn from(from: view::$name) -> Self {
                match from {
                    $(view::$name::$variant => Self::$variant,)+
                }
            }
        }

        impl From<$name> for view::$name {
            fn from(from: $name) -> Self {
                match from {
                    $($name::$variant => Self::$variant,)+
                }
            }
        }
    };
}

same!(Class: Parameters, Gradients, OptimizerState, Activations, Buffers, UserHeld, CycleGarbage, Pending, CppHeld);
same!(Through: Autograd);
same!(Status: Alive, Dead, Unknown);

impl From<&view::Classes> for Classes {
    fn from(from: &view::Classes) -> Self {
        Self {
            parameters: from.parameters.0,
            gradients: from.gradients.0,
            optimizer_state: from.optimizer_state.0,
            activations: from.activations.0,
            buffers: from.buffers.0,
            user_held: from.user_held.0,
            cycle_garbage: from.cycle_garbage.0,
            pending: from.pending.0,
            cpp_held: from.cpp_held.0,
        }
    }
}

impl From<Classes> for view::Classes {
    fn from(from: Classes) -> Self {
        Self {
            parameters: Bytes(from.parameters),
            gradients: Bytes(from.gradients),
            optimizer_state: Bytes(from.optimizer_state),
            activations: Bytes(from.activations),
            buffers: Bytes(from.buffers),
            user_held: Bytes(from.user_held),
            cycle_garbage: Bytes(from.cycle_garbage),
            pending: Bytes(from.pending),
            cpp_held: Bytes(from.cpp_held),
        }
    }
}

impl From<&view::Link> for Link {
    fn from(from: &view::Link) -> Self {
        Self {
            object: from.object.clone(),
            type_name: from.type_name.clone(),
            reference: from.reference.clone(),
            status: from.status.into(),
            reason: from.reason.clone(),
            suspect: from.suspect,
        }
    }
}

impl From<Link> for view::Link {
    fn from(from: Link) -> Self {
        Self {
            object: from.object,
            type_name: from.type_name,
            reference: from.reference,
            suspect: from.suspect,
            status: from.status.into(),
            reason: from.reason,
        }
    }
}

impl From<&view::AlsoHeldBy> for AlsoHeldBy {
    fn from(from: &view::AlsoHeldBy) -> Self {
        Self {
            path: from.path.clone(),
            through: from.through.map(Into::into),
            bytes: from.bytes.0,
            blocks: from.blocks,
        }
    }
}

impl From<AlsoHeldBy> for view::AlsoHeldBy {
    fn from(from: AlsoHeldBy) -> Self {
        Self {
            path: from.path,
            through: from.through.map(Into::into),
            bytes: Bytes(from.bytes),
            blocks: from.blocks,
        }
    }
}

impl From<&view::Holder> for Holder {
    fn from(from: &view::Holder) -> Self {
        Self {
            path: from.path.clone(),
            through: from.through.map(Into::into),
            class: from.class.into(),
            bytes: from.bytes.0,
            exclusive_bytes: from.exclusive_bytes.0,
            also_held_by: super::list(&from.also_held_by),
            held_by_more_bytes: from.held_by_more.0,
            blocks: from.blocks,
            fingerprint: from.fingerprint.clone(),
            chain: super::list(&from.chain),
        }
    }
}

impl From<Holder> for view::Holder {
    fn from(from: Holder) -> Self {
        Self {
            path: from.path,
            through: from.through.map(Into::into),
            class: from.class.into(),
            bytes: Bytes(from.bytes),
            exclusive_bytes: Bytes(from.exclusive_bytes),
            also_held_by: from.also_held_by.into_iter().map(Into::into).collect(),
            held_by_more: Bytes(from.held_by_more_bytes),
            blocks: from.blocks,
            fingerprint: from.fingerprint,
            chain: from.chain.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<&view::HoldersFile> for Document {
    fn from(from: &view::HoldersFile) -> Self {
        let holders = &from.holders;
        Self {
            schema: SCHEMA.to_owned(),
            version: super::VERSION.to_owned(),
            time_us: from.time_us,
            step: from.step.as_ref().map(|step| step.number),
            step_source: from.step.as_ref().map(|step| step.source.clone()),
            rank: from.rank,
            devices: from.devices.clone(),
            total_bytes: holders.total.0,
            classes: (&holders.classes).into(),
            holders: super::list(&holders.holders),
            unexplained_bytes: holders.unexplained.0,
            held_blocks: holders.blocks.iter().map(|b| (b.address, b.bytes.0, b.device, b.holder)).collect(),
            warnings: holders.warnings.clone(),
        }
    }
}

impl From<Document> for view::HoldersFile {
    fn from(from: Document) -> Self {
        let mut warnings = from.warnings;
        let classes: view::Classes = from.classes.into();
        if classes.sum().0 != from.total_bytes {
            warnings.push(format!(
                "`classes` sum to {} bytes, but `total_bytes` is {}",
                classes.sum().0,
                from.total_bytes
            ));
        }
        let n_holders = from.holders.len();
        let mut blocks: Vec<view::HeldBlock> = from
            .held_blocks
            .into_iter()
            .map(|(address, bytes, device, holder)| view::HeldBlock {
                address,
                bytes: Bytes(bytes),
                device,
                holder,
            })
            .collect();
        let n_blocks = blocks.len();
        blocks.retain(|block| (block.holder as usize) < n_holders);
        if blocks.len() < n_blocks {
            let lost = n_blocks - blocks.len();
            warnings.push(format!("`held_blocks`: {lost} of {n_blocks} name a holder that is not there"));
        }
        // Whoever looks one up relies on the order.
        blocks.sort_by_key(|block| block.address);
        let holders = view::Holders {
            total: Bytes(from.total_bytes),
            classes,
            holders: from.holders.into_iter().map(Into::into).collect(),
            unexplained: Bytes(from.unexplained_bytes),
            blocks,
            warnings,
        };
        let step = from.step.zip(from.step_source).map(|(number, source)| view::Step { number, source });
        Self {
            path: String::new(),
            rank: from.rank,
            time_us: from.time_us,
            step,
            devices: from.devices,
            holders,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> view::HoldersFile {
        let link = |object: &str, reference: &str, suspect| view::Link {
            object: object.into(),
            type_name: "list".into(),
            reference: reference.into(),
            suspect,
            status: view::Status::Unknown,
            reason: String::new(),
        };
        let holder = view::Holder {
            path: "__main__.losses[*]".into(),
            through: Some(view::Through::Autograd),
            class: view::Class::Activations,
            bytes: Bytes(1024),
            exclusive_bytes: Bytes(512),
            also_held_by: vec![view::AlsoHeldBy {
                path: "__main__.kept[*]".into(),
                through: None,
                bytes: Bytes(512),
                blocks: 1,
            }],
            held_by_more: Bytes(256),
            blocks: 2,
            fingerprint: "0123456789ab".into(),
            chain: vec![link("__main__", ".losses", true), link("list of 2", "", false)],
        };
        let block = |address, device| view::HeldBlock { address, bytes: Bytes(512), device, holder: 0 };
        view::HoldersFile {
            time_us: Some(5),
            step: Some(view::Step { number: 7, source: "optimizer".into() }),
            rank: Some(1),
            devices: vec![0],
            holders: view::Holders {
                total: Bytes(1024),
                classes: view::Classes { activations: Bytes(1024), ..view::Classes::default() },
                holders: vec![holder],
                unexplained: Bytes(0),
                blocks: vec![block(4096, Some(0)), block(8192, None)],
                warnings: vec!["a frame could not be read".into()],
            },
            ..view::HoldersFile::default()
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let text = render(&file());
        let read = parse(text.as_bytes()).unwrap();
        assert_eq!(read.holders, file().holders);
        assert_eq!(read.step, file().step);
        assert_eq!((read.time_us, read.rank, read.devices.as_slice()), (Some(5), Some(1), &[0][..]));
        assert_eq!(render(&read), text);
        assert_eq!(parse(render_compact(&file()).as_bytes()).unwrap().holders, read.holders);
        assert!(
            text.contains("\"through\": \"autograd graph\"") && text.contains("\"type\": \"list\""),
            "{text}"
        );
    }

    #[test]
    fn what_the_issue_promises_is_enough_to_be_read() {
        let text = br#"{"schema": "vramscope.holders/1", "total_bytes": 0, "classes": {"parameters": 0, "gradients": 0,
            "optimizer_state": 0, "activations": 0, "buffers": 0, "user_held": 0, "cycle_garbage": 0, "pending": 0, "cpp_held": 0},
            "holders": [], "unexplained_bytes": 0, "of a later version": {}}"#;
        assert_eq!(parse(text).unwrap().holders, view::Holders::default());
    }

    #[test]
    fn files_that_do_not_say_who_else_holds_it_are_read() {
        let mut document: serde_json::Value = serde_json::from_str(&render(&file())).unwrap();
        let holder = document["holders"][0].as_object_mut().unwrap();
        assert!(holder.remove("also_held_by").is_some() && holder.remove("held_by_more_bytes").is_some());
        let read = parse(document.to_string().as_bytes()).unwrap().holders;
        let mut want = file().holders;
        (want.holders[0].also_held_by, want.holders[0].held_by_more) = (Vec::new(), Bytes(0));
        assert_eq!(read, want);
    }

    #[test]
    fn who_else_holds_it_is_shown_below_the_figures() {
        let file = file();
        let excerpts = crate::Excerpts::default();
        let layout = crate::text::Layout {
            palette: crate::Palette::Plain,
            width: 80,
            top: 5,
            verbose: false,
            excerpts: &excerpts,
        };
        let text = crate::text::holders::render(std::slice::from_ref(&file), &layout);
        let below = text.lines().skip_while(|line| !line.contains("fixing this")).skip(1).take(3);
        insta::assert_snapshot!(below.collect::<Vec<_>>().join("\n"), @"
        also held by __main__.kept[*] (512 B)
        also held by more, not named here (256 B): freeing it all needs all of these
        ┬───
        ");
        let text = crate::markdown::holders::render(&[file], 5, false);
        let below = text.lines().skip_while(|line| !line.contains("fixing this")).skip(2).take(2);
        insta::assert_snapshot!(below.collect::<Vec<_>>().join("\n"), @"
        - also held by `__main__.kept[*]` (512 B)
        - also held by more, not named here (256 B): freeing it all needs all of these
        ");
    }

    #[test]
    fn damage_is_told_by_its_place_and_field() {
        let check =
            |text: &str, want: &str| assert_eq!(parse(text.as_bytes()).unwrap_err().to_string(), want);
        let whole = render(&file());
        check("", "damaged at byte 0: it ends too early");
        check("{}", "of schema `none`, not `vramscope.holders/1`");
        check(r#"{"schema": "vramscope.diff/1"}"#, "of schema `vramscope.diff/1`, not `vramscope.holders/1`");
        check("{\"schema\": ", "damaged at byte 11: it ends too early");
        let lacking =
            parse(whole.replace("\"total_bytes\"", "\"total\"").as_bytes()).unwrap_err().to_string();
        assert!(lacking.ends_with(": missing field `total_bytes`"), "{lacking}");
        let unknown = whole.replace("\"class\": \"activations\"", "\"class\": \"magic\"");
        assert!(parse(unknown.as_bytes()).unwrap_err().to_string().contains("unknown variant `magic`"));
    }

    #[test]
    fn no_beginning_of_a_document_is_taken_for_the_whole() {
        let whole = render(&file());
        let end = whole.trim_end().len();
        for n in 0..end {
            assert!(parse(&whole.as_bytes()[..n]).is_err(), "{n}");
        }
    }

    #[test]
    fn no_change_of_a_byte_can_do_harm() {
        let whole = render_compact(&file()).into_bytes();
        let excerpts = crate::Excerpts::default();
        let layout = crate::text::Layout {
            palette: crate::Palette::Plain,
            width: 80,
            top: 5,
            verbose: false,
            excerpts: &excerpts,
        };
        let mut read = 0;
        for i in 0..whole.len() {
            for byte in [b'9', b'"', b'{', b' ', 0x1b, 0xff] {
                let mut changed = whole.clone();
                changed[i] = byte;
                let Ok(file) = parse(&changed) else { continue };
                let files = [file];
                let text = crate::text::holders::render(&files, &layout);
                assert!(text.starts_with("HELD") && !text.contains('\x1b'), "{text}");
                assert!(crate::markdown::holders::render(&files, 5, true).starts_with("## Held"));
                read += 1;
            }
        }
        assert!(read > 500, "{read}");
    }

    #[test]
    fn contradictions_are_kept_as_warnings() {
        let mut document = Document::from(&file());
        document.total_bytes = 7;
        document.held_blocks.push((0, 1, None, 9));
        let text = serde_json::to_string(&document).unwrap();
        let read = parse(text.as_bytes()).unwrap().holders;
        assert_eq!(
            read.warnings[1..],
            [
                "`classes` sum to 1024 bytes, but `total_bytes` is 7",
                "`held_blocks`: 1 of 3 name a holder that is not there"
            ]
        );
        assert_eq!(read.blocks.len(), 2);
    }
}
