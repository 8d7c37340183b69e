//! Where `CPython` keeps what it does not tell: offsets for each release, as its headers have them for 64 bits. None is believed before
//! [`probe`](super::probe) has seen it to be true in the running interpreter.

/// Offsets of one release.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) frames: Frames,
    pub(super) thread: Thread,
    pub(super) collector: Collector,
    /// None before 3.11: instances have a dict or no attributes.
    pub(super) values: Option<Values>,
}

/// How running frames are found and read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frames {
    /// In the thread state: the top frame, or what points to it.
    pub(super) top: usize,
    /// From there to the top frame.
    pub(super) through: Option<usize>,
    /// In a frame object: the frame itself. Before 3.11 it is the frame object.
    pub(super) of_object: Option<usize>,
    pub(super) code: usize,
    pub(super) previous: usize,
    pub(super) globals: usize,
    pub(super) locals: usize,
    /// The frame object, if there is one.
    pub(super) object: Option<usize>,
    pub(super) function: Option<usize>,
    pub(super) owner: Option<usize>,
    /// The generator that runs in the frame: from a frame back to it, or a field before 3.11.
    pub(super) generator: Generator,
    pub(super) slots: usize,
    pub(super) depth: Depth,
    /// Since 3.14 the low bits of a slot say whether the reference is counted, or that it is a number.
    pub(super) tagged: bool,
    pub(super) code_fields: Code,
}

/// How a frame and its generator find each other.
#[derive(Clone, Copy, Debug)]
pub(super) enum Generator {
    /// The frame lies in the generator, that far behind its start.
    Around(usize),
    /// The frame has the generator in this field, the generator the frame in the other.
    Fields { of_frame: usize, of_generator: usize },
}

/// How the depth of the evaluation stack is kept.
#[derive(Clone, Copy, Debug)]
pub(super) enum Depth {
    /// A pointer behind the top; null while it runs.
    Pointer(usize),
    /// Number of items above the variables; negative while it runs.
    AboveVariables(usize),
    /// Number of slots, variables included; negative while it runs.
    Slots(usize),
}

/// Fields of code objects.
#[derive(Clone, Copy, Debug)]
pub(super) struct Code {
    pub(super) name: usize,
    pub(super) stack_size: usize,
    pub(super) variables: Variables,
}

/// Where a code object has the names of its variables.
#[derive(Clone, Copy, Debug)]
pub(super) enum Variables {
    /// In three tuples: plain, of cells, free.
    Three([usize; 3]),
    /// In one tuple.
    One(usize),
}

/// Fields of the thread state that refer to what a thread holds. Unlike the rest, these are never followed without knowing that what they
/// refer to is an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thread {
    /// The exception that is handled, outside of generators: one field, or type, value and traceback.
    pub(super) exception: &'static [usize],
    /// The current context, with the context variables.
    pub(super) context: usize,
    /// The dict of thread-local data.
    pub(super) dict: usize,
}

/// The collector's lists.
#[derive(Clone, Copy, Debug)]
pub(super) struct Collector {
    /// In the interpreter state: the head of the youngest generation.
    pub(super) generations: usize,
    /// From there: to the pointer to it, by which it is recognised.
    pub(super) recognised_by: usize,
    /// From there: to the head of the frozen objects.
    pub(super) permanent: usize,
}

/// Attributes of instances that have no dict yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Values {
    /// In the type: the keys that its instances share.
    pub(super) shared_keys: usize,
    pub(super) kept: Kept,
}

/// Where the values are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kept {
    /// Behind a pointer of their own, that far before the object.
    Behind(usize),
    /// Behind the pointer to the dict, that far before the object, if it is odd: the address plus one.
    BehindOdd(usize),
    /// At the object's end, if the byte there says that they are valid.
    AtEnd { valid: usize, values: usize },
}

/// Where the dict of an instance that manages it is: that far before the object.
pub(super) const MANAGED_DICT: usize = 24;

/// What is said to be so in a release; nothing of those that are not known.
pub(super) fn of_release(minor: u8) -> Option<Layout> {
    let collector = |interpreter: usize, recognised_by, permanent| Collector {
        generations: interpreter + 24,
        recognised_by,
        permanent,
    };
    let since_3_11 = Frames {
        top: 72,
        through: None,
        of_object: Some(24),
        code: 0,
        previous: 8,
        globals: 24,
        locals: 40,
        object: Some(48),
        function: Some(16),
        owner: Some(70),
        generator: Generator::Around(72),
        slots: 72,
        depth: Depth::Slots(64),
        tagged: false,
        code_fields: Code { name: 120, stack_size: 64, variables: Variables::One(96) },
    };
    let before_3_11 = Frames {
        top: 24,
        through: None,
        of_object: None,
        code: 32,
        previous: 24,
        globals: 48,
        locals: 56,
        object: None,
        function: None,
        owner: None,
        generator: Generator::Fields { of_frame: 96, of_generator: 16 },
        slots: 360,
        depth: Depth::Pointer(72),
        tagged: false,
        code_fields: Code { name: 112, stack_size: 32, variables: Variables::Three([72, 88, 80]) },
    };
    let thread_before_3_11 = Thread { exception: &[112, 120, 128], context: 240, dict: 152 };
    Some(match minor {
        9 => Layout {
            frames: before_3_11,
            thread: thread_before_3_11,
            collector: collector(616, 72, 80),
            values: None,
        },
        10 => Layout {
            frames: Frames {
                generator: Generator::Fields { of_frame: 88, of_generator: 16 },
                slots: 352,
                depth: Depth::AboveVariables(80),
                ..before_3_11
            },
            thread: thread_before_3_11,
            collector: collector(616, 72, 80),
            values: None,
        },
        11 => Layout {
            frames: Frames {
                top: 56,
                through: Some(8),
                code: 32,
                previous: 48,
                globals: 8,
                locals: 24,
                object: Some(40),
                function: Some(0),
                owner: Some(69),
                generator: Generator::Around(80),
                code_fields: Code { name: 120, stack_size: 68, variables: Variables::One(96) },
                ..since_3_11
            },
            thread: Thread { exception: &[320], context: 224, dict: 128 },
            collector: collector(648, 72, 80),
            values: Some(Values { shared_keys: 872, kept: Kept::Behind(32) }),
        },
        12 => Layout {
            frames: Frames { top: 56, through: Some(0), ..since_3_11 },
            thread: Thread { exception: &[256], context: 208, dict: 112 },
            collector: collector(112, 72, 80),
            values: Some(Values { shared_keys: 880, kept: Kept::BehindOdd(24) }),
        },
        13 => Layout {
            frames: since_3_11,
            thread: Thread { exception: &[256], context: 208, dict: 128 },
            collector: collector(7400, 72, 80),
            values: Some(Values { shared_keys: 880, kept: Kept::AtEnd { valid: 3, values: 8 } }),
        },
        14 => Layout {
            frames: Frames {
                owner: Some(74),
                slots: 80,
                depth: Depth::Pointer(64),
                tagged: true,
                ..since_3_11
            },
            thread: Thread { exception: &[256], context: 208, dict: 128 },
            collector: collector(7408, 232, 72),
            values: Some(Values { shared_keys: 880, kept: Kept::AtEnd { valid: 3, values: 8 } }),
        },
        _ => return None,
    })
}
