"""That a walk changes nothing, tells what it cannot explain, and stands whatever it meets."""

from __future__ import annotations

import ctypes
import gc
import signal
import subprocess
import sys
import textwrap
import threading
import weakref
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from vramscope import _native


class Thing:
    """What is looked for."""


def path(address: int) -> str | None:
    """The path to the object at an address."""
    return _native._paths_to([address])[0]


def walk() -> dict[str, Any]:
    """Figures of a walk."""
    return _native._walk_figures()


def in_process(source: str, *arguments: str) -> str:
    """What a program of its own prints."""
    command = [sys.executable, *arguments, "-c", textwrap.dedent(source)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr[-2000:]
    return result.stdout.strip()


def test_nothing_is_left_behind() -> None:
    source = """
        import gc, sys
        from vramscope import _native

        class Node:
            def __init__(self):
                self.thing = object()
                self.items = [1, 2, 3]

        nodes = [Node() for _ in range(100)]
        everything = [*nodes, Node, sys, gc, print, None, 1, "text"]
        addresses = [id(node) for node in nodes]

        def walk(times):
            for _ in range(times):
                _native._walk_figures()
                _native._walk_figures(distrust=True)
                _native._paths_to(addresses)
                _native._chain_to(addresses[0])
                _native._held_outside(addresses)

        def measure(times):
            # What the interpreter keeps for reuse is full after a while.
            walk(times)
            gc.collect()
            counts = [sys.getrefcount(thing) for thing in everything[:-3]]
            objects, blocks = len(gc.get_objects()), sys.getallocatedblocks()
            walk(200)
            gc.collect()
            after = [sys.getrefcount(thing) for thing in everything[:-3]]
            return counts == after, len(gc.get_objects()) - objects, sys.getallocatedblocks() - blocks

        measure(1)
        print(measure(100))
    """
    counts, objects, blocks = in_process(source).strip("()").split(", ")
    assert counts == "True"
    # The lists of counts are what is new. Blocks come and go with the interpreter's own caches, but not one for each walk.
    assert int(objects) <= 1
    assert int(blocks) < 150


def test_attributes_stay_without_a_dict() -> None:
    source = """
        import sys
        from vramscope import _native

        class Node:
            def __init__(self):
                self.thing = [1]

        nodes = [Node() for _ in range(1000)]
        things = [id(node.thing) for node in nodes]
        _native._paths_to(things)
        before = sys.getallocatedblocks()
        found = _native._paths_to(things)
        # Since 3.11 they have none, and do not get one by being looked at.
        print(sys.getallocatedblocks() - before - len(found) < 200, set(found))
    """
    assert in_process(source) == "True {'__main__.nodes[*].thing'}"


def test_collection_is_as_it_was() -> None:
    gc.enable()
    walk()
    assert gc.isenabled()
    gc.disable()
    walk()
    assert not gc.isenabled()
    gc.enable()


def test_ordinary_objects_are_explained() -> None:
    from collections import deque

    kept: list[Any] = [Thing(), [1], {"a": []}, (1, []), {1, (2,)}, deque([[]]), lambda: kept]
    kept[0].more = [Thing()]
    kept.append(weakref.ref(kept[0]))
    generator = (x for x in [[1]])
    next(generator)
    kept.append(generator)
    addresses = [id(thing) for thing in kept] + [id(kept), id(kept[0].more), id(kept[0].more[0])]
    assert _native._held_outside(addresses) == [False] * len(addresses)


def test_attributes_and_classes_are_explained() -> None:
    class Node:
        registry: ClassVar[list[Any]] = []

        def method(self) -> None: ...

    node = Node()
    node.thing = Thing()  # type: ignore[attr-defined]
    bound = node.method
    other = Node()
    other.__dict__["thing"] = Thing()
    addresses = [id(x) for x in (node, node.thing, bound, other, vars(other), Node.registry, vars(other)["thing"])]  # type: ignore[attr-defined]
    assert _native._held_outside(addresses) == [False] * len(addresses)


def test_what_only_c_holds() -> None:
    array = (ctypes.py_object * 1)()

    def make() -> int:
        thing = Thing()
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
        return id(thing)

    address = make()
    inner: list[Any] = [[Thing()]]
    inside = id(inner[0])
    array[0] = inner.pop()
    held = _native._held_outside([address])
    found = _native._paths_to([address, inside])
    thing = ctypes.cast(address, ctypes.py_object).value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(thing))
    assert held == [True]
    # ctypes shows what an array keeps.
    assert found[0] == "held outside"
    assert found[1] is not None and found[1].startswith("test_what_only_c_holds:array")


def test_garbage_is_not_held_outside() -> None:
    gc.disable()
    try:

        def make() -> int:
            thing = Thing()
            thing.me = thing  # type: ignore[attr-defined]
            return id(thing)

        assert _native._held_outside([make()]) == [False]
    finally:
        gc.enable()
        gc.collect()


def test_a_long_chain() -> None:
    chain: Any = None
    for _ in range(1_000_000):
        chain = [chain]
    last = chain
    while last[0] is not None:
        last = last[0]
    address = id(last)
    del last
    found = path(address)
    while chain is not None:
        chain = chain[0]
    assert found == "test_a_long_chain:chain" + "[*]" * 999_999


