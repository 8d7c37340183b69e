//! Mangled C++ names as people write them.

/// Reads a mangled type name: `N5torch8autograd9generated12MulBackward0E` is `torch::autograd::generated::MulBackward0`. Template arguments are written where they are
/// plain names; what cannot be read stays mangled.
pub(crate) fn readable(mangled: &str) -> String {
    let mut rest = mangled;
    match name(&mut rest, 0) {
        Some(name) if rest.is_empty() => name,
        _ => mangled.to_owned(),
    }
}

/// The last part of a name as written in C++, its template arguments included: `MulBackward0`.
pub(crate) fn last_part(name: &str) -> &str {
    let outside = name.find('<').unwrap_or(name.len());
    let start = name.get(..outside).and_then(|outside| outside.rfind("::")).map_or(0, |at| at + 2);
    name.get(start..).unwrap_or(name)
}

/// Deeper nesting than any class has.
const DEEPEST: usize = 16;

fn name(rest: &mut &str, depth: usize) -> Option<String> {
    if depth > DEEPEST {
        return None;
    }
    let Some(inside) = rest.strip_prefix('N') else {
        let mut part = identifier(rest)?;
        arguments(rest, &mut part, depth)?;
        return Some(part);
    };
    *rest = inside;
    let mut parts = String::new();
    loop {
        if let Some(after) = rest.strip_prefix('E') {
            *rest = after;
            return (!parts.is_empty()).then_some(parts);
        }
        let part = identifier(rest)?;
        if !parts.is_empty() {
            parts.push_str("::");
        }
        parts.push_str(&part);
        arguments(rest, &mut parts, depth)?;
    }
}

/// `12MulBackward0`, or the anonymous namespace.
fn identifier(rest: &mut &str) -> Option<String> {
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let length: usize = rest.get(..digits)?.parse().ok()?;
    let end = digits.checked_add(length)?;
    let text = rest.get(digits..end)?;
    *rest = rest.get(end..)?;
    Some(if text.starts_with("_GLOBAL__N_") { "(anonymous namespace)".to_owned() } else { text.to_owned() })
}

/// `I…E` after a name, if it is there.
fn arguments(rest: &mut &str, into: &mut String, depth: usize) -> Option<()> {
    let Some(mut inside) = rest.strip_prefix('I') else { return Some(()) };
    into.push('<');
    let mut first = true;
    loop {
        if let Some(after) = inside.strip_prefix('E') {
            *rest = after;
            into.push('>');
            return Some(());
        }
        if !first {
            into.push_str(", ");
        }
        first = false;
        into.push_str(&name(&mut inside, depth + 1)?);
    }
}
