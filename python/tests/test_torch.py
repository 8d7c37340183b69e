"""What torch's C++ objects hold is read as memory: here it is compared with what torch says itself."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import subprocess
import sys
import threading
import types
from collections.abc import Iterable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten
from vramscope import _native

sys.path.insert(0, os.path.dirname(__file__))
from torch_scenarios import SCENARIOS

Graph = dict[str, Any]
each_scenario = pytest.mark.parametrize("name", sorted(SCENARIOS))


@pytest.fixture(autouse=True)
def quiet() -> Any:
    """No collector in between, and nothing left of the test before."""
    torch.manual_seed(0)
    _native.torch_layout()
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def everything() -> list[Any]:
    """What the collector knows, and the saved tensors that it does not know."""
    objects = gc.get_objects()
    lists = [value for value in objects if type(value) is list]
    return objects + [value for value in gc.get_referents(*lists) if type(value) is torch._C._autograd.SavedTensor]


def read(roots: Any = None, **options: Any) -> Graph:
    return _native.torch_graph(everything(), roots, **options)


class Recorder(TorchDispatchMode):
    """Remembers every storage that an operation returned, without keeping it alive: the truth that readings are compared with."""

    def __init__(self) -> None:
        super().__init__()
        self.storages: dict[int, tuple[StorageWeakRef, int]] = {}

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        outputs = function(*args, **(kwargs or {}))
        for output in tree_flatten(outputs)[0]:
            if isinstance(output, torch.Tensor) and output.layout == torch.strided:
                storage = output.untyped_storage()
                known = self.storages.get(storage._cdata)
                if known is None or known[0].expired():
                    self.storages[storage._cdata] = (StorageWeakRef(storage), storage.nbytes())
        return outputs

    def live(self) -> dict[int, int]:
        """Bytes of the storages that are still alive, by address."""
        return {address: size for address, (reference, size) in self.storages.items() if not reference.expired()}


def record(name: str) -> tuple[Any, dict[int, int]]:
    with Recorder() as recorder:
        kept = SCENARIOS[name]()
    gc.collect()
    return kept, recorder.live()


HELD_BY_ALL = (type, types.ModuleType, types.FrameType, types.BuiltinFunctionType)


def reachable(start: Iterable[Any]) -> list[Any]:
    """The objects that Python can see from these, not beyond modules, classes and the globals of functions."""
    seen: dict[int, Any] = {}
    waiting = list(start)
    while waiting:
        value = waiting.pop()
        if id(value) in seen or isinstance(value, HELD_BY_ALL):
            continue
        seen[id(value)] = value
        following = gc.get_referents(value)
        if isinstance(value, types.FunctionType):
            following = [other for other in following if other is not value.__globals__]
        waiting.extend(following)
    return list(seen.values())


def held_by(*start: Any) -> set[int]:
    """Addresses of the storages that these objects hold, in Python and in torch: a walk as the tool makes it, in slow steps."""
    objects = everything()
    roots: list[Any] = list(start)
    while True:
        roots = reachable(roots)
        graph = _native.torch_graph(objects, roots)
        numbers = {row["object"] for kind in ("tensors", "storages", "functions") for row in graph[kind]}
        numbers |= {index for _, (kind, index), _ in graph["edges"] if kind == "object"}
        known = {id(root) for root in roots}
        more = [objects[number] for number in numbers if number is not None and id(objects[number]) not in known]
        if not more:
            return {storage["address"] for storage in graph["storages"]}
        roots += more


def test_everything_is_found_in_this_release_of_torch() -> None:
    assert read()["warnings"] == []


@each_scenario
def test_the_storages_held_are_those_that_torch_keeps_alive(name: str) -> None:
    kept, live = record(name)
    assert live
    assert set(live) - held_by(kept) == set()


def test_between_forward_and_backward_loss_and_parameters_explain_all_bytes() -> None:
    (model, loss), live = record("transformer")
    found = {storage["address"] for storage in read([loss, *model.parameters()])["storages"]}
    assert set(live) - found == set()


def test_python_alone_explains_less_than_half_of_them() -> None:
    """So the one above shows something. Without a recorder, which makes Python objects for all tensors."""
    model, loss = SCENARIOS["transformer"]()
    storages = read([loss, *model.parameters()])["storages"]
    plain = {value.untyped_storage()._cdata for value in gc.get_objects() if isinstance(value, torch.Tensor)}
    activations = {storage["address"]: storage["bytes"] for storage in storages}
    for parameter in model.parameters():
        activations.pop(parameter.untyped_storage()._cdata, None)
    assert sum(size for address, size in activations.items() if address in plain) < 0.5 * sum(activations.values())


@each_scenario
def test_every_owner_that_torch_counts_is_found(name: str) -> None:
    kept = SCENARIOS[name]()
    gc.collect()
    graph = read()
    # These have no type of their own in Python.
    assert [kind for kind, _ in graph["guessed"] if "Foreach" not in kind] == []
    assert graph["storages"]
    for kind in ("tensors", "storages", "functions"):
        wrong = [row for row in graph[kind] if row["counted"] != row["found"]]
        assert wrong == [], kind
    del kept


@each_scenario
def test_looking_changes_nothing(name: str) -> None:
    kept = SCENARIOS[name]()
    objects = gc.get_objects()
    tensors = [value for value in objects if type(value) in (torch.Tensor, torch.nn.Parameter)]
    storages = []
    for tensor in tensors:
        # Sparse and nested ones have none.
        with contextlib.suppress(NotImplementedError, RuntimeError):
            storages.append(tensor.untyped_storage()._cdata)

    def counts() -> list[tuple[int, ...]]:
        per_tensor = [(tensor._use_count(), sys.getrefcount(tensor)) for tensor in tensors]
        per_object = [(sys.getrefcount(value),) for value in objects]
        return per_tensor + per_object + [(torch._C._storage_Use_Count(storage),) for storage in storages]

    before = counts()
    alive = len(gc.get_objects())
    for _ in range(3):
        _native.torch_graph_size(objects)
    assert len(gc.get_objects()) == alive
    assert counts() == before
    del kept


@pytest.mark.parametrize("reentrant", [False, True])
def test_no_forward_and_no_hook_runs(reentrant: bool) -> None:
    calls: list[str] = []

    def forward(value: torch.Tensor) -> torch.Tensor:
        calls.append("forward")
        return value.sin().exp()

    def pack(value: torch.Tensor) -> Any:
        calls.append("pack")
        return [value]

    def unpack(packed: Any) -> torch.Tensor:
        calls.append("unpack")
        return packed[0]

    value = torch.randn(8, requires_grad=True)
    output = torch.utils.checkpoint.checkpoint(forward, value, use_reentrant=reentrant)
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        output = output.cos() * output
    expected = list(calls)
    assert expected.count("pack") == 3 and expected.count("unpack") == 0
    read()
    assert calls == expected
    # The graph is still good.
    output.sum().backward()
    assert calls.count("unpack") == 3


def test_after_the_backward_pass_functions_hold_nothing() -> None:
    value = torch.randn(8, requires_grad=True)
    loss = (value.exp() * value.sin() @ torch.randn(8)).sum()

    def labels() -> list[str]:
        return [label for _, _, label in read([loss])["edges"] if label.startswith("saved")]

    assert len(labels()) >= 5
    loss.backward()
    assert labels() == []


@each_scenario
def test_functions_and_their_order_are_those_that_python_tells(name: str) -> None:
    kept = SCENARIOS[name]()
    for tensor in tree_flatten(kept)[0]:
        if not isinstance(tensor, torch.Tensor) or tensor.grad_fn is None:
            continue
        wrappers: dict[Any, int] = {}
        waiting = [tensor.grad_fn]
        while waiting:
            function = waiting.pop()
            if function not in wrappers:
                wrappers[function] = len(wrappers)
                waiting.extend(following for following, _ in function.next_functions if following is not None)
        # All wrappers are alive, so each is the object of its function.
        objects = list(wrappers)
        graph = _native.torch_graph(objects)
        numbers = [row["object"] for row in graph["functions"]]
        told = sorted(
            (wrappers[function], wrappers[following])
            for function in wrappers
            for following, _ in function.next_functions
            if following is not None
        )
        edges = [(start[1], end[1]) for start, end, label in graph["edges"] if label == "Next" and start[0] == "function"]
        found = sorted((numbers[start], numbers[end]) for start, end in edges if numbers[start] is not None and numbers[end] is not None)
        assert found == told
        for row in graph["functions"]:
            kind = None if row["object"] is None else type(objects[row["object"]])
            if kind is not None and kind.__name__ != "CppFunction" and not issubclass(kind, torch._C._FunctionBase):
                assert row["class"].split("::")[-1] == kind.__name__


def test_saved_tensors_have_the_names_that_python_gives_them() -> None:
    one, other = (torch.randn(3, requires_grad=True) for _ in range(2))
    output = one * other
    graph = read([output])
    saved = {label: graph["tensors"][end[1]]["address"] for _, end, label in graph["edges"] if label.startswith("saved")}
    assert saved == {"saved self": one._cdata, "saved other": other._cdata}


@each_scenario
def test_what_looks_like_a_saved_tensor_is_one(name: str) -> None:
    """A function that says nothing of itself is looked through; that must find what is known of those that do."""
    kept = SCENARIOS[name]()

    def saved(guess: bool) -> list[tuple[str, int, int]]:
        graph = read(guess=guess)
        found = {(start[1], end[1]) for start, end, label in graph["edges"] if label.startswith("saved") and start[0] == "function"}
        rows = [(graph["functions"][start], graph["tensors"][end]) for start, end in found]
        return sorted((function["class"], function["address"], tensor["address"]) for function, tensor in rows)

    assert saved(True) == saved(False)
    del kept


def test_storages_are_described() -> None:
    tensor = torch.zeros(3, 4, 5, dtype=torch.float64)
    view = tensor[1:]
    meta = torch.empty(1000, device="meta")
    graph = read([view, meta])
    by_address = {row["address"]: row for row in graph["tensors"]}
    assert by_address[view._cdata]["shape"] == [2, 4, 5]
    assert by_address[view._cdata]["dtype"] == "float64"
    storages = {row["address"]: row for row in graph["storages"]}
    whole = storages[tensor.untyped_storage()._cdata]
    assert (whole["data"], whole["bytes"], whole["device"]) == (tensor.data_ptr(), 480, ("cpu", -1))
    nothing = storages[meta.untyped_storage()._cdata]
    assert (nothing["data"], nothing["bytes"], nothing["device"][0]) == (0, 4000, "meta")


def test_tensors_inside_tensors_are_found() -> None:
    coo = torch.sparse_coo_tensor(torch.tensor([[0, 1]]), torch.tensor([1.0, 2.0]), (3,))
    csr = torch.eye(5).to_sparse_csr()
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    expected = [coo._indices(), coo._values(), csr.crow_indices(), csr.col_indices(), csr.values(), nested._nested_tensor_size()]
    found = {storage["address"] for storage in read([coo, csr, nested])["storages"]}
    assert {tensor.untyped_storage()._cdata for tensor in expected} <= found


def test_fake_and_wrapped_tensors_are_read() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        fake = torch.empty(1 << 40, device="cuda" if torch.cuda.is_available() else "cpu")

    class Wrapper(torch.Tensor):
        @staticmethod
        def __new__(cls: Any, inner: torch.Tensor) -> Any:
            return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, requires_grad=True)

        def __init__(self, inner: torch.Tensor) -> None:
            self.inner = inner

        @classmethod
        def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            raise AssertionError("nothing may call this")

        __torch_function__ = torch._C._disabled_torch_function_impl

    wrapped = Wrapper(torch.ones(3))
    graph = read([fake, wrapped, wrapped.inner])
    assert {fake._cdata, wrapped._cdata, wrapped.inner._cdata} <= {row["address"] for row in graph["tensors"]}
    # No byte of it exists.
    assert all(storage["data"] == 0 or storage["bytes"] < 1 << 40 for storage in graph["storages"])


def test_owners_that_only_torch_knows_are_counted() -> None:
    tensor = torch.randn(5)
    storage = tensor.untyped_storage()
    # A second Python object that nobody tells the reading of.
    alias = torch.empty(0).set_(storage)
    graph = _native.torch_graph([tensor])
    (row,) = graph["storages"]
    assert row["address"] == storage._cdata
    assert row["unexplained"] == torch._C._storage_Use_Count(storage._cdata) - 1 >= 2
    del alias


def test_a_chain_of_many_functions_needs_no_stack() -> None:
    value = torch.ones(1, requires_grad=True)
    output = value
    for _ in range(50_000):
        output = output * 1.0
    graph = read([output])
    assert len(graph["functions"]) == 50_001


def test_a_function_that_python_holds_is_a_root() -> None:
    value = torch.randn(4, requires_grad=True)
    function = value.exp().grad_fn
    output = SCENARIOS["custom_function"]()
    context = output.grad_fn.next_functions[0][0]
    graph = read([function])
    assert next(row["class"] for row in graph["functions"]) == "torch::autograd::generated::ExpBackward0"
    assert len([label for _, _, label in graph["edges"] if label == "saved result"]) == 1
    graph = read([context])
    assert graph["functions"][0]["class"] == "torch::autograd::PyNode"
    assert len([label for start, _, label in graph["edges"] if label.startswith("saved") and start == ("function", 0)]) == 2


LEARN_ELSEWHERE = """
import torch
from vramscope import _native

