"""Small tensors and graphs of our own, of which Python tells the truth, and where that truth must be found in memory.

Built in a thread of its own: the modes, hooks and defaults that a program sets in torch hold for one thread, so none of them sees these tensors. Each table of the
result has rows of integers: addresses of objects (``id``), of torch's C++ objects (``_cdata``), sizes and counts.
"""

import _thread
import gc
import sys


def _tensors(torch, keep, tables):
    rows, shapes, wrappers = [], [], []
    kinds = [((3, 5, 7), torch.float32, 6), ((2, 9), torch.float64, 7), ((4,), torch.int64, 4), ((11, 1, 2, 6), torch.bfloat16, 15)]
    for shape, dtype, code in kinds:
        tensor = torch.ones(shape, dtype=dtype, device="cpu")
        storage = tensor.untyped_storage()
        keep.append((tensor, storage))
        rows.append((id(tensor), tensor._cdata, storage._cdata, tensor.data_ptr(), storage.nbytes(), code))
        shapes.append((tensor._cdata,) + shape)
        wrappers.append((id(storage), storage._cdata))
    deep = torch.ones((1, 2, 3, 1, 2, 3, 2), dtype=torch.float32, device="cpu")
    keep.append(deep)
    tables["tensors"] = rows
    tables["shapes"] = shapes
    tables["deep shape"] = [(deep._cdata,) + tuple(deep.shape)]
    tables["storage wrappers"] = wrappers
    meta = torch.empty((4,), dtype=torch.float32, device="meta")
    meta_storage = meta.untyped_storage()
    keep.append((meta, meta_storage))
    tables["meta storage"] = [(meta_storage._cdata,)]


def _counts(torch, keep, tables):
    """Tensors and storages with as many owners as their row says."""
    one = torch.ones((2,), dtype=torch.float32, device="cpu", requires_grad=True)
    many = torch.ones((2,), dtype=torch.float32, device="cpu", requires_grad=True)
    keep.append((one, many, [many.mul(many) for _ in range(3)]))
    aliases = [one.detach() for _ in range(4)]
    keep.append(aliases)
    tables["tensor counts"] = [(tensor._cdata, tensor._use_count()) for tensor in (one, many)]
    storages = [tensor.untyped_storage() for tensor in (one, many)]
    keep.append(storages)
    tables["storage counts"] = [(storage._cdata, torch._C._storage_Use_Count(storage._cdata)) for storage in storages]


def _leaf(torch, keep, *shape):
    leaf = torch.ones(shape, dtype=torch.float32, device="cpu", requires_grad=True)
    keep.append(leaf)
    return leaf


def _graph(torch, keep, tables):
    leaves = [_leaf(torch, keep, 3) for _ in range(3)]
    products = [leaf * 2.0 for leaf in leaves]
    three = torch.addcmul(*products)
    two = products[0] + products[1]
    one = two.sin()
    wrappers = [tensor.grad_fn for tensor in (three, two, one, *products)]
    following = [[function for function, _ in wrapper.next_functions] for wrapper in wrappers]
    keep.append((products, three, two, one, wrappers, following))
    tables["functions"] = [(id(tensor), tensor._cdata, id(tensor.grad_fn)) for tensor in (three, two, one, *products)]
    tables["next"] = [(id(wrapper), *(0 if function is None else id(function) for function in functions)) for wrapper, functions in zip(wrappers, following)]
    # One owner is the tensor, another the wrapper, and one more is each function that comes before.
    counted = two.exp()
    keep.append(counted)
    tables["function counts"] = [(id(two.grad_fn), 4), (id(one.grad_fn), 2), (id(three.grad_fn), 2)]
    ends = [product.grad_fn.next_functions[0][0] for product in products]
    keep.append(ends)
    tables["variables"] = [(id(end), leaf._cdata) for end, leaf in zip(ends, leaves)]
    grads = [torch.ones((3,), dtype=torch.float32, device="cpu") for _ in leaves]
    for leaf, grad in zip(leaves, grads):
        leaf.grad = grad
    keep.append(grads)
    tables["grads"] = [(leaf._cdata, grad._cdata) for leaf, grad in zip(leaves, grads)]


def _views(torch, keep, tables):
    bases = [_leaf(torch, keep, 4, n) * 2.0 for n in (2, 3)]
    views = [base.view(-1) for base in bases]
    keep.append((bases, views))
    tables["views"] = [(view._cdata, base._cdata) for view, base in zip(views, bases)]
    written = [_leaf(torch, keep, 4, n).clone() for n in (2, 3)]
    for tensor in written:
        tensor[0].mul_(2.0)
    functions = [tensor.grad_fn for tensor in written]
    keep.append((written, functions))
    tables["written views"] = [(id(function),) for function in functions]


def _custom_functions(torch, keep, tables):
    class Example(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *inputs):
            ctx.save_for_backward(*inputs)
            return inputs[0] * 2.0

        @staticmethod
        def backward(ctx, grad):
            return (grad,)

    rows, saved_rows = [], []
    for count in (1, 2, 3):
        inputs = [_leaf(torch, keep, count) for _ in range(count)]
        output = Example.apply(*inputs)
        context = output.grad_fn
        saved = context._raw_saved_tensors
        keep.append((output, context, saved))
        rows.append((id(context), output._cdata))
        saved_rows.append((id(context), *(id(one) for one in saved)))
        tables.setdefault("saved by custom functions", []).append(tuple(value for one, leaf in zip(saved, inputs) for value in (id(one), leaf._cdata)))
    tables["contexts"] = rows
    tables["saved variables"] = saved_rows