def test_deep_recursion() -> None:
    def function(depth: int) -> list[str | None]:
        if depth == 0:
            return _native._paths_to(addresses)
        thing = Thing()
        addresses.append(id(thing))
        return function(depth - 1)

    addresses: list[int] = []
    assert function(500) == ["function:thing"] * 500


def test_while_other_threads_run() -> None:
    stop = threading.Event()

    def generate(n: int) -> Iterator[Any]:
        for i in range(n):
            yield [i, {"key": (i, Thing())}]

    def work() -> None:
        while not stop.is_set():
            kept = [list(generate(20)) for _ in range(20)]
            try:
                raise ValueError(kept)
            except ValueError:
                sorted(kept, key=lambda items: -len(items))

    threads = [threading.Thread(target=work) for _ in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    for thread in threads:
        thread.start()
    try:
        for _ in range(100):
            figures = walk()
            assert figures["nodes"] > 1000 and not figures["warnings"]
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)


def test_at_any_moment_of_a_program() -> None:
    """A walk from a trace function, after each line and before each call, of code that makes all kinds of objects."""

    def trace(frame: Any, event: str, argument: Any) -> Any:
        nonlocal walks
        walks += 1
        walk()
        return trace

    def program() -> None:
        class Meta(type):
            def __new__(cls, *arguments: Any) -> Any:
                return super().__new__(cls, *arguments)

        class Made(metaclass=Meta):
            __slots__ = ("__weakref__", "a")

            def __init__(self) -> None:
                self.a = list(range(2))

        def numbers() -> Iterator[int]:
            try:
                yield 1
            finally:
                made.a.clear()

        made = Made()
        generator = numbers()
        for _ in generator:
            generator.close()
        try:
            raise ValueError(made)
        except ValueError as error:
            kept = error
        with open(__file__) as file:
            file.readline()
        del kept
        made = None

    walks = 0
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        program()
    finally:
        sys.settrace(before)
    assert walks > 20


def test_from_a_signal_handler() -> None:
    walks: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda *_: walks.append(walk()["nodes"]))
    try:
        while len(walks) < 30:
            if signal.getitimer(signal.ITIMER_REAL)[0] == 0:
                signal.setitimer(signal.ITIMER_REAL, 0.001)
            kept = [{i: [Thing()]} for i in range(100)]
            kept.sort(key=lambda d: -len(d))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert min(walks) > 1000


def test_from_within_the_collector() -> None:
    walks: list[int] = []

    class Walks:
        def __del__(self) -> None:
            walks.append(walk()["nodes"])

    def callback(phase: str, info: Any) -> None:
        walks.append(walk()["nodes"])

    made = Walks()
    made.me = made  # type: ignore[attr-defined]
    del made
    gc.callbacks.append(callback)
    try:
        gc.collect()
    finally:
        gc.callbacks.remove(callback)
    assert len(walks) == 3 and min(walks) > 1000


def test_from_within_containers_that_change() -> None:
    class Key:
        def __init__(self, number: int) -> None:
            self.number = number

        def __hash__(self) -> int:
            walk()
            return self.number % 2

        def __eq__(self, other: object) -> bool:
            walk()
            return self is other

        def __lt__(self, other: Any) -> bool:
            walk()
            return self.number < other.number

    keys = [Key(i) for i in range(5)]
    assert len({key: key for key in keys}) == len(set(keys)) == 5
    keys.sort(reverse=True)
    assert [key.number for key in keys] == [4, 3, 2, 1, 0]


def test_the_users_code_does_not_run() -> None:
    class Hostile:
        armed = False

        def __getattribute__(self, name: str) -> Any:
            if Hostile.armed:
                raise AssertionError(name)
            return object.__getattribute__(self, name)

        def __eq__(self, other: object) -> bool:
            raise AssertionError

        def __hash__(self) -> int:
            if Hostile.armed:
                raise AssertionError
            return 1

        __repr__ = __str__ = __len__ = __bool__ = __iter__ = __eq__  # type: ignore[assignment]

    class Dict(dict):  # type: ignore[type-arg]
        __getitem__ = __iter__ = __len__ = keys = items = Hostile.__eq__  # type: ignore[assignment]

    hostile = Hostile()
    hostile.thing = Thing()  # type: ignore[attr-defined]
    keyed = Dict()
    dict.__setitem__(keyed, hostile, [Thing()])
    addresses = [id(hostile.thing), id(dict.get(keyed, hostile))]  # type: ignore[attr-defined]
    Hostile.armed = True
    try:
        found = _native._paths_to(addresses)
        for address in addresses:
            _native._chain_to(address)
    finally:
        Hostile.armed = False
    assert found == [
        "test_the_users_code_does_not_run:hostile.thing",
        "test_the_users_code_does_not_run:keyed[*]",
    ]


