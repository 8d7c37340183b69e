//! The machine itself: stack, marks, memo, and the loop over opcodes.

use rustc_hash::FxHashMap;

use crate::atoms::Atoms;
use crate::error::{Error, ErrorKind};
use crate::opcode as op;
use crate::value::{Kind, Value};

/// What receives the containers of a pickle as they are filled.
///
/// Containers are numbered by the sink; the machine hands the number back with every batch of items.
/// Items arrive exactly as often as the file says: a list of a million entries may come in one batch or
/// in a thousand, a dict may come key by key.
pub trait Sink {
    /// A new, empty dict; returns its number.
    fn dict(&mut self) -> u32;
    /// A new, empty list or set; returns its number.
    fn list(&mut self) -> u32;
    /// A tuple with all its items; returns its number.
    fn tuple(&mut self, items: &[Value], cx: &Context<'_>) -> u32;
    /// Keys and values, alternating, put into a dict. `pairs` has even length.
    fn set_items(&mut self, dict: u32, pairs: &[Value], cx: &Context<'_>);
    /// Items put at the end of a list.
    fn append(&mut self, list: u32, items: &[Value], cx: &Context<'_>);
}

/// What a sink may look at while it takes items.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// Texts and wide numbers of the file.
    pub atoms: &'a Atoms,
    /// Offset in bytes of the opcode being carried out.
    pub offset: u64,
}

/// Bounds on what a file may declare.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of one text, number or bytes object.
    pub value_bytes: u64,
    /// Values kept at a time, on the stack and in the memo together.
    pub values: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { value_bytes: 64 << 20, values: 1 << 31 }
    }
}

/// How far [`Machine::feed`] got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fed {
    /// Bytes used up; the rest must be given again, with more behind it.
    pub consumed: usize,
    /// Bytes that must be there beyond `consumed` before the next opcode can be carried out; 0 if done.
    pub needed: usize,
    /// Whether the pickle has ended (its STOP opcode was reached).
    pub done: bool,
}

/// A pickle machine; see the crate's documentation.
pub struct Machine {
    stack: Vec<Value>,
    /// Heights of the stack at the marks.
    marks: Vec<u32>,
    memo: Vec<Value>,
    /// Memo slots far beyond the end of `memo`: a file may name any slot, so they cannot all have a place.
    far_memo: FxHashMap<u64, Value>,
    atoms: Atoms,
    limits: Limits,
    offset: u64,
    protocol: u8,
    root: Option<Value>,
    first_global: Option<String>,
}

impl Default for Machine {
    fn default() -> Self {
        Self::new()
    }
}

/// `Some(())` when an opcode was carried out, `None` when its bytes are not all there yet.
type Step = Result<Option<()>, ErrorKind>;

impl Machine {
    /// A machine at the start of a pickle.
    pub fn new() -> Self {
        Self::with_limits(Limits::default())
    }

    /// A machine with bounds of one's own.
    pub fn with_limits(limits: Limits) -> Self {
        Self {
            stack: Vec::with_capacity(1024),
            marks: Vec::with_capacity(64),
            memo: Vec::new(),
            far_memo: FxHashMap::default(),
            atoms: Atoms::default(),
            limits,
            offset: 0,
            protocol: 0,
            root: None,
            first_global: None,
        }
    }

    /// Texts and wide numbers read so far.
    pub fn atoms(&self) -> &Atoms {
        &self.atoms
    }

    /// Offset in bytes of the next opcode.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The protocol that the file names; 0 where it names none, as protocols 0 and 1 do.
    pub fn protocol(&self) -> u8 {
        self.protocol
    }

    /// The value that the pickle holds, once it is done.
    pub fn root(&self) -> Option<Value> {
        self.root
    }

    /// The first class or function that the file asked for (`module name`), if any. It was not looked up.
    pub fn first_global(&self) -> Option<&str> {
        self.first_global.as_deref()
    }

