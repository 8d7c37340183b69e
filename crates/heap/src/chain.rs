//! The chain of objects from a root down to a block, as it is shown.

use rustc_hash::FxHashMap;

use crate::fingerprint::fingerprint;
use crate::graph::{Role, RootKind};
use crate::holders::{Link, Status};
use crate::kept::NONE;
use crate::names::{Object, ObjectKind, Reference};
use crate::search::Origin;
use crate::trace::{Ground, Trace};

/// A chain, and what it is compared by.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    pub(crate) links: Vec<Link>,
    /// Equal for equal leaks.
    pub(crate) fingerprint: String,
    /// Equal for chains of the same types and references.
    pub(crate) likeness: String,
}

/// What is known of objects beyond their names, in numbers of the kept graph.
pub(crate) struct Marks<'a> {
    /// What should be gone by now, with the reason.
    pub(crate) dead: FxHashMap<u32, &'a str>,
    /// What tensors are.
    pub(crate) roles: Vec<Option<Role>>,
}

/// Nodes are followed so far up from a block. Paths that are longer show their root and their end.
const MOST_NODES: usize = 256;
/// Links that are shown of a chain, from its beginning and from its end.
const FROM_ROOT: usize = 20;
const FROM_END: usize = 40;

/// A link in the making.
struct Draft {
    /// The object; [`NONE`] for what stands for several.
    node: u32,
    kind: Option<ObjectKind>,
    link: Link,
    /// What the fingerprint takes of it.
    essence: [String; 2],
}

/// Draws the chain to a block.
pub(crate) fn chain(ground: &Ground<'_>, trace: &Trace, marks: &Marks<'_>, block: u32) -> Chain {
    let mut drafts = drafts(ground, trace, block);
    let origin = ground.search.reach[trace.origin[block as usize] as usize].origin;
    if drafts.len() > FROM_ROOT + FROM_END {
        let left_out: Vec<Draft> = drafts.drain(FROM_ROOT..drafts.len() - FROM_END).collect();
        drafts.insert(FROM_ROOT, between(left_out.len() as u32));
    }
    if origin == Origin::Garbage {
        judge_garbage(&mut drafts);
    } else {
        judge(ground, marks, origin, &mut drafts);
    }

    let has_suspects = drafts.iter().any(|draft| draft.link.suspect);
    let mut essence: Vec<&[String; 2]> = Vec::new();
    for draft in drafts.iter().filter(|draft| !has_suspects || draft.link.suspect) {
        // However long a list is, and whatever of it is left out.
        if draft.node != NONE && !essence.contains(&&draft.essence) {
            essence.push(&draft.essence);
        }
    }
    Chain {
        fingerprint: fingerprint(essence.into_iter().flatten().map(String::as_str)),
        likeness: fingerprint(
            drafts.iter().flat_map(|draft| [&draft.link.type_name[..], &draft.link.reference[..]]),
        ),
        links: drafts.into_iter().map(|draft| draft.link).collect(),
    }
}

/// One link for each object that is spelled; those between belong to it.
fn drafts(ground: &Ground<'_>, trace: &Trace, block: u32) -> Vec<Draft> {
    let is_autograd = |node| ground.kinds.autograd.contains(node);
    // From the block up; of autograd nodes that follow each other the first and the last.
    let mut nodes: Vec<(u32, u32)> = Vec::new();
    let mut at = Some(block);
    while let Some(last) = at.filter(|_| nodes.len() < MOST_NODES) {
        let first = trace.run[last as usize];
        nodes.push((first, last));
        at = ground.before(first);
    }
    nodes.reverse();
    while let [.., (_, last)] = nodes[..]
        && nodes.len() > 1
        && (ground.kinds.storages.contains(last)
            || matches!(ground.object(last).kind, ObjectKind::Storage | ObjectKind::Block))
    {
        nodes.pop();
    }

    let mut drafts: Vec<Draft> = Vec::new();
    let origin = trace.origin[block as usize];
    if let Some(cycle) = ground.cycles.get(&origin) {
        let mut draft = draft(cycle.owner, ground.object(cycle.owner));
        draft.refer(cycle.reference.clone(), None);
        drafts.push(draft);
    }
    for (i, &(first, last)) in nodes.iter().enumerate() {
        if i == 0 && first != origin {
            let mut root = draft(origin, ground.object(origin));
            let named = trace.named_first[block as usize];
            if let Some(reference) = (named != NONE).then(|| ground.reference(named)).flatten() {
                root.refer(reference.step().into_owned(), Some(&reference));
            }
            drafts.push(root);
            drafts.push(between(ground.search.depth[first as usize].saturating_sub(1)));
        } else if i > 0 {
            let reference = ground.reference(first).unwrap_or(Reference::Hidden);
            let step = reference.step();
            let from_autograd = i.checked_sub(1).is_some_and(|before| is_autograd(nodes[before].1));
            let at_seam = is_autograd(last) || from_autograd;
            if let Some(before) = drafts.last_mut() {
                let is_hidden = matches!(reference, Reference::Hidden | Reference::Autograd(_));
                if is_hidden && !at_seam {
                    if before.kind == Some(ObjectKind::Cell) {
                        *before = draft(last, ground.object(last));
                    }
                    continue;
                }
                before.refer(step.into_owned(), Some(&reference));
            }
        }
        drafts.push(if is_autograd(last) {
            let n = ground.search.depth[last as usize] - ground.search.depth[first as usize] + 1;
            autograd(last, ground.object(last), n)
        } else {
            draft(last, ground.object(last))
        });
    }
    drafts
}

