//! What is known about the libraries: what their functions give, which of their classes are modules.

use super::{
    expressions::place_of,
    value::{Class, Graph, GroupKind, Place, Size, Tensor, Value},
};
use crate::{
    facts::Grad,
    names::Path,
    syntax::{
        ast::{self, Expr},
        bool_literal, text_literal,
    },
};

/// Stands for the class of a module none of whose parameters requires gradients.
pub(super) const FROZEN: &str = "frozen module";

/// How a context manager or decorator sets recording.
pub(super) fn grad_mode(path: &Path<'_>, call: Option<&ast::ExprCall>) -> Option<Grad> {
    let argument = |name| call.and_then(|it| it.arguments.find_argument_value(name, 0));
    let by_argument = |argument: Option<&Expr>, on: Grad, off: Grad| match argument.map(bool_literal) {
        None | Some(Some(true)) => on,
        Some(Some(false)) => off,
        Some(None) => Grad::Unknown,
    };
    match path.last() {
        "no_grad" if path.first() == "torch" => Some(Grad::Off),
        "inference_mode" if path.first() == "torch" => {
            Some(by_argument(argument("mode"), Grad::Off, Grad::Unknown))
        }
        "enable_grad" if path.first() == "torch" => Some(Grad::On),
        "set_grad_enabled" if path.first() == "torch" => {
            Some(by_argument(argument("mode"), Grad::On, Grad::Off))
        }
        name => may_set_grad(name).then_some(Grad::Unknown),
    }
}

/// Whether a context manager of this file or of an unknown object may turn recording off, by its name.
pub(super) fn is_maybe_no_grad(callee: &Expr) -> bool {
    match callee {
        Expr::Name(it) => may_set_grad(it.id.as_str()),
        Expr::Attribute(it) => may_set_grad(it.attr.as_str()),
        _ => false,
    }
}

fn may_set_grad(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["no_grad", "nograd", "inference", "grad_enabled", "eval_mode", "evaluating", "frozen", "freeze"]
        .iter()
        .any(|it| name.contains(it))
}

/// What calling an imported function gives.
pub(super) enum Known {
    Value(Value),
    /// A tensor computed from the arguments.
    LikeInputs(Size),
    /// Several tensors computed from the arguments.
    Several,
    /// A loss of the arguments: what is not known of them is taken to be attached.
    Loss(Size),
    Nothing,
}

/// What calling `path` gives.
pub(super) fn result_of(path: &str, call: &ast::ExprCall) -> Known {
    let parts = Path::of(path);
    let last = parts.last();
    match parts.parts() {
        ["torch", ..] if gives_several(last, call, 1) => Known::Several,
        ["torch", "nn", "functional", _] => functional(last, call),
        ["torch", "nn", "Parameter"] | ["torch", "nn", "parameter", "Parameter"] => {
            Known::Value(Value::Tensor(Tensor {
                graph: Graph::Attached,
                size: Size::Array,
                ..Tensor::data()
            }))
        }
        ["torch", "nn" | "optim", ..]
        | ["torch", "utils", "data", ..]
        | ["torch", "cuda" | "jit" | "amp", _] => instance_of(&parts).map_or(Known::Nothing, Known::Value),
        ["torch", "distributions", ..] => Known::Value(Value::Object(Class::External(path.into()))),
        ["torch", "linalg" | "fft" | "special", _] => Known::LikeInputs(Size::Unknown),
        ["torch", _] | ["torch", "functional", _] => torch_function(last, call),
        ["torchvision", "models", ..] | ["timm", "create_model"] | ["timm", "models", "create_model"] => {
            Known::Value(Value::Object(Class::External(path.into())))
        }
        ["transformers", .., name, "from_pretrained" | "from_config"] | ["transformers", .., name]
            if is_model_name(name) =>
        {
            Known::Value(Value::Object(Class::External(format!("transformers.{name}").into())))
        }
        ["keras" | "tensorflow", .., "load_model" | "clone_model" | "model_from_json"] => {
            Known::Value(Value::Object(Class::External("keras.Model".into())))
        }
        [
            "numpy" | "math" | "random" | "time" | "os" | "json" | "sys" | "logging" | "scipy" | "pandas",
            ..,
        ] => Known::Value(Value::Plain),
        _ => instance_of(&parts).map_or(Known::Nothing, Known::Value),
    }
}

