//! What to do about an object that holds memory, in plain words.

use vramscope_detect::WITHOUT_HOLDER;

use crate::analysis::Finding;
use crate::holders::{Class, Holder};

/// Puts what to do about the holder first, in the place of where to look for it. Without any holders says how to get them.
pub(super) fn advise(findings: &mut [Finding], has_holders: bool) {
    for finding in findings.iter_mut().filter(|finding| is_of_objects(finding)) {
        if let Some(found) = &finding.holder {
            finding.advice.retain(|advice| !WITHOUT_HOLDER.contains(&advice.as_str()));
            finding.advice.insert(0, give_up(&found.holder));
        } else if !has_holders {
            finding.advice.push("`vramscope run train.py` names the object that holds them".to_owned());
        }
    }
}

/// Whether objects of the program may hold the memory that a finding speaks of.
fn is_of_objects(finding: &Finding) -> bool {
    finding.is_growth()
}

/// What to do so that an object no longer holds its memory.
pub(crate) fn give_up(holder: &Holder) -> String {
    let path = &holder.path;
    let what = match holder.class {
        Class::CycleGarbage => {
            let edge = path.strip_prefix("unreachable: ").unwrap_or(path);
            return format!(
                "break the cycle at `{edge}`: make that reference a `weakref.ref`, or set it to `None` when the object is \
                 done with"
            );
        }
        Class::Pending => {
            return "it was given back, but another stream may still use it: let that stream finish, or drop the last \
                    reference on the stream that used it"
                .to_owned();
        }
        Class::CppHeld => {
            return "no Python object holds it: look at what C++ keeps, such as a library's workspace, the buckets of \
                    `DistributedDataParallel`, the pool of a CUDA graph or an extension"
                .to_owned();
        }
        _ if holder.through.is_some() => {
            if path.ends_with("[*]") {
                "each item keeps the whole graph of its step; append `loss.item()` or `loss.detach()`, or make it under \
                 `torch.no_grad()`"
            } else {
                "it keeps the graph of every step that led to it; `.detach()` it before the next step uses it"
            }
        }
        Class::Gradients => "call `optimizer.zero_grad(set_to_none=True)` when they are done with",
        Class::OptimizerState => "make the optimizer once, before the loop, and drop it with its parameters",
        Class::Parameters | Class::Buffers => "make modules, parameters and buffers once, before the loop",
        Class::Activations => "it keeps a graph whose backward pass did not run; `.detach()` what is kept",
        Class::UserHeld => by_kind_of_path(path),
    };
    format!("give up `{path}`: {what}")
}

/// What to do about plain references, by how the path begins and ends.
fn by_kind_of_path(path: &str) -> &'static str {
    if path.starts_with("sys.last_") || path.contains(".__traceback__") || path.contains(".tb_frame") {
        "an exception keeps the local variables of all its frames; drop it, with `sys.last_value` and its like, when it is \
         handled"
    } else if path.contains(".__defaults__") || path.contains(".__kwdefaults__") {
        "a default value lives as long as the function; make it `None` and create the object inside"
    } else if path.contains(".<closure>.") {
        "a function that is kept keeps its variables; keep the function no longer, or pass it what it needs"
    } else if path.ends_with("[*]") {
        "take out what is done with, bound its length, or keep copies on the CPU (`x.detach().cpu()`)"
    } else if path.rsplit('.').next().is_some_and(|last| !last.contains("[*]") && last.contains(':')) {
        "`del` the variable when it is done with, or return from the function"
    } else {
        "set it to `None` when it is done with, or keep a copy on the CPU (`x.detach().cpu()`)"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::holders::{Bytes, Through};

    fn check(path: &str, class: Class, through: Option<Through>, want: &str) {
        let holder = Holder {
            path: path.into(),
            through,
            class,
            bytes: Bytes(1),
            exclusive_bytes: Bytes(1),
            also_held_by: Vec::new(),
            held_by_more: Bytes(0),
            blocks: 1,
            fingerprint: String::new(),
            chain: Vec::new(),
        };
        let advice = give_up(&holder);
        assert!(advice.contains(want), "{path}: {advice}");
        assert_eq!(advice.matches('`').count() % 2, 0, "{advice}");
    }

    #[test]
    fn advice_fits_the_kind_of_reference() {
        use Class::{Activations, CppHeld, CycleGarbage, Gradients, Pending, UserHeld};
        let graph = Some(Through::Autograd);
        check(
            "__main__.losses[*]",
            Activations,
            graph,
            "give up `__main__.losses[*]`: each item keeps the whole graph",
        );
        check("__main__.hidden", Activations, graph, "`.detach()` it before the next step");
        check("__main__.kept[*]", UserHeld, None, "bound its length");
        check("__main__.model.state", UserHeld, None, "set it to `None`");
        check("train:batch", UserHeld, None, "`del` the variable");
        check("train:batch.image", UserHeld, None, "set it to `None`");
        check("sys.last_value.__traceback__", UserHeld, None, "an exception keeps");
        check("f.__defaults__[*][*]", UserHeld, None, "a default value lives");
        check("hook.<closure>.store[*]", UserHeld, None, "a function that is kept");
        check("unreachable: Node.me", CycleGarbage, None, "break the cycle at `Node.me`");
        check("__main__.model", Gradients, None, "zero_grad");
        check("C++ (no Python object)", CppHeld, None, "no Python object holds it");
        check("pending free", Pending, None, "another stream");
    }
}