    /// Carries out as many whole opcodes as `buf` holds.
    ///
    /// # Errors
    /// When the bytes are not a pickle. What the sink got before that stays valid, and [`Machine::close`]
    /// hands it the rest of what was read.
    pub fn feed<S: Sink>(&mut self, buf: &[u8], sink: &mut S) -> Result<Fed, Error> {
        let base = self.offset;
        // Checked once for each piece: an opcode of one byte keeps at most one value.
        let kept = self.stack.len() as u64 + self.memo.len() as u64 + self.far_memo.len() as u64;
        if kept > self.limits.values {
            return Err(Error { offset: base, kind: ErrorKind::TooMany });
        }
        let mut reader = Reader { buf, at: 0, needed: 1 };
        while self.root.is_none() {
            let start = reader.at;
            let Some(opcode) = reader.u8() else { break };
            self.offset = base + start as u64;
            match self.step(opcode, &mut reader, sink) {
                Ok(Some(())) => reader.needed = 1,
                Ok(None) => {
                    reader.needed += reader.at - start;
                    reader.at = start;
                    break;
                }
                Err(kind) => return Err(Error { offset: self.offset, kind }),
            }
        }
        self.offset = base + reader.at as u64;
        let done = self.root.is_some();
        Ok(Fed { consumed: reader.at, needed: if done { 0 } else { reader.needed }, done })
    }

    /// Hands to the sink what lies in containers still open, innermost first, as if the file had closed them.
    /// For files that end too early. Returns the outermost value.
    pub fn close<S: Sink>(&mut self, sink: &mut S) -> Option<Value> {
        while let Some(mark) = self.marks.pop() {
            let mark = (mark as usize).min(self.stack.len());
            if let Some(&target) = mark.checked_sub(1).and_then(|i| self.stack.get(i)) {
                let items = self.stack.get(mark..).unwrap_or(&[]);
                let cx = Context { atoms: &self.atoms, offset: self.offset };
                match target.kind() {
                    Kind::Dict(n) => sink.set_items(n, items.get(..items.len() & !1).unwrap_or(items), &cx),
                    Kind::List(n) => sink.append(n, items, &cx),
                    _ => {}
                }
            }
            self.stack.truncate(mark);
        }
        self.root.or(self.stack.first().copied())
    }

    #[inline(always)]
    fn step<S: Sink>(&mut self, opcode: u8, r: &mut Reader<'_>, sink: &mut S) -> Step {
        macro_rules! arg {
            ($e:expr) => {
                match $e {
                    Some(v) => v,
                    None => return Ok(None),
                }
            };
        }
        match opcode {
            op::LONG_BINGET => {
                let slot = arg!(r.u32());
                let value = self.recall(u64::from(slot))?;
                self.stack.push(value);
            }
            op::BINGET => {
                let slot = arg!(r.u8());
                let value = self.recall(u64::from(slot))?;
                self.stack.push(value);
            }
            op::MEMOIZE => {
                let top = self.top()?;
                self.memo.push(top);
            }
            op::BININT1 => {
                let v = arg!(r.u8());
                self.push_small(i64::from(v));
            }
            op::BININT2 => {
                let v = arg!(r.u16());
                self.push_small(i64::from(v));
            }
            op::BININT => {
                let v = arg!(r.u32());
                self.push_small(i64::from(v as i32));
            }
            op::LONG1 => {
                let n = arg!(r.u8());
                let bytes = arg!(r.bytes(n as usize));
                self.push_long(bytes);
            }
            op::SHORT_BINUNICODE => {
                let n = arg!(r.u8());
                let bytes = arg!(r.bytes(n as usize));
                self.push_text(bytes);
            }
            op::MARK => self.marks.push(self.stack.len() as u32),
            op::EMPTY_DICT => self.stack.push(Value::dict(sink.dict())),
            op::EMPTY_LIST => self.stack.push(Value::list(sink.list())),
            op::SETITEMS => self.set_items(sink)?,
            op::APPENDS => self.append_items(sink)?,
            op::FRAME => {
                arg!(r.bytes(8));
            }
            _ => return self.rare_step(opcode, r, sink),
        }
        Ok(Some(()))
    }

