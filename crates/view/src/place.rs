//! From interned frames and stacks to places a person recognises.

use vramscope_model::{FrameId, Origin, StackId, Symbols};

use crate::analysis::{Frame, Location};

/// What a stack without any frame is called: Python was asked for its frames, and the thread had none.
pub(crate) const NO_PYTHON_FRAME: &str = "no Python frame (autograd backward)";

/// What it is called when the recording kept no stack.
pub(crate) const NO_STACK: &str = "no stack recorded";

/// The line of code that a frame stands for.
pub(crate) fn location(symbols: &Symbols, frame: FrameId) -> Location {
    let frame = symbols.get_frame(frame);
    Location {
        file: symbols.str(frame.file).to_owned(),
        line: frame.line,
        function: symbols.str(frame.name).to_owned(),
    }
}

/// Every frame of a stack, innermost first.
pub(crate) fn stack(symbols: &Symbols, stack: StackId) -> Vec<Frame> {
    symbols
        .frames(stack)
        .iter()
        .map(|&frame| Frame {
            location: location(symbols, frame),
            is_user: symbols.get_frame(frame).origin == Origin::User,
        })
        .collect()
}

/// What to call the place that a stack allocates at: its innermost user frame; where there is none, the innermost
/// Python frame of a library, else of generated code; else the autograd node or C++ function.
pub(crate) fn label(symbols: &Symbols, stack: StackId) -> String {
    match stack {
        StackId::ABSENT => return NO_STACK.to_owned(),
        StackId::EMPTY => return NO_PYTHON_FRAME.to_owned(),
        _ => {}
    }
    if let Some(site) = symbols.site(stack) {
        return site_label(symbols, site);
    }
    let frames = symbols.frames(stack);
    for (origin, kind) in [(Origin::Library, "library"), (Origin::Generated, "generated")] {
        if let Some(&frame) = frames.iter().find(|&&f| symbols.get_frame(f).origin == origin) {
            let frame = symbols.get_frame(frame);
            let file = package_path(symbols.str(frame.file));
            return format!("{} ({kind})", spot(file, frame.line, symbols.str(frame.name)));
        }
    }
    native_label(frames.iter().map(|&f| symbols.str(symbols.get_frame(f).name)))
}

/// A user frame as "train.py:14 forward".
pub(crate) fn site_label(symbols: &Symbols, site: FrameId) -> String {
    let frame = symbols.get_frame(site);
    spot(file_name(symbols.str(frame.file)), frame.line, symbols.str(frame.name))
}

