"""How references are spelled, on the CPython that runs the tests."""

from __future__ import annotations

import collections
import functools
import types
from typing import Any, Callable

import pytest
from vramscope import _native


class Thing:
    """What is looked for."""


def path(address: int) -> str | None:
    """The path to the object at an address."""
    return _native._paths_to([address])[0]


holder: Any = None


def held_by(make: Callable[[Thing], Any]) -> str | None:
    """The path to a thing that `make` puts into something, which the global `holder` then refers to."""
    global holder

    def fill() -> int:
        thing = Thing()
        globals()["holder"] = make(thing)
        return id(thing)

    try:
        return path(fill())
    finally:
        holder = None


class Plain:
    def __init__(self, thing: Thing) -> None:
        self.first = 1
        self.thing = thing
        self.last = 2


class Slotted:
    __slots__ = ("first", "thing")

    def __init__(self, thing: Thing) -> None:
        self.thing = thing


class Inherited(Slotted):
    __slots__ = ("other",)


class InheritedWithDict(Slotted):
    pass


class ListWithAttributes(list):  # type: ignore[type-arg]
    pass


class DictWithAttributes(dict):  # type: ignore[type-arg]
    pass


class IntWithAttributes(int):
    pass


class TupleWithAttributes(tuple):  # type: ignore[type-arg]
    pass


class ExceptionWithAttributes(Exception):
    pass


Pair = collections.namedtuple("Pair", "left right")


def with_attribute(instance: Any, thing: Thing, name: str = "thing") -> Any:
    setattr(instance, name, thing)
    return instance


def with_dict(thing: Thing) -> Plain:
    instance = Plain(thing)
    assert "thing" in instance.__dict__
    return instance


def with_many(thing: Thing) -> Plain:
    instance = Plain(Thing())
    for i in range(100):
        setattr(instance, f"attribute{i}", i)
    instance.wanted = thing  # type: ignore[attr-defined]
    return instance


def with_deleted(thing: Thing) -> Plain:
    instance = Plain(thing)
    del instance.first
    return instance


def with_dict_of_its_own(thing: Thing) -> Plain:
    instance = Plain(Thing())
    instance.__dict__ = {"elsewhere": thing}
    return instance


def closure(thing: Thing) -> Callable[[], Any]:
    before = 1

    def remember() -> Any:
        return before, thing

    return remember


def default(thing: Thing) -> Callable[..., Any]:
    def remember(a: Any, b: Any = thing) -> Any:
        return a, b

    return remember


def keyword_default(thing: Thing) -> Callable[..., Any]:
    def remember(*, b: Any = thing) -> Any:
        return b

    return remember


def on_function(thing: Thing) -> Callable[..., Any]:
    def remember() -> None: ...

    remember.thing = thing  # type: ignore[attr-defined]
    return remember


class WithMethod:
    def __init__(self, thing: Thing) -> None:
        self.thing = thing

    def method(self) -> None: ...


def class_attribute(thing: Thing) -> type:
    class Registry:
        pass

    Registry.things = [thing]  # type: ignore[attr-defined]
    return Registry


@functools.lru_cache(maxsize=4)
def bounded(thing: Any) -> Any:
    return [thing]


@functools.cache
def unbounded(number: int) -> Any:
    return Thing()


def deep(thing: Thing) -> Any:
    return [{"a": ({"b": Plain(thing)},)}]


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda t: t, "holder"),
        (lambda t: [t], "holder[*]"),
        (lambda t: [1, [t]], "holder[*][*]"),
        (lambda t: (t,), "holder[*]"),
        (lambda t: {t}, "holder[*]"),
        (lambda t: frozenset([t]), "holder[*]"),
        (lambda t: {"key": t}, "holder[*]"),
        (lambda t: {t: "value"}, "holder[*]"),
        (lambda t: collections.deque([1, t]), "holder[*]"),
        (lambda t: collections.deque(range(1000)) + collections.deque([t]), "holder[*]"),
        (lambda t: collections.OrderedDict(key=t), "holder[*]"),
        (lambda t: collections.defaultdict(list, key=[t]), "holder[*][*]"),
        (lambda t: collections.Counter({t: 1}), "holder[*]"),
        (lambda t: collections.ChainMap({"key": t}), "holder.maps[*][*]"),
        (lambda t: Pair(t, 1), "holder[*]"),
        (lambda t: {i: t if i == 500 else i for i in range(1000)}, "holder[*]"),
        (Plain, "holder.thing"),
        (with_dict, "holder.thing"),
        (with_many, "holder.wanted"),
        (with_deleted, "holder.thing"),
        (with_dict_of_its_own, "holder.elsewhere"),
        (lambda t: vars(Plain(t)), "holder[*]"),
        (Slotted, "holder.thing"),
        (Inherited, "holder.thing"),
        (InheritedWithDict, "holder.thing"),
        (lambda t: with_attribute(InheritedWithDict(Thing()), t, "more"), "holder.more"),
        (lambda t: ListWithAttributes([t]), "holder[*]"),
        (lambda t: with_attribute(ListWithAttributes(), t), "holder.thing"),
        (lambda t: DictWithAttributes(key=t), "holder[*]"),
        (lambda t: with_attribute(DictWithAttributes(), t), "holder.thing"),
        (lambda t: with_attribute(IntWithAttributes(10**30), t), "holder.thing"),
        (lambda t: with_attribute(IntWithAttributes(-(10**60)), t), "holder.thing"),
        (lambda t: with_attribute(TupleWithAttributes((1, 2, 3)), t), "holder.thing"),
        (lambda t: TupleWithAttributes((1, t, 3)), "holder[*]"),
        (lambda t: with_attribute(ExceptionWithAttributes(), t), "holder.thing"),
        (ExceptionWithAttributes, "holder.args[*]"),
        (lambda t: with_attribute(types.SimpleNamespace(), t), "holder.thing"),
        (closure, "remember.<closure>.thing"),
        (default, "remember.__defaults__[*]"),
        (keyword_default, "remember.__kwdefaults__[*]"),
        (on_function, "holder.thing"),
        (lambda t: functools.wraps(closure(t))(lambda: None), "remember.<closure>.thing"),
        (lambda t: WithMethod(t).method, "holder.__self__.thing"),
        (lambda t: [t].append, "holder.__self__[*]"),
        (lambda t: functools.partial(print, t), "holder.args[*]"),
        (lambda t: functools.partial(print, end=t), "holder.keywords[*]"),
        (lambda t: functools.partial(WithMethod(t).method), "holder.func.__self__.thing"),
        (lambda t: property(closure(t)), "remember.<closure>.thing"),
        (lambda t: staticmethod(closure(t)), "remember.<closure>.thing"),
        (lambda t: iter([t]), "holder[*]"),
        (lambda t: {"key": t}.values(), "holder[*]"),
        (lambda t: types.MappingProxyType({"key": t}), "holder[*]"),
        (class_attribute, "Registry.things[*]"),
        (deep, "holder[*][*][*][*].thing"),
    ],
)
def test_spelling(make: Callable[[Thing], Any], expected: str) -> None:
    module = f"{__name__}." if expected.startswith("holder") else ""
    assert held_by(make) == module + expected