    /// Opcodes that snapshots hold seldom or never.
    #[cold]
    #[inline(never)]
    fn rare_step<S: Sink>(&mut self, opcode: u8, r: &mut Reader<'_>, sink: &mut S) -> Step {
        macro_rules! arg {
            ($e:expr) => {
                match $e {
                    Some(v) => v,
                    None => return Ok(None),
                }
            };
        }
        match opcode {
            op::PROTO => {
                let version = arg!(r.u8());
                if version > 5 {
                    return Err(ErrorKind::UnknownProtocol(version));
                }
                self.protocol = version;
            }
            op::STOP => self.root = Some(self.pop()?),
            op::NONE => self.stack.push(Value::NONE),
            op::NEWTRUE => self.stack.push(Value::TRUE),
            op::NEWFALSE => self.stack.push(Value::FALSE),
            op::BINFLOAT => {
                let bits = arg!(r.bytes(8));
                let bits = bits.try_into().map(u64::from_be_bytes).unwrap_or_default();
                let value = self.atoms.real(f64::from_bits(bits));
                self.stack.push(value);
            }
            op::BINUNICODE | op::BINSTRING => {
                let n = arg!(r.u32());
                let bytes = arg!(r.long_bytes(u64::from(n), &self.limits)?);
                self.push_text(bytes);
            }
            op::BINUNICODE8 => {
                let n = arg!(r.u64());
                let bytes = arg!(r.long_bytes(n, &self.limits)?);
                self.push_text(bytes);
            }
            op::SHORT_BINSTRING => {
                let n = arg!(r.u8());
                let bytes = arg!(r.bytes(n as usize));
                self.push_text(bytes);
            }
            op::LONG4 => {
                let n = arg!(r.u32());
                let bytes = arg!(r.long_bytes(u64::from(n), &self.limits)?);
                self.push_long(bytes);
            }
            op::SHORT_BINBYTES => {
                let n = arg!(r.u8());
                arg!(r.bytes(n as usize));
                self.stack.push(Value::OPAQUE);
            }
            op::BINBYTES => {
                let n = arg!(r.u32());
                arg!(r.long_bytes(u64::from(n), &self.limits)?);
                self.stack.push(Value::OPAQUE);
            }
            op::BINBYTES8 | op::BYTEARRAY8 => {
                let n = arg!(r.u64());
                arg!(r.long_bytes(n, &self.limits)?);
                self.stack.push(Value::OPAQUE);
            }
            op::TUPLE1 => self.tuple_of(1, sink)?,
            op::TUPLE2 => self.tuple_of(2, sink)?,
            op::TUPLE3 => self.tuple_of(3, sink)?,
            op::EMPTY_TUPLE => self.tuple_of(0, sink)?,
            op::TUPLE => {
                let n = self.stack.len() - self.pop_mark()?;
                self.tuple_of(n, sink)?;
            }
            op::APPEND => {
                let item = self.pop()?;
                if let Kind::List(n) = self.top()?.kind() {
                    sink.append(n, &[item], &Context { atoms: &self.atoms, offset: self.offset });
                }
            }
            op::SETITEM => {
                let value = self.pop()?;
                let key = self.pop()?;
                if let Kind::Dict(n) = self.top()?.kind() {
                    sink.set_items(n, &[key, value], &Context { atoms: &self.atoms, offset: self.offset });
                }
            }
            op::ADDITEMS => self.append_items(sink)?,
            op::EMPTY_SET => self.stack.push(Value::list(sink.list())),
            op::LIST | op::FROZENSET => {
                let mark = self.pop_mark()?;
                let list = sink.list();
                let items = self.stack.get(mark..).unwrap_or(&[]);
                sink.append(list, items, &Context { atoms: &self.atoms, offset: self.offset });
                self.stack.truncate(mark);
                self.stack.push(Value::list(list));
            }
            op::DICT => {
                let mark = self.pop_mark()?;
                let dict = sink.dict();
                let items = self.stack.get(mark..).unwrap_or(&[]);
                if items.len() % 2 != 0 {
                    return Err(ErrorKind::OddItems);
                }
                sink.set_items(dict, items, &Context { atoms: &self.atoms, offset: self.offset });
                self.stack.truncate(mark);
                self.stack.push(Value::dict(dict));
            }
            op::BINPUT => {
                let slot = arg!(r.u8());
                self.remember(u64::from(slot))?;
            }
            op::LONG_BINPUT => {
                let slot = arg!(r.u32());
                self.remember(u64::from(slot))?;
            }
            op::PUT => {
                let slot = parse_text(arg!(r.line(&self.limits)?))?;
                self.remember(slot)?;
            }
            op::GET => {
                let slot = parse_text(arg!(r.line(&self.limits)?))?;
                let value = self.recall(slot)?;
                self.stack.push(value);
            }
            op::INT | op::LONG => {
                let line = arg!(r.line(&self.limits)?);
                let value = match line {
                    b"01" => Value::TRUE,
                    b"00" => Value::FALSE,
                    _ => {
                        let digits = line.strip_suffix(b"L").unwrap_or(line);
                        match parse_text::<i128>(digits) {
                            Ok(v) => self.atoms.integer(v),
                            // A number of more than 128 bits is a number, but none that we can use.
                            Err(_) if digits.iter().all(|b| b.is_ascii_digit() || *b == b'-') => {
                                Value::OPAQUE
                            }
                            Err(e) => return Err(e),
                        }
                    }
                };
                self.stack.push(value);
            }
            op::FLOAT => {
                let v = parse_text(arg!(r.line(&self.limits)?))?;
                let value = self.atoms.real(v);
                self.stack.push(value);
            }
            op::STRING => {
                let line = arg!(r.line(&self.limits)?);
                let text = unquote(line);
                self.push_text(&text);
            }
            op::UNICODE => {
                let line = arg!(r.line(&self.limits)?);
                let text = unescape(line);
                self.push_text(&text);
            }
            op::POP => {
                if self.marks.last().is_some_and(|&m| m as usize == self.stack.len()) {
                    self.marks.pop();
                } else {
                    self.pop()?;
                }
            }
            op::POP_MARK => {
                let mark = self.pop_mark()?;
                self.stack.truncate(mark);
            }
            op::DUP => {
                let top = self.top()?;
                self.stack.push(top);
            }
            op::GLOBAL => {
                let start = r.at;
                let module = arg!(r.line(&self.limits)?);
                let Some(name) = r.line(&self.limits)? else {
                    // Both lines or neither: the opcode is carried out as a whole.
                    r.at = start;
                    r.needed += module.len() + 1;
                    return Ok(None);
                };
                let global = [module, b" ", name].concat();
                self.push_global(&global);
            }
            op::STACK_GLOBAL => {
                let name = self.pop()?;
                let module = self.pop()?;
                let part = |v: Value| match v.kind() {
                    Kind::Str(id) => self.atoms.str(id),
                    _ => "?",
                };
                let global = format!("{} {}", part(module), part(name));
                self.push_global(global.as_bytes());
            }
            op::INST => {
                let start = r.at;
                let module = arg!(r.line(&self.limits)?);
                let Some(name) = r.line(&self.limits)? else {
                    r.at = start;
                    r.needed += module.len() + 1;
                    return Ok(None);
                };
                let global = [module, b" ", name].concat();
                let mark = self.pop_mark()?;
                self.stack.truncate(mark);
                self.push_global(&global);
                self.call(sink)?;
            }
            op::OBJ => {
                let mark = self.pop_mark()?;
                let class = self.stack.get(mark).copied().ok_or(ErrorKind::StackUnderflow)?;
                self.stack.truncate(mark);
                self.stack.push(class);
                self.call(sink)?;
            }
            op::REDUCE | op::NEWOBJ => {
                self.pop()?;
                self.call(sink)?;
            }
            op::NEWOBJ_EX => {
                self.pop()?;
                self.pop()?;
                self.call(sink)?;
            }
            op::BUILD => {
                self.pop()?;
                self.top()?;
            }
            op::PERSID => {
                arg!(r.line(&self.limits)?);
                self.stack.push(Value::OPAQUE);
            }
            op::BINPERSID => {
                self.pop()?;
                self.stack.push(Value::OPAQUE);
            }
            op::EXT1 => {
                arg!(r.bytes(1));
                self.stack.push(Value::OPAQUE);
            }
            op::EXT2 => {
                arg!(r.bytes(2));
                self.stack.push(Value::OPAQUE);
            }
            op::EXT4 => {
                arg!(r.bytes(4));
                self.stack.push(Value::OPAQUE);
            }
            op::NEXT_BUFFER => self.stack.push(Value::OPAQUE),
            op::READONLY_BUFFER => {
                self.top()?;
            }
            other => return Err(ErrorKind::UnknownOpcode(other)),
        }
        Ok(Some(()))
    }