fn spot(file: &str, line: u32, function: &str) -> String {
    match (line, function) {
        (0, "") => file.to_owned(),
        (0, _) => format!("{file} {function}"),
        (_, "") => format!("{file}:{line}"),
        _ => format!("{file}:{line} {function}"),
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// The part of a library's path that is the same on every machine: "torch/nn/functional.py".
fn package_path(path: &str) -> &str {
    for folder in ["site-packages", "dist-packages"] {
        if let Some((_, tail)) = path.rsplit_once(folder) {
            return tail.trim_start_matches(['/', '\\']);
        }
    }
    // The standard library: `…/lib/python3.12/contextlib.py`.
    if let Some((_, tail)) = path.rsplit_once("/lib/python").or_else(|| path.rsplit_once("/lib64/python"))
        && let Some((_, tail)) = tail.split_once('/')
    {
        return tail;
    }
    if path.starts_with('<') { path } else { file_name(path) }
}

/// Names a stack of C++ frames: the autograd node that ran, else the operator, else the innermost function that
/// says anything.
fn native_label<'a>(names: impl Iterator<Item = &'a str> + Clone) -> String {
    let bare = names.map(without_arguments);
    let node = bare.clone().find_map(autograd_node);
    let operator = || bare.clone().find_map(operator).map(|op| format!("aten::{op}"));
    let function = || bare.clone().find(|name| !is_plumbing(name)).map(str::to_owned);
    match node.map(str::to_owned).or_else(operator).or_else(function) {
        Some(name) => format!("{name} (C++)"),
        None => "unnamed native code (C++)".to_owned(),
    }
}

/// `torch::autograd::generated::DivBackward0::apply` → `DivBackward0`.
fn autograd_node(name: &str) -> Option<&str> {
    let path = name.strip_suffix("::apply")?;
    if !path.contains("autograd") {
        return None;
    }
    path.rsplit("::").next().filter(|node| !node.is_empty())
}

/// `at::_ops::mm::call` → `mm`; not those that only hand out memory for another one.
fn operator(name: &str) -> Option<&str> {
    let path = name.strip_prefix("at::_ops::")?;
    let operator = path.split("::").next()?;
    (!operator.starts_with("empty") && !operator.starts_with("_to_copy") && !operator.is_empty())
        .then_some(operator)
}

/// Frames that every allocation passes through.
fn is_plumbing(name: &str) -> bool {
    const PATHS: [&str; 9] = [
        "torch::unwind",
        "torch::CapturedTraceback",
        "torch::cuda::",
        "c10::",
        "at::detail::",
        "at::(anonymous namespace)",
        "at::native::empty",
        "at::_ops::empty",
        "at::empty",
    ];
    name.is_empty() || name == "??" || PATHS.iter().any(|path| name.starts_with(path))
}

/// The name of a C++ function without its parameters and what follows: they make up most of it.
fn without_arguments(name: &str) -> &str {
    let mut angles = 0_u32;
    for (i, c) in name.char_indices() {
        match c {
            '<' => angles += 1,
            '>' => angles = angles.saturating_sub(1),
            '(' if angles == 0 => {
                let rest = name.get(i..).unwrap_or("");
                // Parts of the name rather than parameters.
                if !rest.starts_with("(anonymous namespace)") && !name.get(..i).is_some_and(ends_as_operator)
                {
                    return name.get(..i).unwrap_or(name).trim_end();
                }
            }
            _ => {}
        }
    }
    name
}

/// Whether a name goes on with `()` itself: `Node::operator()(…)`.
fn ends_as_operator(name: &str) -> bool {
    name.ends_with("operator")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(frames: &[(&str, u32, &str)], want: &str) {
        let mut symbols = Symbols::default();
        let ids: Vec<_> = frames.iter().map(|&(file, line, name)| symbols.frame(file, name, line)).collect();
        let id = symbols.stack(&ids);
        assert_eq!(label(&symbols, id), want);
    }

    #[test]
    fn user_code_comes_before_libraries_and_libraries_before_native_code() {
        let library = ("/v/lib/python3.12/site-packages/torch/nn/functional.py", 2567, "linear");
        let user = ("/srv/job/train.py", 14, "forward");
        let native = ("??", 0, "at::_ops::mm::call(at::Tensor const&, at::Tensor const&)");
        check(&[native, library, user], "train.py:14 forward");
        check(&[native, library], "torch/nn/functional.py:2567 linear (library)");
        check(&[native], "aten::mm (C++)");
        check(&[], NO_PYTHON_FRAME);
        check(&[("/usr/lib/python3.11/contextlib.py", 81, "inner")], "contextlib.py:81 inner (library)");
        check(&[("<eval_with_key>.3", 5, "forward")], "<eval_with_key>.3:5 forward (generated)");
        check(&[("C:\\job\\train.py", 3, "main")], "train.py:3 main");
    }

    #[test]
    fn a_backward_thread_is_named_after_its_autograd_node() {
        check(
            &[
                ("??", 0, "torch::unwind::unwind()"),
                (
                    "",
                    0,
                    "c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::malloc(unsigned long)",
                ),
                ("RegisterCUDA_0.cpp", 0, "at::(anonymous namespace)::create_out(c10::ArrayRef<long>)"),
                ("??", 0, "at::_ops::div_Tensor::call(at::Tensor const&)"),
                ("Functions.cpp", 0, "torch::autograd::generated::DivBackward0_apply_functional(int)"),
                ("??", 0, "torch::autograd::generated::DivBackward0::apply(std::vector<at::Tensor, (a)>&&)"),
                ("", 0, "torch::autograd::Node::operator()(std::vector<at::Tensor>&&)"),
            ],
            "DivBackward0 (C++)",
        );
    }

    #[test]
    fn without_a_node_or_operator_the_first_telling_function_is_the_name() {
        check(
            &[
                ("??", 0, "torch::CapturedTraceback::gather(bool, bool, bool)"),
                (
                    "",
                    0,
                    "c10::cuda::CUDACachingAllocator::Native::NativeCachingAllocator::allocate(unsigned long)",
                ),
                ("??", 0, "mine::(anonymous namespace)::Workspace<int (*)(int)>::grow(unsigned long)"),
            ],
            "mine::(anonymous namespace)::Workspace<int (*)(int)>::grow (C++)",
        );
        check(&[("??", 0, "Holder::operator()(int)")], "Holder::operator() (C++)");
        check(&[("??", 0, "??")], "unnamed native code (C++)");
    }

    #[test]
    fn absent_and_empty_stacks_are_told_apart() {
        let symbols = Symbols::default();
        assert_eq!(label(&symbols, StackId::ABSENT), "no stack recorded");
        assert_eq!(label(&symbols, StackId::EMPTY), "no Python frame (autograd backward)");
        assert!(stack(&symbols, StackId::EMPTY).is_empty());
    }

    #[test]
    fn frames_keep_their_order_and_say_whose_code_they_are() {
        let mut symbols = Symbols::default();
        let inner = symbols.frame("/v/site-packages/torch/_tensor.py", "to", 9);
        let outer = symbols.frame("/srv/train.py", "main", 3);
        let id = symbols.stack(&[inner, outer]);
        let frames = stack(&symbols, id);
        assert_eq!(frames.iter().map(|f| f.is_user).collect::<Vec<_>>(), [false, true]);
        assert_eq!(frames[1].location, location(&symbols, outer));
        assert_eq!(frames[1].location.line, 3);
    }
}