/// Whether a function or method gives a tuple of tensors; the dimension to reduce comes after `before_dim` arguments.
pub(super) fn gives_several(name: &str, call: &ast::ExprCall, before_dim: usize) -> bool {
    let is_on =
        |name| call.arguments.find_keyword(name).is_some_and(|it| bool_literal(&it.value) != Some(false));
    match name {
        "sort" | "topk" | "mode" | "kthvalue" | "cummax" | "cummin" | "frexp" | "svd" | "eig" | "eigh"
        | "qr" | "slogdet" | "lu" | "aminmax" | "var_mean" | "std_mean" | "meshgrid" | "histogram"
        | "histogramdd" | "geqrf" | "lstsq" | "symeig" | "lu_unpack" | "lu_factor" | "inv_ex"
        | "cholesky_ex" | "solve_ex" | "gradient" | "broadcast_tensors" | "unravel_index" | "pca_lowrank"
        | "svd_lowrank" => true,
        "max" | "min" | "median" | "nanmedian" => {
            call.arguments.args.len() > before_dim || call.arguments.find_keyword("dim").is_some()
        }
        _ => ["return_indices", "return_counts", "return_inverse", "as_tuple"].into_iter().any(is_on),
    }
}

fn functional(name: &str, call: &ast::ExprCall) -> Known {
    if name.ends_with("_loss")
        || matches!(name, "cross_entropy" | "binary_cross_entropy" | "kl_div")
        || name == "binary_cross_entropy_with_logits"
    {
        let reduction = call.arguments.find_keyword("reduction").map(|it| text_literal(&it.value));
        return Known::Loss(match reduction {
            None | Some(Some("mean" | "sum" | "batchmean")) => Size::Scalar,
            _ => Size::Unknown,
        });
    }
    match name {
        "one_hot" => Known::Value(Value::Tensor(Tensor::data())),
        _ => Known::LikeInputs(Size::Unknown),
    }
}

fn torch_function(name: &str, call: &ast::ExprCall) -> Known {
    let leaf =
        call.arguments.find_keyword("requires_grad").is_some_and(|it| bool_literal(&it.value) == Some(true));
    match name {
        "randn" | "rand" | "zeros" | "ones" | "empty" | "full" | "tensor" | "as_tensor" | "from_numpy"
        | "arange" | "linspace" | "eye" | "randint" | "randperm" | "zeros_like" | "ones_like"
        | "empty_like" | "full_like" | "rand_like" | "randn_like" | "randint_like" | "normal"
        | "bernoulli" | "multinomial" | "Tensor" | "FloatTensor" | "LongTensor" | "BoolTensor"
        | "IntTensor" | "logspace" | "tril_indices" | "triu_indices" | "empty_strided" | "frombuffer" => {
            let graph = if leaf { Graph::Attached } else { Graph::Detached };
            let place = match name {
                "from_numpy" | "frombuffer" => Place::Host,
                _ => place_of(call.arguments.find_keyword("device").map(|it| &it.value)),
            };
            Known::Value(Value::Tensor(Tensor { graph, size: Size::Array, place, ..Tensor::data() }))
        }
        "argmax" | "argmin" | "argsort" | "nonzero" | "bincount" | "searchsorted" | "bucketize"
        | "unique" => Known::Value(Value::Tensor(Tensor { size: Size::Indices, ..Tensor::data() })),
        "eq" | "ne" | "gt" | "lt" | "ge" | "le" | "isnan" | "isinf" | "isfinite" | "logical_and"
        | "logical_or" | "logical_not" | "isin" => Known::Value(Value::Tensor(Tensor::data())),
        "device" | "is_tensor" | "manual_seed" | "Generator" | "Size" | "numel" | "equal" | "allclose"
        | "is_grad_enabled" | "get_default_dtype" | "set_default_dtype" | "finfo" | "iinfo"
        | "get_rng_state" => Known::Value(Value::Plain),
        "cat" | "concat" | "concatenate" | "stack" | "hstack" | "vstack" | "dstack" => {
            Known::LikeInputs(Size::Array)
        }
        "sum" | "mean" | "prod" | "max" | "min" | "norm" | "std" | "var" | "median" | "dist" => {
            let one = call.arguments.args.len() == 1 && call.arguments.keywords.is_empty();
            Known::LikeInputs(if one { Size::Scalar } else { Size::Unknown })
        }
        "load" | "save" | "compile" | "get_device_module" => Known::Nothing,
        _ if name.starts_with(char::is_uppercase) => Known::Nothing,
        _ if name.starts_with("set_") || name.starts_with("is_") || name.starts_with("get_") => {
            Known::Nothing
        }
        _ => Known::LikeInputs(Size::Unknown),
    }
}

