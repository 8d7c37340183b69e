//! Where things lie in tensors and storages.

use super::super::layout::{Held, StorageAt, TensorAt};
use super::{SEARCHED, Search};

impl Search {
    pub(super) fn tensor(&mut self) -> Option<TensorAt> {
        let held = self.held("tensors", 0, 1, "tensor counts")?;
        let storage = self.find(&self.columns("tensors", 1, 2))?;
        Some(TensorAt { held, storage, sizes: self.sizes(), dtype: self.dtype() })
    }

    pub(super) fn storage(&mut self) -> Option<StorageAt> {
        let held = self.held("storage wrappers", 0, 1, "storage counts")?;
        let data = self.find(&self.columns("tensors", 2, 3))?;
        let bytes = self.find(&self.columns("tensors", 2, 4))?;
        Some(StorageAt { held, data, bytes, device: self.device(bytes) })
    }

    /// How the Python objects of one column hold the C++ objects of another.
    pub(super) fn held(&mut self, table: &str, object: usize, address: usize, counts: &str) -> Option<Held> {
        let at = self.find(&self.columns(table, object, address))?;
        // Only a flag can lie between the header and the pointer.
        let may_borrow = at == 24;
        let back: Vec<_> = self.columns(table, address, object);
        let back = self.find_by(&back, |word, object| word & !1 == object);
        let counts = self.columns(counts, 0, 1);
        let counts = !counts.is_empty()
            && counts.iter().all(|&(address, count)| {
                self.memory.half(address + 8).is_some_and(|found| found as usize == count)
            });
        Some(Held { at, may_borrow, back, counts })
    }

    pub(super) fn sizes(&mut self) -> Option<usize> {
        let shapes = self.table("shapes");
        let inline = (0..SEARCHED).step_by(8).find(|at| {
            shapes.len() > 1
                && shapes.iter().all(|row| {
                    let Some((&tensor, shape)) = row.split_first() else { return false };
                    let expected = [shape.len()].into_iter().chain(shape.iter().copied());
                    expected
                        .enumerate()
                        .all(|(n, size)| self.memory.word(tensor + at + 8 * n) == Some(size as u64))
                })
        })?;
        // Longer shapes are kept elsewhere, and the first of these words says where.
        let deep = self.table("deep shape");
        let (&tensor, shape) = deep.first()?.split_first()?;
        let elsewhere = self.memory.pointer(tensor + inline + 8)?;
        let right = shape
            .iter()
            .enumerate()
            .all(|(n, &size)| self.memory.word(elsewhere + 8 * n) == Some(size as u64));
        right.then_some(inline)
    }

    pub(super) fn dtype(&mut self) -> Option<usize> {
        let rows = self.columns("tensors", 1, 5);
        (16..SEARCHED).step_by(2).find(|at| {
            rows.iter().all(|&(tensor, code)| {
                self.memory.half(tensor + at).is_some_and(|word| (word & 0xffff) as usize == code)
            })
        })
    }

    /// The byte that is 0 for the CPU and 14 for the meta device, between the storage's address and its size.
    pub(super) fn device(&mut self, bytes: usize) -> Option<usize> {
        let cpu: Vec<_> = self.columns("tensors", 2, 2).into_iter().map(|(storage, _)| storage).collect();
        let meta: Vec<_> =
            self.table("meta storage").into_iter().filter_map(|row| row.first().copied()).collect();
        (16..bytes).find(|at| {
            let mut is = |storage: usize, kind: u8| self.memory.byte(storage + at) == Some(kind);
            !meta.is_empty()
                && meta.iter().all(|&storage| is(storage, 14))
                && cpu.iter().all(|&storage| is(storage, 0))
        })
    }
}