    #[inline]
    fn push_small(&mut self, v: i64) {
        // Integers of up to 32 bits always fit in a word.
        self.stack.push(Value::small_int(v).unwrap_or(Value::OPAQUE));
    }

    #[inline]
    fn push_long(&mut self, bytes: &[u8]) {
        let n = bytes.len();
        let value = if n <= 8 {
            let mut word = [0; 8];
            for (to, from) in word.iter_mut().zip(bytes) {
                *to = *from;
            }
            let shift = 64 - 8 * n as u32;
            let v = if n == 0 { 0 } else { (i64::from_le_bytes(word) << shift) >> shift };
            Value::small_int(v).unwrap_or_else(|| self.atoms.integer(i128::from(v)))
        } else if n <= 16 {
            let negative = bytes.last().is_some_and(|b| b & 0x80 != 0);
            let mut word = [if negative { 0xff } else { 0 }; 16];
            for (to, from) in word.iter_mut().zip(bytes) {
                *to = *from;
            }
            self.atoms.integer(i128::from_le_bytes(word))
        } else {
            Value::OPAQUE
        };
        self.stack.push(value);
    }

    #[inline]
    fn push_text(&mut self, bytes: &[u8]) {
        let id = self.atoms.intern(bytes);
        self.stack.push(Value::str(id));
    }