def _hooks(torch, keep, tables):
    class Packer:
        def __call__(self, tensor):
            packed = [tensor]
            keep.append(packed)
            self.packed = packed
            return packed

    rows = []
    for made in (True, True, False):
        pack, unpack = Packer(), lambda packed: packed[0]
        leaf = _leaf(torch, keep, 3)
        saved_tensor = leaf * 2.0 if made else leaf
        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            output = saved_tensor.sin()
        function = output.grad_fn
        saved = function._raw_saved_self
        source = function.next_functions[0][0]
        keep.append((output, function, saved, saved_tensor, source, unpack))
        # A pack hook that is let go of may leave its address behind: the count tells whether it is held.
        held = sys.getrefcount(pack) - 2
        keep.append(pack)
        rows.append((id(saved), id(pack), id(unpack), id(pack.packed), held, id(source), int(made)))
    tables["packed"] = rows

    before, after, on_tensor = [], [], []
    for _ in range(2):
        output = _leaf(torch, keep, 3) * 2.0
        keep.append(output)
        for register, table in ((output.grad_fn.register_prehook, before), (output.grad_fn.register_hook, after), (output.register_hook, on_tensor)):
            handle = register(lambda *grads: None)
            function = output.grad_fn
            keep.append((handle, function))
            table.append((id(function), id(handle.hooks_dict_ref())))
    tables["hooks before"] = before
    tables["hooks after"] = after
    tables["hooks on tensors"] = on_tensor


def _saved_by_real_functions(torch, keep, tables):
    """What the getters of real functions say, to check those that are asked without a function."""
    leaf = _leaf(torch, keep, 3, 3)
    other = _leaf(torch, keep, 3, 3)
    rows = []
    for output, names in ((leaf * other, ("self", "other")), (leaf.sin(), ("self",)), (leaf.mm(other), ("self", "mat2"))):
        function = output.grad_fn
        for name in names:
            saved = getattr(function, "_raw_saved_" + name)
            keep.append((output, function, saved))
            rows.append((id(function), id(saved), id(type(function)), ("self", "other", "mat2").index(name)))
    tables["saved"] = rows
    # An index by tensors saves a list of them.
    output = leaf[torch.tensor([0, 1], device="cpu"), torch.tensor([1, 2], device="cpu")]
    function = output.grad_fn
    saved = function._raw_saved_indices
    keep.append((output, function, saved))
    tables["saved lists"] = [(id(function), id(type(function)), *(id(one) for one in saved))]


def _owned_saved_tensors(torch, keep, tables):
    """Saved tensors that belong to Python objects, which checkpoints hold from torch 2.13 on; and such objects that belong to functions."""
    make = getattr(torch._C._autograd, "_make_saved_tensor", None)
    owned, borrowed = [], []
    for count in (2, 3) if make is not None else ():
        leaf = _leaf(torch, keep, count)
        saved = make(leaf, is_output=False)
        output = leaf.sin()
        function = output.grad_fn
        of_function = function._raw_saved_self
        keep.append((saved, output, function, of_function))
        owned.append((id(saved), leaf._cdata))
        borrowed.append((id(of_function), leaf._cdata))
    tables["owned saved tensors"] = owned
    tables["borrowed saved tensors"] = borrowed


_PARTS = (_tensors, _counts, _graph, _views, _custom_functions, _hooks, _saved_by_real_functions, _owned_saved_tensors)


def _build(result):
    import torch

    keep, tables, failed = [], {}, []
    for part in _PARTS:
        try:
            part(torch, keep, tables)
        except Exception as error:  # A release of torch without one of these: the rest can still be learnt.
            failed.append("%s: %s" % (part.__name__.strip("_").replace("_", " "), error))
    result.append((keep, tables, failed))


def build():
    """Returns the objects to keep alive, the tables, and what could not be built."""
    result = []
    collecting = gc.isenabled()
    gc.disable()
    try:
        done = _thread.allocate_lock()
        done.acquire()

        def run():
            try:
                _build(result)
            finally:
                done.release()

        try:
            _thread.start_new_thread(run, ())
        except RuntimeError:  # No more threads, or the interpreter is ending.
            run()
        done.acquire()
    finally:
        if collecting:
            gc.enable()
    if not result:
        raise RuntimeError("the examples could not be built")
    return result[0]


def function_types():
    """The Python types of functions that torch generates, each with the attributes that tell of what it saves without running a hook."""
    # Of other classes nothing is asked that a class of their own could answer.
    members_of, name_of = (type.__dict__[name].__get__ for name in ("__dict__", "__name__"))
    custom = sys.modules["torch"]._C._FunctionBase
    found = []
    for kind in type.__subclasses__(object):
        members = members_of(kind)
        if kind is not custom and "next_functions" in members and "_sequence_nr" in members:
            found.append((kind, name_of(kind), [name for name in sorted(members) if name.startswith("_raw_saved_")]))
    return found