/// An instance of an imported class; also for annotations.
pub(super) fn instance_of(path: &Path<'_>) -> Option<Value> {
    match path.parts() {
        ["torch", "Tensor"] => Some(Value::Tensor(Tensor { graph: Graph::Unknown, ..Tensor::data() })),
        [root, .., last]
            if matches!(
                *root,
                "torch"
                    | "torchvision"
                    | "tensorflow"
                    | "tf"
                    | "keras"
                    | "jax"
                    | "onnxruntime"
                    | "accelerate"
                    | "lightning"
                    | "pytorch_lightning"
                    | "transformers"
                    | "torchmetrics"
                    | "diffusers"
                    | "peft"
                    | "vllm"
                    | "ray"
                    | "concurrent"
                    | "threading"
                    | "queue"
                    | "multiprocessing"
            ) && last.starts_with(char::is_uppercase) =>
        {
            Some(Value::Object(Class::External(path.to_string().into())))
        }
        _ => None,
    }
}

/// A value that an imported name stands for without a call.
pub(super) fn constant(path: &Path<'_>) -> Value {
    match path.parts() {
        ["math" | "numpy" | "sys" | "os", ..] => Value::Plain,
        ["torch", dtype]
            if dtype.starts_with("float")
                || dtype.starts_with("int")
                || matches!(*dtype, "bool" | "bfloat16" | "long") =>
        {
            Value::Plain
        }
        _ => Value::External(path.to_string().into()),
    }
}

/// Whether an imported class is that of modules.
pub(crate) fn is_module_class(path: &Path<'_>) -> bool {
    match path.parts() {
        ["torch", "nn", "functional" | "init" | "utils", ..]
        | ["torch", "nn", .., "Parameter" | "ParameterList" | "ParameterDict" | "UninitializedParameter"] => {
            false
        }
        ["torch", "nn", .., last] => last.starts_with(char::is_uppercase),
        ["transformers", .., name] => is_model_name(name),
        ["torchvision", "models", ..]
        | ["timm", ..]
        | ["torch", "jit", "ScriptModule" | "RecursiveScriptModule"]
        | [.., "LightningModule" | "PreTrainedModel" | "ModelMixin" | "BaseModel2d"] => true,
        _ => false,
    }
}

fn is_model_name(name: &str) -> bool {
    name.starts_with(char::is_uppercase)
        && (name.ends_with("Model")
            || name.contains("ModelFor")
            || name.contains("For") && name.contains("LM")
            || name.ends_with("Classification")
            || name.ends_with("Generation")
            || name.ends_with("PreTrainedModel"))
}