    fn push_global(&mut self, name: &[u8]) {
        let id = self.atoms.intern(name);
        if self.first_global.is_none() {
            self.first_global = Some(self.atoms.str(id).to_owned());
        }
        self.stack.push(Value::global(id));
    }

    /// Stands for a call of the class or function on top of the stack. Two dict types of the standard
    /// library are plain data, whatever they are made with; all else is opaque.
    fn call<S: Sink>(&mut self, sink: &mut S) -> Result<(), ErrorKind> {
        let callee = self.pop()?;
        let made = match callee.kind() {
            Kind::Global(id) => match self.atoms.str(id) {
                "collections OrderedDict" | "collections defaultdict" => Value::dict(sink.dict()),
                _ => Value::OPAQUE,
            },
            _ => Value::OPAQUE,
        };
        self.stack.push(made);
        Ok(())
    }

    #[inline]
    fn recall(&self, slot: u64) -> Result<Value, ErrorKind> {
        match self.memo.get(slot as usize) {
            Some(&v) if v != Value::ABSENT => Ok(v),
            _ => self.far_memo.get(&slot).copied().ok_or(ErrorKind::EmptyMemo(slot)),
        }
    }

    fn remember(&mut self, slot: u64) -> Result<(), ErrorKind> {
        /// How far ahead of the last slot a new one may lie and still have a place in the array.
        const AHEAD: usize = 4096;
        let value = self.top()?;
        let index = usize::try_from(slot).unwrap_or(usize::MAX);
        if index < self.memo.len() + AHEAD {
            if index >= self.memo.len() {
                self.memo.resize(index + 1, Value::ABSENT);
            }
            if let Some(place) = self.memo.get_mut(index) {
                *place = value;
            }
        } else {
            self.far_memo.insert(slot, value);
        }
        Ok(())
    }

