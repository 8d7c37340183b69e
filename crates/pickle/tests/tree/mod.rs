//! The value tree that the machine itself never builds: what a pickle means, for comparing.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use vramscope_pickle::{Context, Error, Kind, Machine, Sink, Value};

/// A sink that keeps everything it is given.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Tree {
    containers: Vec<Container>,
}

#[derive(Debug, PartialEq)]
enum Container {
    Dict(Vec<(Value, Value)>),
    List(Vec<Value>),
    Tuple(Vec<Value>),
}

impl Tree {
    fn add(&mut self, container: Container) -> u32 {
        self.containers.push(container);
        self.containers.len() as u32 - 1
    }

    /// The value in the notation of `fixtures/make.py`.
    pub(crate) fn show(&self, value: Value, machine: &Machine) -> String {
        let mut out = String::new();
        self.write(value, machine, &mut Vec::new(), &mut out);
        out
    }

    fn write(&self, value: Value, machine: &Machine, inside: &mut Vec<u32>, out: &mut String) {
        let atoms = machine.atoms();
        let shown = match value.kind() {
            Kind::Int(_) | Kind::BigInt => value.int(atoms).unwrap_or_default().to_string(),
            Kind::Float => format!("{:#018x}", value.float(atoms).unwrap_or_default().to_bits()),
            Kind::Str(id) => json(atoms.str(id)),
            Kind::None => "None".to_owned(),
            Kind::Bool(true) => "True".to_owned(),
            Kind::Bool(false) => "False".to_owned(),
            Kind::Global(_) | Kind::Opaque => "opaque".to_owned(),
            Kind::Dict(n) | Kind::List(n) | Kind::Tuple(n) if inside.contains(&n) => "cycle".to_owned(),
            Kind::Dict(n) | Kind::List(n) | Kind::Tuple(n) => {
                inside.push(n);
                match self.containers.get(n as usize) {
                    Some(Container::List(items)) => self.write_items(items, "[]", machine, inside, out),
                    Some(Container::Tuple(items)) => self.write_items(items, "()", machine, inside, out),
                    Some(Container::Dict(pairs)) => self.write_pairs(pairs, machine, inside, out),
                    None => out.push_str("no such container"),
                }
                inside.pop();
                return;
            }
        };
        out.push_str(&shown);
    }

    fn write_items(
        &self,
        items: &[Value],
        ends: &str,
        machine: &Machine,
        inside: &mut Vec<u32>,
        out: &mut String,
    ) {
        out.push_str(&ends[..1]);
        for (i, &item) in items.iter().enumerate() {
            out.push_str(if i == 0 { "" } else { ", " });
            self.write(item, machine, inside, out);
        }
        out.push_str(&ends[1..]);
    }

    /// A key that comes again keeps its place and gets the newer value, as in Python.
    fn write_pairs(
        &self,
        pairs: &[(Value, Value)],
        machine: &Machine,
        inside: &mut Vec<u32>,
        out: &mut String,
    ) {
        let mut places = BTreeMap::new();
        let mut kept: Vec<(String, Value)> = Vec::new();
        for &(key, value) in pairs {
            let mut name = String::new();
            self.write(key, machine, inside, &mut name);
            let place = *places.entry(name.clone()).or_insert(kept.len());
            if place == kept.len() {
                kept.push((name, value));
            } else {
                kept[place] = (name, value);
            }
        }
        out.push('{');
        for (i, (key, value)) in kept.into_iter().enumerate() {
            out.push_str(if i == 0 { "" } else { ", " });
            out.push_str(&key);
            out.push_str(": ");
            self.write(value, machine, inside, out);
        }
        out.push('}');
    }
}

/// As Python's `json.dumps`: ASCII only, with surrogates for what lies beyond 16 bits.
fn json(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='~' => out.push(c),
            _ => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(out, "\\u{unit:04x}").unwrap_or_default();
                }
            }
        }
    }
    out.push('"');
    out
}

impl Sink for Tree {
    fn dict(&mut self) -> u32 {
        self.add(Container::Dict(Vec::new()))
    }

    fn list(&mut self) -> u32 {
        self.add(Container::List(Vec::new()))
    }

    fn tuple(&mut self, items: &[Value], _: &Context<'_>) -> u32 {
        self.add(Container::Tuple(items.to_vec()))
    }

    fn set_items(&mut self, dict: u32, pairs: &[Value], _: &Context<'_>) {
        if let Some(Container::Dict(all)) = self.containers.get_mut(dict as usize) {
            all.extend(pairs.chunks_exact(2).map(|pair| (pair[0], pair[1])));
        }
    }

    fn append(&mut self, list: u32, items: &[Value], _: &Context<'_>) {
        if let Some(Container::List(all)) = self.containers.get_mut(list as usize) {
            all.extend_from_slice(items);
        }
    }
}

/// How a run over a file ended.
#[derive(Debug, PartialEq)]
pub(crate) enum End {
    Value(String),
    /// The bytes ran out at this offset.
    Short(u64),
    Damaged(Error),
}

/// Feeds a machine pieces of these sizes (the last one again and again), keeping what was not used up as a reader of files
/// does, and returns all that came of it.
pub(crate) fn feed(bytes: &[u8], sizes: impl IntoIterator<Item = usize>) -> (End, Tree) {
    let (mut machine, mut tree) = (Machine::new(), Tree::default());
    let mut sizes = sizes.into_iter();
    let (mut used, mut given, mut size) = (0, 0, bytes.len().max(1));
    loop {
        size = sizes.next().unwrap_or(size).max(1);
        given = (given + size).min(bytes.len());
        match machine.feed(&bytes[used..given], &mut tree) {
            Err(e) => return (End::Damaged(e), tree),
            Ok(fed) => {
                used += fed.consumed;
                if fed.done {
                    let root = machine.root().map(|v| tree.show(v, &machine));
                    return (root.map_or(End::Short(0), End::Value), tree);
                }
                if given == bytes.len() {
                    return (End::Short(machine.offset()), tree);
                }
            }
        }
    }
}