impl Draft {
    /// Sets the reference that leads on.
    fn refer(&mut self, step: String, reference: Option<&Reference>) {
        self.essence = match reference {
            _ if self.kind == Some(ObjectKind::Autograd) => ["autograd graph".into(), String::new()],
            // What has a name of its own has it whatever Python's version calls the type of the root.
            Some(anew) if anew.begins_anew() => [anew.spelling().into_owned(), String::new()],
            _ => [self.link.type_name.clone(), step.clone()],
        };
        self.link.reference = step;
    }
}

fn draft(node: u32, object: Object) -> Draft {
    let shown = if object.detail.is_empty() { object.type_name.clone() } else { object.detail };
    Draft {
        node,
        kind: Some(object.kind),
        essence: [object.type_name.clone(), String::new()],
        link: Link {
            object: shown,
            type_name: object.type_name,
            reference: String::new(),
            suspect: false,
            status: Status::Unknown,
            reason: String::new(),
        },
    }
}

fn autograd(node: u32, object: Object, n: u32) -> Draft {
    let last = object.type_name.clone();
    let mut draft = draft(node, object);
    draft.kind = Some(ObjectKind::Autograd);
    draft.link.object = match n {
        1 => format!("autograd node {last}"),
        n => format!("{} autograd nodes, the last {last}", grouped(n)),
    };
    draft
}

/// Stands for objects that are left out.
fn between(n: u32) -> Draft {
    let object = Object {
        kind: ObjectKind::Instance,
        type_name: String::new(),
        detail: format!("… {} more", grouped(n)),
    };
    Draft { kind: None, ..draft(NONE, object) }
}

/// With thousands separators.
fn grouped(n: u32) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// What is garbage is dead, and the closing reference is why.
fn judge_garbage(drafts: &mut [Draft]) {
    let closes = drafts.first().is_some_and(|draft| !draft.link.reference.is_empty());
    for (i, draft) in drafts.iter_mut().enumerate() {
        draft.link.status = Status::Dead;
        draft.link.reason = match i {
            0 => "unreachable: waits for Python's garbage collector".into(),
            _ => "only what is unreachable refers to it".into(),
        };
        draft.link.suspect = !draft.link.reference.is_empty() && (i == 0 || !closes);
    }
}

/// Everything above what is alive is alive, everything below what is dead is dead. What may be wrong is a reference from the last that is alive to
/// the first that is dead, or to the end.
fn judge(ground: &Ground<'_>, marks: &Marks<'_>, origin: Origin, drafts: &mut [Draft]) {
    let mut dead_at = None;
    let mut alive_at = None;
    for (i, draft) in drafts.iter_mut().enumerate().filter(|(_, draft)| draft.node != NONE) {
        let is_origin = ground.before(draft.node).is_none();
        let root = match origin {
            Origin::Root(kind) if is_origin => reason_of_root(kind),
            _ => None,
        };
        let role = marks.roles[draft.node as usize].map(reason_of_role);
        let link = &mut draft.link;
        if let Some(reason) = marks.dead.get(&draft.node).filter(|_| dead_at.is_none()) {
            dead_at = Some(i);
            link.status = Status::Dead;
            link.reason = match *reason {
                "" => "watched: should be gone by now".into(),
                reason => format!("watched: {reason}"),
            };
        } else if let Some(reason) = root.or(role) {
            match dead_at {
                None => {
                    alive_at = Some(i);
                    link.status = Status::Alive;
                    link.reason = reason.into();
                }
                Some(_) => link.reason = format!(", although: {reason}"),
            }
        }
    }
    let n = drafts.len();
    for (i, Draft { link, .. }) in drafts.iter_mut().enumerate() {
        if alive_at.is_some_and(|alive| i < alive) && link.status == Status::Unknown {
            link.status = Status::Alive;
            link.reason = "leads to what is alive".into();
        }
        if dead_at.is_some_and(|dead| i > dead) {
            link.status = Status::Dead;
            link.reason.insert_str(0, "hangs on what should be gone");
        }
        let is_between = i >= alive_at.unwrap_or(0) && i < dead_at.unwrap_or(n);
        link.suspect = is_between && !link.reference.is_empty();
    }
}

/// Only where no mistake of the program's can make it wrong.
fn reason_of_root(kind: RootKind) -> Option<&'static str> {
    match kind {
        RootKind::OwnModule | RootKind::LibraryModule => Some("a module lives as long as the program"),
        RootKind::OwnFrame | RootKind::LibraryFrame => Some("the function is running"),
        RootKind::OwnClass | RootKind::LibraryClass => Some("a class is meant to last"),
        RootKind::ThreadLocal => Some("the thread is running"),
        RootKind::InteractiveOutput | RootKind::AtExit | RootKind::Interpreter => {
            Some("belongs to the interpreter")
        }
        RootKind::Generator | RootKind::ContextVariable | RootKind::Exception => None,
    }
}

fn reason_of_role(role: Role) -> &'static str {
    match role {
        Role::Parameter => "a parameter of a module",
        Role::Gradient => "the gradient of a parameter",
        Role::OptimizerState => "state of an optimizer",
        Role::Buffer => "a buffer of a module",
    }
}