def test_classes_derived_from_everything() -> None:
    source = """
        import array, asyncio, bz2, collections, contextvars, csv, ctypes, datetime, decimal, functools, io, itertools, json
        import lzma, operator, os, pickle, queue, random, re, select, socket, struct, threading, types, warnings, weakref, zlib
        import xml.etree.ElementTree
        from vramscope import _native
        warnings.simplefilter("ignore")
        seen, pending, kept, made = set(), [object], [], 0
        while pending:
            base = pending.pop()
            if base not in seen:
                seen.add(base)
                pending.extend(type.__subclasses__(base))
        for base in seen:
            try:
                # Made, but not initialised.
                kept.append(type(base)("Derived", (base,), {"extra": None}))
                kept.append(kept[-1].__new__(kept[-1]))
                kept[-1].thing = [1]
                made += 1
            except BaseException:
                continue
        found = _native._paths_to([id(thing) for thing in kept])
        # Instances of these errors do not show their class to the collector.
        def shows_class(thing):
            bases = str(type.mro(thing if isinstance(thing, type) else type(thing)))
            return "ssl." not in bases and "_csv." not in bases
        kept = list(filter(shows_class, kept))
        held = _native._held_outside([id(thing) for thing in kept])
        print(len(seen) > 300, made > 100, not any(path is None or "un" in path for path in found), sum(held), flush=True)
        os._exit(0)
    """
    assert in_process(source) == "True True True 0"


@pytest.mark.parametrize(
    "name",
    [
        *("frame", "generator", "coroutine", "function", "code", "cell", "traceback", "hamt", "hamt_bitmap_node", "Context"),
        *("collections.deque", "_thread._local", "numpy.ndarray", "functools._lru_cache_wrapper", "module", "type", "list"),
    ],
)
def test_a_class_with_the_name_of_another(name: str) -> None:
    class Bare:
        __slots__ = ("thing",)

    made = type(name, (Bare,), {"__slots__": ()})()
    made.thing = [Thing()]
    with_dict = type(name, (), {"__getattribute__": lambda self, name: 1 / 0})()
    object.__setattr__(with_dict, "thing", [Thing()])
    addresses = [id(made.thing), id(object.__getattribute__(with_dict, "thing"))]
    found = _native._paths_to(addresses)
    chains = [_native._chain_to(address)[-2] for address in addresses]
    function = "test_a_class_with_the_name_of_another"
    assert found == [f"{function}:made.thing", f"{function}:with_dict.thing"]
    assert chains[0][0] == name.rsplit(".", 1)[-1]
    assert chains[1][0] in (chains[0][0], "dict")


def test_a_type_that_cannot_be_traversed() -> None:
    source = """
        import ctypes, gc
        from vramscope import _native
        class Odd:
            pass
        gc.disable()
        traverse = ctypes.c_void_p.from_address(id(Odd) + 184)
        odd, before = Odd(), traverse.value
        odd.thing = [1]
        traverse.value = None
        found = _native._paths_to([id(odd), id(gc)])
        traverse.value = before
        print(found)
    """
    assert in_process(source) == "['__main__.odd', '']"


@pytest.mark.parametrize("arguments", [(), ("-O",), ("-X", "dev"), ("-I", "-S")])
def test_in_all_modes(arguments: tuple[str, ...]) -> None:
    source = f"""
        import sys
        sys.path[:0] = {sys.path!r}
        from vramscope import _native
        kept = [object(), [1]]
        print(_native._paths_to([id(kept[1])]), _native._walk_figures()["warnings"])
    """
    assert in_process(source, *arguments) == "['__main__.kept[*]'] []"


def test_first_from_within_a_generator_in_a_thread() -> None:
    source = """
        import threading
        from vramscope import _native
        def numbers():
            thing = [1]
            try:
                raise ValueError([2])
            except ValueError as error:
                yield _native._paths_to([id(thing), id(error.args[0])]), _native._walk_figures()["warnings"]
        thread = threading.Thread(target=lambda: print(*next(numbers())))
        thread.start()
        thread.join()
    """
    assert in_process(source) == "['numbers:thing', 'numbers:error.args[*]'] []"


def test_at_exit() -> None:
    source = """
        import atexit
        from vramscope import _native
        kept = [[1]]
        atexit.register(lambda: print(_native._paths_to([id(kept[0])])))
    """
    assert in_process(source) == "['__main__.kept[*]']"


def test_in_a_child_after_a_fork() -> None:
    source = """
        import os, threading
        from vramscope import _native
        kept = [[1]]
        wait = threading.Event()
        threading.Thread(target=wait.wait, daemon=True).start()
        child = os.fork()
        if child == 0:
            print(_native._paths_to([id(kept[0])]), flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        wait.set()
    """
    assert in_process(source) == "['__main__.kept[*]']"


def test_the_tools_own_frames_are_not_shown() -> None:
    source = """
        import types, sys
        from vramscope import _native
        tool = types.ModuleType("vramscope.tool")
        sys.modules["vramscope.tool"] = tool
        exec('''
        kept = [["of the tool"]]
        def ask(native):
            own = [1]
            return native._paths_to([id(own), id(kept[0])])
        '''.replace("        ", "", 2).replace("\\n        ", "\\n"), vars(tool))
        print(tool.ask(_native))
    """
    assert in_process(source) == "['unreachable', 'unreachable']"