/// What the name of something that is called says about it, where nothing else does: networks and losses.
pub(super) fn meaning_of_name(name: &str) -> Option<Size> {
    match name {
        "model" | "net" | "network" | "encoder" | "decoder" | "backbone" | "generator" | "discriminator"
        | "unet" | "netG" | "netD" | "actor" | "critic" | "policy_net" | "target_net" | "classifier"
        | "student" | "vae" | "module" | "policy" | "head" => Some(Size::Unknown),
        "criterion" | "loss_fn" | "loss_func" | "loss_function" | "compute_loss" | "lossfn" | "crit"
        | "criterion_" | "bce_loss" | "mse_loss" | "l1_loss" | "cross_entropy_loss" => Some(Size::Scalar),
        _ => None,
    }
}

/// What a method of an instance of an imported class gives.
pub(super) fn method_of(class: &str, name: &str) -> Value {
    match (class.rsplit('.').next().unwrap_or(class), name) {
        ("DataLoader", "__iter__") => Value::group(GroupKind::Iterator, Value::Unknown),
        (_, "state_dict") => Value::group(GroupKind::Dict, Value::Tensor(Tensor::data())),
        _ => Value::Unknown,
    }
}

/// What a method of a tensor does to it.
pub(super) enum TensorMethod {
    /// Gives something that is no tensor.
    Plain,
    /// Gives a tensor without the graph.
    Cut(Size),
    /// The same tensor, of another type or in another place, with its graph.
    Move,
    /// A copy with its graph.
    Copy,
    /// A view of the same data, with its graph.
    Window,
    /// One number if nothing says which dimensions; saves next to nothing.
    Reduce,
    /// Several tensors.
    Parts,
    RequireGrad,
    /// An operation that saves what it needs for its gradient.
    Compute,
}

/// What a method of a tensor does.
pub(super) fn tensor_method(name: &str) -> TensorMethod {
    match name {
        "item" | "tolist" | "numpy" | "size" | "dim" | "numel" | "element_size" | "stride" | "data_ptr"
        | "is_contiguous" | "get_device" | "nelement" | "is_floating_point" | "is_complex"
        | "register_hook" | "retain_grad" | "storage" | "untyped_storage" | "record_stream"
        | "share_memory_" | "type_as_string" => TensorMethod::Plain,
        "detach" | "detach_" => TensorMethod::Cut(Size::Unknown),
        "argmax" | "argmin" | "argsort" | "nonzero" | "long" | "int" | "bool" | "byte" | "short" | "char"
        | "eq" | "ne" | "gt" | "lt" | "ge" | "le" | "isnan" | "isinf" | "isfinite" | "any" | "all"
        | "multinomial" | "bernoulli" | "unique" | "new_zeros" | "new_ones" | "new_empty" | "new_full"
        | "new_tensor" | "sign" | "logical_not" => TensorMethod::Cut(Size::Indices),
        "cpu" | "cuda" | "to" | "float" | "half" | "bfloat16" | "double" | "type" | "type_as"
        | "pin_memory" | "xpu" | "npu" | "mps" => TensorMethod::Move,
        "clone" | "contiguous" | "flatten" | "reshape" | "repeat" | "roll" | "flip" => TensorMethod::Copy,
        "view" | "squeeze" | "unsqueeze" | "permute" | "transpose" | "t" | "expand" | "expand_as"
        | "narrow" | "select" | "view_as" | "unflatten" | "swapaxes" | "movedim" | "diagonal" | "unfold"
        | "as_strided" | "squeeze_" | "unsqueeze_" => TensorMethod::Window,
        "sum" | "mean" => TensorMethod::Reduce,
        "chunk" | "split" | "unbind" | "tensor_split" => TensorMethod::Parts,
        "requires_grad_" => TensorMethod::RequireGrad,
        _ => TensorMethod::Compute,
    }
}