    #[inline]
    fn fence(&self) -> usize {
        self.marks.last().map_or(0, |&m| m as usize)
    }

    #[inline]
    fn top(&self) -> Result<Value, ErrorKind> {
        match self.stack.last() {
            Some(&v) if self.stack.len() > self.fence() => Ok(v),
            _ => Err(ErrorKind::StackUnderflow),
        }
    }

    #[inline]
    fn pop(&mut self) -> Result<Value, ErrorKind> {
        let value = self.top()?;
        self.stack.pop();
        Ok(value)
    }

    /// Removes the last mark and returns the height of the stack at it.
    #[inline]
    fn pop_mark(&mut self) -> Result<usize, ErrorKind> {
        if self.stack.len() > u32::MAX as usize {
            return Err(ErrorKind::TooMany);
        }
        self.marks.pop().map(|m| m as usize).ok_or(ErrorKind::NoMark)
    }

    #[inline]
    fn set_items<S: Sink>(&mut self, sink: &mut S) -> Result<(), ErrorKind> {
        let mark = self.pop_mark()?;
        let items = self.stack.get(mark..).unwrap_or(&[]);
        if items.len() % 2 != 0 {
            return Err(ErrorKind::OddItems);
        }
        if let Kind::Dict(n) = self.target(mark)?.kind() {
            sink.set_items(n, items, &Context { atoms: &self.atoms, offset: self.offset });
        }
        self.stack.truncate(mark);
        Ok(())
    }

    #[inline]
    fn append_items<S: Sink>(&mut self, sink: &mut S) -> Result<(), ErrorKind> {
        let mark = self.pop_mark()?;
        let items = self.stack.get(mark..).unwrap_or(&[]);
        if let Kind::List(n) = self.target(mark)?.kind() {
            sink.append(n, items, &Context { atoms: &self.atoms, offset: self.offset });
        }
        self.stack.truncate(mark);
        Ok(())
    }

    /// The container just below a mark that has been popped.
    #[inline]
    fn target(&self, mark: usize) -> Result<Value, ErrorKind> {
        match mark.checked_sub(1).and_then(|i| self.stack.get(i)) {
            Some(&v) if mark > self.fence() => Ok(v),
            _ => Err(ErrorKind::StackUnderflow),
        }
    }

    fn tuple_of<S: Sink>(&mut self, n: usize, sink: &mut S) -> Result<(), ErrorKind> {
        let start = self.stack.len().checked_sub(n).ok_or(ErrorKind::StackUnderflow)?;
        if start < self.fence() {
            return Err(ErrorKind::StackUnderflow);
        }
        let items = self.stack.get(start..).unwrap_or(&[]);
        let number = sink.tuple(items, &Context { atoms: &self.atoms, offset: self.offset });
        self.stack.truncate(start);
        self.stack.push(Value::tuple(number));
        Ok(())
    }
}

/// The bytes at hand and a place in them. Where an argument is not all there, `needed` says how many bytes
/// beyond `at` would be.
struct Reader<'a> {
    buf: &'a [u8],
    at: usize,
    needed: usize,
}