class Refuse(torch.utils._python_dispatch.TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        raise AssertionError("the program's mode saw an example")

def refuse(value):
    raise AssertionError("the program's hook saw an example")

torch.set_default_dtype(torch.float64)
torch.set_default_device("meta")
with Refuse(), torch.autograd.graph.saved_tensors_hooks(refuse, refuse), torch.inference_mode():
    _native.torch_layout()
assert _native.torch_graph([])["warnings"] == []
"""


def test_learning_does_not_see_what_the_program_set() -> None:
    subprocess.run([sys.executable, "-c", LEARN_ELSEWHERE], check=True, env=dict(os.environ))


LEARN_AND_LEAVE = """
import gc, torch
from vramscope import _native
torch.ones(2, requires_grad=True).mul(2.0).sum().backward()
gc.collect()
gc.disable()
before = {id(value) for value in gc.get_objects()}
_native.torch_layout()
left = [value for value in gc.get_objects() if isinstance(value, torch.Tensor) and id(value) not in before]
assert left == [], left
gc.enable()
"""


def test_learning_leaves_no_tensor_behind() -> None:
    subprocess.run([sys.executable, "-c", LEARN_AND_LEAVE], check=True, env=dict(os.environ))


def test_reading_while_other_threads_run_backward() -> None:
    """What they free and use anew may be read wrongly; it must never be followed."""
    stop = threading.Event()
    failed: list[BaseException] = []
    rounds = [0] * 3
    # What each thread is working on: its graph is taken down while it is read.
    current: list[Any] = [torch.zeros(())] * len(rounds)

    def train(place: int) -> None:
        try:
            model = torch.nn.Sequential(*(torch.nn.Linear(32, 32) for _ in range(20)))
            while not stop.is_set():
                value = torch.randn(8, 32)
                for layer in model:
                    value = torch.relu(layer(value)) + torch.cat([value, value], 1)[:, ::2]
                current[place] = value.sum()
                current[place].backward()
                rounds[place] += 1
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=train, args=(place,)) for place in range(len(rounds))]
    for thread in threads:
        thread.start()
    try:
        read_functions = 0
        while not (failed or (read_functions > 5000 and min(rounds) >= 50)):
            _, (_, _, functions, _) = _native.torch_graph_size(list(current))
            read_functions += functions
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failed == []


def test_workspaces_are_read_from_a_tree_that_may_be_damaged() -> None:
    # As libstdc++ lays out a map of two pointers to a DataPtr: colour, parent, smaller, larger, key (2), address, …
    def node(smaller: Any, larger: Any, address: int) -> Any:
        words = (ctypes.c_uint64 * 10)(0, 0, smaller and ctypes.addressof(smaller), larger and ctypes.addressof(larger), 1, 2, address)
        kept.append(words)
        return words

    kept: list[Any] = []
    left, right = node(0, 0, 0x1000), node(0, node(0, 0, 0x4000), 0x3000)
    root = node(left, right, 0x2000)
    head = (ctypes.c_uint64 * 6)(0, 0, ctypes.addressof(root), 0, 0, 4)
    read = lambda: sorted(_native.torch_workspaces(ctypes.addressof(head)))  # noqa: E731
    assert read() == [0x1000, 0x2000, 0x3000, 0x4000]
    right[2] = 0x123  # no address
    assert read() == [0x1000, 0x2000, 0x3000, 0x4000]
    right[2] = 0x7000_0000_0000  # not mapped
    assert read() == [0x1000, 0x2000, 0x3000, 0x4000]
    left[2] = ctypes.addressof(root)  # in a circle
    assert set(read()) == {0x1000, 0x2000, 0x3000, 0x4000}
    head[2] = 0
    assert read() == []
    assert _native.torch_workspaces(0x123) == [] and _native.torch_workspaces(2**64 - 8) == []


def test_where_nothing_was_multiplied_on_cuda_there_are_no_workspaces() -> None:
    assert _native.torch_workspaces() == []
