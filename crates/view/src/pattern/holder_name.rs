//! What a holder is called where it is filled: the last name of its path, against the target of a pattern.

use crate::holders::{Class, Holder};

/// The last name on the path of a holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HolderName<'h> {
    /// The name.
    pub(super) last: &'h str,
    /// What has that name.
    pub(super) owner: Owner<'h>,
}

/// What a name is a name in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Owner<'h> {
    /// A module, whose global it is.
    Module(&'h str),
    /// A function, whose local variable it is.
    Function(&'h str),
    /// A function that is kept, with its variables.
    Closure,
    /// An object of that type, where it is known, whose attribute it is.
    Object(Option<&'h str>),
    /// A module or an object.
    Unknown,
}

impl<'h> HolderName<'h> {
    /// Of a holder; nothing where its path ends in no name of the program.
    pub(super) fn of(holder: &'h Holder) -> Option<Self> {
        if matches!(holder.class, Class::CppHeld | Class::Pending) {
            return None;
        }
        let (path, is_garbage) = match holder.path.strip_prefix("unreachable: ") {
            Some(edge) => (edge, true),
            None => (holder.path.as_str(), false),
        };
        let path = without_items(path);
        let (before, last) = path.rsplit_once(['.', ':'])?;
        if !is_name(last) || before.is_empty() {
            return None;
        }
        let owner = if path.as_bytes().get(before.len()) == Some(&b':') {
            Owner::Function(before.rsplit('.').next().unwrap_or(before))
        } else if before.ends_with(".<closure>") {
            Owner::Closure
        } else if is_garbage {
            Owner::Object(Some(before))
        } else {
            owner(holder, before, last)
        };
        Some(Self { last, owner })
    }

    /// Whether `target`, as a source spells what keeps something, can be this.
    pub(super) fn is(&self, target: &str) -> bool {
        let Some((before, last)) = last_name(target) else { return false };
        let of_before = before.as_deref().map(|it| it.rsplit('.').next().unwrap_or(it));
        last == self.last
            && match (&self.owner, of_before) {
                (Owner::Function(_) | Owner::Closure, before) => before.is_none(),
                (Owner::Module(_), None) | (Owner::Object(_), Some(_)) | (Owner::Unknown, _) => true,
                (Owner::Module(module), Some(before)) => module.rsplit('.').next() == Some(before),
                (Owner::Object(_), None) => false,
            }
    }
}

/// What has the last name, by the chain that leads to it.
fn owner<'h>(holder: &'h Holder, before: &'h str, last: &str) -> Owner<'h> {
    let is_last =
        |reference: &str| reference.strip_prefix('.').is_some_and(|name| without_items(name) == last);
    let root = holder.chain.first().filter(|link| link.type_name == "module");
    match root {
        Some(root) if root.object == before => return Owner::Module(before),
        Some(_) => {
            let link = holder.chain.iter().skip(1).find(|link| is_last(&link.reference));
            return Owner::Object(link.map(|link| link.type_name.as_str()));
        }
        None => {}
    }
    match before.strip_prefix("__main__") {
        Some("") => Owner::Module(before),
        Some(_) => Owner::Object(None),
        None => Owner::Unknown,
    }
}

fn without_items(mut path: &str) -> &str {
    while let Some(shorter) = path.strip_suffix("[*]") {
        path = shorter;
    }
    path
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// The last name of an expression without its items and calls, and what is before it: of `self.stats[k]` that is `stats`
/// and `self`.
fn last_name(target: &str) -> Option<(Option<String>, String)> {
    let mut depth = 0usize;
    let mut text = String::new();
    for c in target.chars() {
        match c {
            '[' | '(' => depth += 1,
            ']' | ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 && !c.is_whitespace() => text.push(c),
            _ => {}
        }
    }
    // `stats.setdefault(key, [])` is an item of `stats`.
    let text = match text.rsplit_once('.') {
        Some((before, "setdefault" | "get")) if target.ends_with(')') => before.to_owned(),
        _ => text,
    };
    let (before, last) = match text.rsplit_once('.') {
        Some((before, last)) => (Some(before.to_owned()), last.to_owned()),
        None => (None, text),
    };
    is_name(&last).then_some((before, last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::holders::{Bytes, Link, Status};

    fn holder(path: &str, chain: &[(&str, &str, &str)]) -> Holder {
        let link = |&(object, type_name, reference): &(&str, &str, &str)| Link {
            object: object.into(),
            type_name: type_name.into(),
            reference: reference.into(),
            suspect: false,
            status: Status::Unknown,
            reason: String::new(),
        };
        Holder {
            path: path.into(),
            through: None,
            class: Class::UserHeld,
            bytes: Bytes(1),
            exclusive_bytes: Bytes(1),
            also_held_by: Vec::new(),
            held_by_more: Bytes(0),
            blocks: 1,
            fingerprint: String::new(),
            chain: chain.iter().map(link).collect(),
        }
    }

    fn check(path: &str, yes: &[&str], no: &[&str]) {
        let holder = holder(path, &[]);
        let name = HolderName::of(&holder).unwrap();
        for (targets, want) in [(yes, true), (no, false)] {
            for target in targets {
                assert_eq!(name.is(target), want, "{path} {target} {name:?}");
            }
        }
    }

    #[test]
    fn a_holder_is_what_the_source_calls_by_its_last_name() {
        check(
            "__main__.losses[*]",
            &["losses", "losses[name]"],
            &["self.losses", "my_losses", "loss", "x.losses"],
        );
        check(
            "__main__.model.neck.features[*]",
            &["self.features", "model.neck.features", "self . features[ i.j ]"],
            &["features", "self.features.other", "features[self.features]"],
        );
        check("__main__.store[*][*]", &["store.setdefault(k, [])", "store[a][b]"], &["store.append"]);
        check("train:batch", &["batch"], &["self.batch"]);
        check("hook.<closure>.kept[*]", &["kept"], &["self.kept"]);
        check("Trainer.cache", &["cls.cache", "cache"], &["catch"]);
        check("unreachable: Node.me", &["self.me"], &["me"]);
    }

    #[test]
    fn what_ends_in_no_name_is_nobody() {
        for path in
            ["C++ (no Python object)", "step.__defaults__[*].?", "head.next…", "…", "sys", "f.<closure>"]
        {
            assert_eq!(HolderName::of(&holder(path, &[])), None, "{path}");
        }
    }

    #[test]
    fn the_chain_tells_globals_of_modules_in_packages_and_the_types_of_objects() {
        let global =
            holder("pkg.data.cache[*]", &[("pkg.data", "module", ".cache"), ("dict", "dict", "[*]")]);
        assert_eq!(HolderName::of(&global).unwrap().owner, Owner::Module("pkg.data"));
        assert!(HolderName::of(&global).unwrap().is("data.cache"));
        let chain = [("__main__", "module", ".model"), ("Net", "Net", ".cache"), ("list", "list", "[*]")];
        let attribute = holder("__main__.model.cache[*]", &chain);
        assert_eq!(HolderName::of(&attribute).unwrap().owner, Owner::Object(Some("Net")));
    }
}
