//! Reads of this process's own memory that cannot fault: the kernel copies, and refuses what is not mapped.
//!
//! Threads that run the backward pass free and reuse C++ objects whether or not we hold the interpreter's lock. So a pointer found in memory is a claim,
//! never followed by the processor. It knows nothing of what the memory means.

use std::fs::File;

/// The unit in which memory is mapped or not.
const PAGE: usize = 4096;
/// Pages that are copied at once: objects of one graph lie near each other, and a call costs as much as copying two pages.
const PAGES: usize = 4;
/// Bytes that are copied at once.
const LINE: usize = PAGE * PAGES;
/// Lines kept. What was read last in each slot stays, so the memory used is bounded however large the heap is.
const LINES: usize = 1024;
/// No line.
const EMPTY: usize = usize::MAX;

/// A cache of copies of this process's memory, each made once and kept until its slot is needed. Make a new one for each reading: copies grow stale.
pub(crate) struct Memory {
    source: Source,
    /// The number of the line in each slot.
    tags: Vec<usize>,
    /// Which of its pages could be read.
    readable: Vec<[bool; PAGES]>,
    bytes: Vec<u8>,
}

enum Source {
    /// `process_vm_readv` on the process's own id.
    Call,
    /// `/proc/self/mem`, where a sandbox forbids the call.
    File(File),
}

impl Memory {
    /// Finds a way to read, and tries it. `None` where there is none: another system than Linux, or a sandbox that forbids both.
    #[expect(clippy::disallowed_methods, reason = "the process's own memory, not a file")]
    pub(crate) fn open() -> Option<Self> {
        let known = [0x5af3_u64.wrapping_mul(0x9e37_79b9_7f4a_7c15); 1];
        let address = known.as_ptr() as usize;
        let file = || File::open("/proc/self/mem").ok().map(Source::File);
        [Some(Source::Call), file()].into_iter().flatten().find_map(|source| {
            let mut memory = Self {
                source,
                tags: vec![EMPTY; LINES],
                readable: vec![[false; PAGES]; LINES],
                bytes: vec![0; LINES * LINE],
            };
            (memory.word(address) == Some(known[0])).then_some(memory)
        })
    }

    /// The eight bytes at `address`, which need not be aligned.
    pub(crate) fn word(&mut self, address: usize) -> Option<u64> {
        if address % PAGE <= PAGE - 8 {
            let at = self.place(address)?;
            let bytes = self.bytes.get(at..at + 8)?;
            return Some(u64::from_le_bytes(bytes.try_into().ok()?));
        }
        let mut word = [0; 8];
        self.copy(address, &mut word)?;
        Some(u64::from_le_bytes(word))
    }

    /// The address that is stored at `address`; `None` where nothing can lie, which includes the null pointer.
    pub(crate) fn pointer(&mut self, address: usize) -> Option<usize> {
        usize::try_from(self.word(address)?).ok().filter(|&pointer| can_be_object(pointer))
    }

    /// The same without a look at what was copied before, for memory that changed since.
    pub(crate) fn pointer_now(&mut self, address: usize) -> Option<usize> {
        self.tags.fill(EMPTY);
        self.pointer(address)
    }

    /// The four bytes at `address`.
    pub(crate) fn half(&mut self, address: usize) -> Option<u32> {
        let mut half = [0; 4];
        self.copy(address, &mut half)?;
        Some(u32::from_le_bytes(half))
    }

    /// The byte at `address`.
    pub(crate) fn byte(&mut self, address: usize) -> Option<u8> {
        let mut byte = [0; 1];
        self.copy(address, &mut byte)?;
        Some(byte[0])
    }

    /// The text at `address` up to its zero byte; `None` if it is longer than `limit` bytes or not printable ASCII.
    pub(crate) fn text(&mut self, address: usize, limit: usize) -> Option<String> {
        let mut text = String::new();
        for offset in 0..limit {
            match self.byte(address.checked_add(offset)?)? {
                0 => return Some(text),
                byte if byte.is_ascii_graphic() || byte == b' ' => text.push(char::from(byte)),
                _ => return None,
            }
        }
        None
    }

    fn copy(&mut self, address: usize, into: &mut [u8]) -> Option<()> {
        for (offset, byte) in into.iter_mut().enumerate() {
            let address = address.checked_add(offset)?;
            let place = self.place(address)?;
            *byte = *self.bytes.get(place)?;
        }
        Some(())
    }

    /// Where in `bytes` the copy of the byte at this address lies.
    fn place(&mut self, address: usize) -> Option<usize> {
        let line = address / LINE;
        let slot = line % LINES;
        if *self.tags.get(slot)? != line {
            self.fill(slot, line)?;
        }
        let page = address / PAGE % PAGES;
        self.readable.get(slot)?.get(page)?.then_some(slot * LINE + address % LINE)
    }

    #[cold]
    fn fill(&mut self, slot: usize, line: usize) -> Option<()> {
        let into = self.bytes.get_mut(slot * LINE..(slot + 1) * LINE)?;
        let address = line * LINE;
        let mut readable = [self.source.read(address, into); PAGES];
        if readable == [false; PAGES] {
            // One page that is not mapped spoils the whole.
            for (page, into) in into.chunks_exact_mut(PAGE).enumerate() {
                *readable.get_mut(page)? = self.source.read(address + page * PAGE, into);
            }
        }
        *self.tags.get_mut(slot)? = line;
        *self.readable.get_mut(slot)? = readable;
        Some(())
    }
}

impl Source {
    #[cfg(target_os = "linux")]
    #[expect(unsafe_code, reason = "a call of the system")]
    fn read(&self, address: usize, into: &mut [u8]) -> bool {
        match self {
            Self::Call => {
                let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
                let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: into.len() };
                // SAFETY: `local` is a buffer that we borrow mutably; the kernel checks `remote` and writes nothing there.
                let read = unsafe {
                    libc::process_vm_readv(libc::getpid(), &raw const local, 1, &raw const remote, 1, 0)
                };
                usize::try_from(read) == Ok(into.len())
            }
            Self::File(file) => {
                use std::os::unix::fs::FileExt;
                file.read_exact_at(into, address as u64).is_ok()
            }
        }
    }

    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unused_self, reason = "the same signature on every system")]
    fn read(&self, _address: usize, _into: &mut [u8]) -> bool {
        false
    }
}

/// Whether an object with pointers in it can lie at this address: aligned, not in the first page, in the lower half of the address space.
pub(crate) fn can_be_object(address: usize) -> bool {
    address.is_multiple_of(8) && address >= PAGE && (address as u64) >> 47 == 0
}