impl<'a> Reader<'a> {
    #[inline]
    fn bytes(&mut self, n: usize) -> Option<&'a [u8]> {
        match self.buf.get(self.at..).and_then(|rest| rest.get(..n)) {
            Some(bytes) => {
                self.at += n;
                Some(bytes)
            }
            None => {
                self.needed = n;
                None
            }
        }
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        match self.buf.get(self.at..).and_then(|rest| rest.first_chunk::<N>()) {
            Some(&bytes) => {
                self.at += N;
                Some(bytes)
            }
            None => {
                self.needed = N;
                None
            }
        }
    }

    #[inline]
    fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[b]| b)
    }

    #[inline]
    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    #[inline]
    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn long_bytes(&mut self, n: u64, limits: &Limits) -> Result<Option<&'a [u8]>, ErrorKind> {
        if n > limits.value_bytes {
            return Err(ErrorKind::TooLong { declared: n, limit: limits.value_bytes });
        }
        Ok(self.bytes(n as usize))
    }

    /// Bytes up to the next newline, which is passed over.
    fn line(&mut self, limits: &Limits) -> Result<Option<&'a [u8]>, ErrorKind> {
        let rest = self.buf.get(self.at..).unwrap_or(&[]);
        if let Some(n) = rest.iter().position(|&b| b == b'\n') {
            let line = rest.get(..n).unwrap_or(&[]);
            self.at += n + 1;
            return Ok(Some(line.strip_suffix(b"\r").unwrap_or(line)));
        }
        if rest.len() as u64 > limits.value_bytes {
            return Err(ErrorKind::TooLong { declared: rest.len() as u64, limit: limits.value_bytes });
        }
        self.needed = rest.len() + 1;
        Ok(None)
    }
}

fn parse_text<T: std::str::FromStr>(line: &[u8]) -> Result<T, ErrorKind> {
    std::str::from_utf8(line).ok().and_then(|s| s.trim().parse().ok()).ok_or(ErrorKind::BadNumber)
}

/// The text of protocol 0's STRING: quoted, with Python's backslash escapes.
fn unquote(line: &[u8]) -> Vec<u8> {
    let inner = match line {
        [b'\'', inner @ .., b'\''] | [b'"', inner @ .., b'"'] => inner,
        _ => line,
    };
    let mut out = Vec::with_capacity(inner.len());
    let mut bytes = inner.iter().copied();
    while let Some(b) = bytes.next() {
        if b != b'\\' {
            out.push(b);
            continue;
        }
        match bytes.next() {
            Some(b'n') => out.push(b'\n'),
            Some(b't') => out.push(b'\t'),
            Some(b'r') => out.push(b'\r'),
            Some(b'x') => {
                let digits = [bytes.next().unwrap_or(b'0'), bytes.next().unwrap_or(b'0')];
                out.push(parse_hex(&digits) as u8);
            }
            Some(other) => out.push(other),
            None => out.push(b'\\'),
        }
    }
    out
}

/// The text of protocol 0's UNICODE: `raw-unicode-escape`, that is Latin-1 with `\uXXXX` and `\UXXXXXXXX`.
fn unescape(line: &[u8]) -> Vec<u8> {
    let mut out = String::with_capacity(line.len());
    let mut at = 0;
    while let Some(&b) = line.get(at) {
        let digits = match line.get(at + 1) {
            Some(b'u') if b == b'\\' => 4,
            Some(b'U') if b == b'\\' => 8,
            _ => 0,
        };
        match line.get(at + 2..at + 2 + digits) {
            Some(hex) if digits > 0 => {
                out.push(char::from_u32(parse_hex(hex)).unwrap_or(char::REPLACEMENT_CHARACTER));
                at += 2 + digits;
            }
            _ => {
                out.push(char::from(b));
                at += 1;
            }
        }
    }
    out.into_bytes()
}

fn parse_hex(digits: &[u8]) -> u32 {
    std::str::from_utf8(digits).ok().and_then(|s| u32::from_str_radix(s, 16).ok()).unwrap_or(0)
}
