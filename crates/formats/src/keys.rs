//! The words of a snapshot file, as small numbers.

use vramscope_model::{Action, StringId, Symbols};
use vramscope_pickle::{Atoms, StrId};

macro_rules! keys {
    ($($variant:ident = $name:literal),+ $(,)?) => {
        /// A key of one of the file's dicts.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Key {
            $($variant,)+
            /// A key that is of no use here.
            Unknown,
        }

        impl Key {
            fn from_name(name: &str) -> Self {
                match name {
                    $($name => Self::$variant,)+
                    _ => Self::Unknown,
                }
            }
        }
    };
}

keys! {
    Action = "action",
    Addr = "addr",
    DeviceFree = "device_free",
    Size = "size",
    Stream = "stream",
    TimeUs = "time_us",
    Frames = "frames",
    CompileContext = "compile_context",
    UserMetadata = "user_metadata",
    InternalMetadata = "internal_metadata",
    PoolId = "pool_id",
    Filename = "filename",
    Line = "line",
    Name = "name",
    Device = "device",
    Address = "address",
    TotalSize = "total_size",
    AllocatedSize = "allocated_size",
    ActiveSize = "active_size",
    RequestedSize = "requested_size",
    SegmentType = "segment_type",
    SegmentPoolId = "segment_pool_id",
    IsExpandable = "is_expandable",
    Blocks = "blocks",
    State = "state",
    History = "history",
    RealSize = "real_size",
    Stage = "stage",
    Segments = "segments",
    DeviceTraces = "device_traces",
    AllocatorSettings = "allocator_settings",
    ExternalAnnotations = "external_annotations",
    HostSegments = "host_segments",
    HostTraces = "host_traces",
}

impl Key {
    #[inline]
    pub(crate) fn bit(self) -> u64 {
        1 << self as u8
    }
}

/// What a text of the file means, worked out once for each distinct one.
#[derive(Clone, Copy)]
struct Word {
    key: Key,
    action: Action,
    /// Whether it is what writers put where there is nothing to say: "" or "N/A".
    is_blank: bool,
    /// Where the text went in [`Symbols`], once it was needed there.
    symbol: Option<StringId>,
}

/// The meaning of each text of a file.
#[derive(Default)]
pub(crate) struct Words(Vec<Word>);

impl Words {
    #[inline]
    fn word(&mut self, id: StrId, atoms: &Atoms) -> Word {
        match self.0.get(id.0 as usize) {
            Some(&word) => word,
            None => self.learn(id, atoms),
        }
    }

    #[cold]
    fn learn(&mut self, id: StrId, atoms: &Atoms) -> Word {
        for i in self.0.len()..atoms.len() {
            let text = atoms.str(StrId(i as u32));
            self.0.push(Word {
                key: Key::from_name(text),
                action: Action::from_name(text),
                is_blank: matches!(text, "" | "N/A"),
                symbol: None,
            });
        }
        let none = Word { key: Key::Unknown, action: Action::Other, is_blank: false, symbol: None };
        self.0.get(id.0 as usize).copied().unwrap_or(none)
    }

    /// The key that a text is.
    #[inline]
    pub(crate) fn key(&mut self, id: StrId, atoms: &Atoms) -> Key {
        self.word(id, atoms).key
    }

    /// The action that a text names.
    #[inline]
    pub(crate) fn action(&mut self, id: StrId, atoms: &Atoms) -> Action {
        self.word(id, atoms).action
    }

    /// Whether a text says nothing: "" or "N/A".
    #[inline]
    pub(crate) fn is_blank(&mut self, id: StrId, atoms: &Atoms) -> bool {
        self.word(id, atoms).is_blank
    }

    /// The text among the symbols.
    pub(crate) fn symbol(&mut self, id: StrId, atoms: &Atoms, symbols: &mut Symbols) -> StringId {
        if let Some(known) = self.word(id, atoms).symbol {
            return known;
        }
        let symbol = symbols.string(atoms.str(id));
        if let Some(word) = self.0.get_mut(id.0 as usize) {
            word.symbol = Some(symbol);
        }
        symbol
    }
}
