//! The machine itself: stack, marks, memo, and the loop over opcodes.

use crate::atoms::{Atoms, StrId};
use crate::error::{Error, ErrorKind};
use crate::memo::Memo;
use crate::opcode as op;
use crate::reader::Reader;
use crate::sink::{Context, Fed, Limits, Sink};
use crate::text::{parse_text, unescape, unquote};
use crate::value::{Kind, Value};

/// How many of the classes and functions that a file asks for are kept for showing.
const SHOWN_GLOBALS: usize = 64;

/// A pickle machine; see the crate's documentation.
pub struct Machine {
    pub(crate) stack: Vec<Value>,
    /// Heights of the stack at the marks.
    pub(crate) marks: Vec<u32>,
    memo: Memo,
    pub(crate) atoms: Atoms,
    limits: Limits,
    pub(crate) offset: u64,
    protocol: u8,
    pub(crate) root: Option<Value>,
    globals: Vec<StrId>,
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
            memo: Memo::default(),
            atoms: Atoms::default(),
            limits,
            offset: 0,
            protocol: 0,
            root: None,
            globals: Vec::new(),
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

    /// The classes and functions that the file asked for (`module name`), each once, in order; at most the first 64.
    /// None was looked up.
    pub fn globals(&self) -> impl ExactSizeIterator<Item = &str> {
        self.globals.iter().map(|&id| self.atoms.str(id))
    }

    /// Carries out as many whole opcodes as `buf` holds.
    ///
    /// # Errors
    /// When the bytes are not a pickle. What the sink got before that stays valid, and [`Machine::close`]
    /// hands it the rest of what was read.
    pub fn feed<S: Sink>(&mut self, buf: &[u8], sink: &mut S) -> Result<Fed, Error> {
        let base = self.offset;
        // Checked once for each piece: an opcode of one byte keeps at most one value.
        let kept = self.stack.len() + self.marks.len() + self.memo.len() + self.atoms.kept();
        if kept as u64 > self.limits.values_at(base)
            || self.atoms.text_bytes() > self.limits.text_bytes
            || sink.is_full(base)
        {
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
                let value = self.memo.get(u64::from(slot))?;
                self.stack.push(value);
            }
            op::BINGET => {
                let slot = arg!(r.u8());
                let value = self.memo.get(u64::from(slot))?;
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
                let value = self.memo.get(slot)?;
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
        if self.globals.len() < SHOWN_GLOBALS && !self.globals.contains(&id) {
            self.globals.push(id);
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

    fn remember(&mut self, slot: u64) -> Result<(), ErrorKind> {
        let value = self.top()?;
        self.memo.put(slot, value);
        Ok(())
    }

    #[inline]
    pub(crate) fn fence(&self) -> usize {
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