def test_of_many_references_the_shortest_is_shown() -> None:
    assert held_by(lambda t: [[[t]], [t]]) == f"{__name__}.holder[*][*]"


def test_a_value_of_a_cache() -> None:
    assert path(id(bounded(1))) == f"{__name__}.bounded[*]"
    assert path(id(unbounded(1))) == f"{__name__}.unbounded[*]"
    bounded.cache_clear()
    unbounded.cache_clear()


def test_globals_of_a_large_module() -> None:
    module = types.ModuleType("large")
    for i in range(1000):
        setattr(module, f"name{i}", i)
    module.wanted = Thing()  # type: ignore[attr-defined]
    assert path(id(module.wanted)) == "large.wanted"


def test_objects_are_described() -> None:
    def made() -> int:
        thing = Thing()
        globals()["holder"] = [Plain(thing), {"a": 1}, {"b": closure(thing), "c": 1}]
        return id(thing)

    chain = _native._chain_to(made())
    globals()["holder"] = None
    assert chain == [
        ("module", f"module {__name__}"),
        ("dict", f"namespace of {__name__}"),
        ("list", "list of 3"),
        ("Plain", ""),
        *([] if len(chain) == 5 else [("dict", "dict of 3")]),
        ("Thing", ""),
    ]


def test_functions_are_described() -> None:
    def made() -> int:
        thing = Thing()
        globals()["holder"] = [{"b": closure(thing), "c": 1}, collections.deque([1])]
        return id(thing)

    chain = _native._chain_to(made())
    globals()["holder"] = None
    assert chain[2:] == [
        ("list", "list of 2"),
        ("dict", "dict of 2"),
        ("function", "function remember"),
        ("cell", ""),
        ("Thing", ""),
    ]


def test_base_of_an_array() -> None:
    numpy = pytest.importorskip("numpy")

    class Array(numpy.ndarray):  # type: ignore[misc, name-defined]
        pass

    def view(thing: Thing) -> Any:
        base = numpy.zeros(10).view(Array)
        base.thing = thing
        return numpy.asarray(base[2:3])

    assert held_by(view) == f"{__name__}.holder.base.base.thing"


class Anything:
    """Stands for a tensor: what a module's attributes refer to."""


def test_registries_of_modules_are_not_shown() -> None:
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.neck = torch.nn.Linear(2, 2)
            self.layers = torch.nn.ModuleList([torch.nn.Linear(2, 2)])
            self.named = torch.nn.ModuleDict({"one": torch.nn.Linear(2, 2)})
            self.register_buffer("mean", torch.zeros(2))
            self.own = torch.nn.Parameter(torch.zeros(2))
            self.features = [torch.zeros(2)]

    global holder
    holder = net = Net()
    addresses = [
        id(net.neck.weight),
        id(net.layers[0].bias),
        id(net.named["one"].weight),
        id(net.mean),
        id(net.own),
        id(net.features[0]),
    ]
    del net
    found = _native._paths_to(addresses, module=torch.nn.Module)
    holder = None
    assert found == [
        f"{__name__}.holder.neck.weight",
        f"{__name__}.holder.layers[*].bias",
        f"{__name__}.holder.named[*].weight",
        f"{__name__}.holder.mean",
        f"{__name__}.holder.own",
        f"{__name__}.holder.features[*]",
    ]
