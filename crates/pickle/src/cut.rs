//! What is left when a pickle ends before its STOP: containers that were still being filled.

use crate::machine::Machine;
use crate::sink::{Context, Sink};
use crate::value::{Kind, Value};

/// What a pickle that ended too early holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// The outermost value, as far as it was filled.
    pub root: Option<Value>,
    /// The containers that were being filled, innermost first.
    pub open: Vec<Value>,
}

impl Machine {
    /// Hands to the sink what lies in containers that are still open, innermost first, as if the file had closed them.
    ///
    /// A list gets what was complete, and lists that were not, but no dict that was not: half a record is none.
    pub fn close<S: Sink>(&mut self, sink: &mut S) -> Cut {
        let mut open = Vec::new();
        while let Some(mark) = self.marks.pop() {
            let mark = (mark as usize).min(self.stack.len());
            // Two marks in a row: what lies above belongs to no container yet.
            let target =
                mark.checked_sub(1).filter(|&i| i >= self.fence()).and_then(|i| self.stack.get(i)).copied();
            match target.map(Value::kind) {
                Some(Kind::Dict(n)) => {
                    self.fold_value(mark, sink, &mut open);
                    let items = self.stack.get(mark..).unwrap_or(&[]);
                    let cx = Context { atoms: &self.atoms, offset: self.offset };
                    sink.set_items(n, items.get(..items.len() & !1).unwrap_or(items), &cx);
                    open.extend(target);
                }
                Some(Kind::List(n)) => {
                    self.fold_item(mark, sink, &mut open);
                    let items = self.stack.get(mark..).unwrap_or(&[]);
                    let cx = Context { atoms: &self.atoms, offset: self.offset };
                    sink.append(n, whole(items, &open), &cx);
                    open.extend(target);
                }
                _ => {}
            }
            self.stack.truncate(mark);
        }
        if self.root.is_none() {
            self.fold(0, sink, &mut open);
        }
        Cut { root: self.root.or(self.stack.first().copied()), open }
    }

    /// Looks for the value among a dict's items that is still being filled by what lies above it. Keys are texts, so
    /// anything else in the place of one belongs to the value before.
    fn fold_value<S: Sink>(&mut self, start: usize, sink: &mut S, open: &mut Vec<Value>) {
        let mut value = start + 1;
        while let Some(next) = self.stack.get(value + 1) {
            if !matches!(next.kind(), Kind::Str(_)) {
                self.fold(value, sink, open);
                return;
            }
            value += 2;
        }
    }

    /// Looks for the item of a list that is still being filled by what lies above it. The items of a list are of one
    /// kind, so one of another kind belongs to the container before.
    fn fold_item<S: Sink>(&mut self, start: usize, sink: &mut S, open: &mut Vec<Value>) {
        let kind = |v: &Value| std::mem::discriminant(&v.kind());
        let items = self.stack.get(start..).unwrap_or(&[]);
        let odd = items.windows(2).position(|pair| kind(&pair[0]) != kind(&pair[1]));
        if let Some(i) = odd
            && items.get(i).is_some_and(|v| matches!(v.kind(), Kind::Dict(_) | Kind::List(_)))
        {
            self.fold(start + i, sink, open);
        }
    }

    /// Takes all above `start` for containers that are filled an item at a time, each lying on the one it goes into.
    fn fold<S: Sink>(&mut self, start: usize, sink: &mut S, open: &mut Vec<Value>) {
        let mut links = Vec::new();
        let mut at = start;
        loop {
            let child = match self.stack.get(at).map(|v| v.kind()) {
                Some(Kind::List(_)) => at + 1,
                Some(Kind::Dict(_)) => at + 2,
                _ => break,
            };
            links.push((at, child));
            at = child;
        }
        while let Some((container, child)) = links.pop() {
            let Some(&target) = self.stack.get(container) else { continue };
            let items = self.stack.get(container + 1..=child).unwrap_or(&[]);
            let cx = Context { atoms: &self.atoms, offset: self.offset };
            match target.kind() {
                Kind::List(n) => sink.append(n, whole(items, open), &cx),
                Kind::Dict(n) => sink.set_items(n, items, &cx),
                _ => {}
            }
            open.push(target);
            self.stack.truncate(container + 1);
        }
    }
}

/// Items without the last one, if that is a dict that was still being filled.
fn whole<'a>(items: &'a [Value], open: &[Value]) -> &'a [Value] {
    match items.split_last() {
        Some((last, before)) if matches!(last.kind(), Kind::Dict(_)) && open.last() == Some(last) => before,
        _ => items,
    }
}
