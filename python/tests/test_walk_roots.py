"""Where paths begin, on the CPython that runs the tests."""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import gc
import sys
import threading
import types
from collections.abc import Iterator
from typing import Any, Callable

import pytest
from vramscope import _native


class Thing:
    """What is looked for."""

    def walk(self) -> str | None:
        """The path to this very object."""
        return path(id(self))


def path(address: int, distrust: bool = False) -> str | None:
    """The path to the object at an address."""
    return _native._paths_to([address], distrust=distrust)[0]


holder: Any = None


def test_a_variable_of_a_running_function() -> None:
    def function() -> str | None:
        thing = Thing()
        return path(id(thing))

    assert function() == "function:thing"


def test_an_argument() -> None:
    def function(first: Any, *rest: Any, **named: Any) -> list[str | None]:
        return _native._paths_to([id(first), id(rest[0]), id(named["key"])])

    found = function(Thing(), Thing(), key=Thing())
    assert found == ["function:first", "function:rest[*]", "function:named[*]"]


def test_a_variable_that_an_inner_function_uses() -> None:
    def function(argument: Any) -> tuple[Any, list[str | None]]:
        thing = Thing()

        def inner() -> Any:
            return thing, argument

        paths = _native._paths_to([id(thing), id(argument)])
        return inner, paths

    found = function(Thing())[1]
    assert found == ["function:thing", "function:argument"]


def test_a_variable_from_around() -> None:
    def function() -> Callable[[], str | None]:
        thing = Thing()

        def inner() -> str | None:
            return path(id(thing))

        return inner

    # The frame of the function that runs comes before the function that something refers to.
    assert function()() == "inner:thing"


def test_a_variable_of_a_caller() -> None:
    def inner(address: int) -> str | None:
        return path(address)

    def function() -> str | None:
        thing = Thing()
        return inner(id(thing))

    assert function() == "function:thing"


def test_a_variable_below_many_frames_of_c() -> None:
    def function() -> str | None:
        thing = Thing()
        address = id(thing)
        return max([1], key=lambda _: found.append(path(address)) or 1) and found[0]

    found: list[str | None] = []
    assert function() == "function:thing"


def test_a_variable_that_was_deleted_is_gone() -> None:
    def function() -> str | None:
        thing = Thing()
        thing.self = [thing]  # type: ignore[attr-defined]
        address = id(thing)
        path(address)
        del thing
        return path(address)

    assert function() == "unreachable"
    gc.collect()


def test_temporaries_of_a_running_function() -> None:
    def make() -> list[Thing]:
        return [Thing()]

    def function() -> Iterator[str | None]:
        for thing in make():
            address = id(thing)
            del thing
            yield path(address)

    def plain() -> list[str | None]:
        found = []
        for thing in make():
            address = id(thing)
            del thing
            found.append(path(address))
        return found

    assert plain() == ["plain:<temporary>[*]"]
    assert list(function()) == ["function:<temporary>[*]"]


def test_an_argument_of_a_method_that_runs() -> None:
    assert Thing().walk() == "walk:self"


def test_what_a_caller_has_in_hand() -> None:
    def note(thing: Thing) -> Thing:
        addresses.append(id(thing))
        return thing

    def inner() -> str | None:
        return path(addresses[0])

    def function() -> list[Any]:
        # While `inner` runs, the thing is nowhere but on the evaluation stack.
        return [note(Thing()), inner()]

    addresses: list[int] = []
    found = function()[1]
    assert found == "function:<temporary>"


def test_a_comprehension() -> None:
    def function() -> list[str | None]:
        return [path(id(thing)) for thing in [Thing()]]

    (found,) = function()
    inlined = sys.version_info >= (3, 12)
    assert found == ("function:thing" if inlined else "<listcomp>:thing")


def test_a_class_that_is_being_made() -> None:
    class Made:
        thing = Thing()
        found = path(id(thing))

    assert Made.found == "Made:thing"


def test_a_module_that_is_being_run() -> None:
    source = "thing = Thing(); found = path(id(thing))"
    module = types.ModuleType("running")
    vars(module).update(Thing=Thing, path=path)
    exec(source, vars(module))
    assert module.found == "running.thing"


def test_globals_without_a_module() -> None:
    namespace: dict[str, Any] = {"Thing": Thing, "path": path}
    exec("thing = Thing(); found = path(id(thing))", namespace)
    assert namespace["found"] in ("<module>:thing", "test_globals_without_a_module:namespace[*]")


def generate() -> Iterator[int]:
    thing = Thing()
    yield id(thing)
    yield id(thing)


def test_a_generator_that_waits() -> None:
    generator = generate()
    assert path(next(generator)) == "generate:thing"


def test_a_generator_that_runs() -> None:
    def function() -> Iterator[str | None]:
        thing = Thing()
        yield path(id(thing))

    assert next(function()) == "function:thing"


def test_a_generator_that_runs_another() -> None:
    def inner() -> Iterator[list[str | None]]:
        innermost = Thing()
        yield _native._paths_to([id(innermost), addresses[0]])

    def function() -> Iterator[list[str | None]]:
        thing = Thing()
        addresses.append(id(thing))
        yield from inner()

    addresses: list[int] = []
    assert next(function()) == ["inner:innermost", "function:thing"]


def test_a_generator_that_waits_for_another() -> None:
    def function() -> Iterator[int]:
        yield from generate()

    generator = function()
    assert path(next(generator)) == "generate:thing"


def test_a_generator_that_is_done_holds_nothing() -> None:
    def function() -> Iterator[int]:
        thing = Thing()
        kept.append([thing])
        yield id(thing)

    kept: list[Any] = []
    generator = function()
    address = next(generator)
    list(generator)
    assert path(address) == "test_a_generator_that_is_done_holds_nothing:kept[*][*]"


def test_a_generator_of_nobody_is_garbage() -> None:
    def function() -> Iterator[Any]:
        thing = Thing()
        myself = yield id(thing)
        yield myself

    generator = function()
    address = next(generator)
    generator.send(generator)  # type: ignore[attr-defined]
    del generator
    # It is a root only if something keeps it: the path begins at it all the same.
    assert path(address) == "function:thing"
    gc.collect()


def test_coroutines_and_asynchronous_generators() -> None:
    async def numbers() -> Any:
        thing = Thing()
        yield id(thing)
        await asyncio.sleep(0)
        yield path(id(thing))

    async def wait(addresses: list[int]) -> str | None:
        thing = Thing()
        addresses.append(id(thing))
        await asyncio.sleep(0.01)
        return path(id(thing))

    async def main() -> list[Any]:
        addresses: list[int] = []
        task = asyncio.ensure_future(wait(addresses))
        await asyncio.sleep(0)
        found: list[Any] = [path(addresses[0]), await task]
        async for number in numbers():
            found.append(path(number) if isinstance(number, int) else number)
        return found

    assert asyncio.run(main()) == ["wait:thing", "wait:thing", "numbers:thing", "numbers:thing"]


def in_thread(function: Callable[[], Any]) -> Any:
    """What a function returns when it runs in a thread of its own."""
    result: list[Any] = []
    thread = threading.Thread(target=lambda: result.append(function()))
    thread.start()
    thread.join()
    return result[0]


def test_the_stack_of_another_thread() -> None:
    addresses: list[int] = []
    ready, done = threading.Event(), threading.Event()

    def work() -> None:
        thing = Thing()
        addresses.append(id(thing))
        ready.set()
        done.wait()
        del thing

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait()
    found = path(addresses[0])
    done.set()
    thread.join()
    assert found == "work:thing"


def test_from_another_thread() -> None:
    thing = Thing()
    address = id(thing)
    assert in_thread(lambda: path(address)) == "test_from_another_thread:thing"


def test_an_exception_that_is_handled() -> None:
    def fail() -> None:
        thing = Thing()
        addresses.append(id(thing))
        raise ValueError(Thing())

    def function() -> list[str | None]:
        try:
            fail()
        except ValueError:
            addresses.append(id(sys.exc_info()[1].args[0]))  # type: ignore[union-attr]
            return _native._paths_to(addresses)
        return []

    addresses: list[int] = []
    # What has ended keeps its variables only for the exception. Before 3.11 that cannot be told from what waits.
    of_ended = "sys.exc_info().__traceback__.tb_next.tb_frame.thing" if sys.version_info >= (3, 11) else "fail:thing"
    assert function() == [of_ended, "sys.exc_info().args[*]"]


def test_an_exception_that_another_thread_handles() -> None:
    addresses: list[int] = []
    ready, done = threading.Event(), threading.Event()

    def work() -> None:
        try:
            raise ValueError(Thing())
        except ValueError:
            addresses.append(id(sys.exc_info()[1].args[0]))  # type: ignore[union-attr]
            ready.set()
            done.wait()

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait()
    found = path(addresses[0])
    done.set()
    thread.join()
    assert found == "sys.exc_info().args[*]"


def failed(raise_it: Callable[[], None]) -> BaseException:
    try:
        raise_it()
    except ValueError as error:
        return error
    raise AssertionError


def test_an_exception_that_is_kept() -> None:
    def fail() -> None:
        thing = Thing()
        addresses.append(id(thing))
        raise ValueError

    global holder
    addresses: list[int] = []
    holder = failed(fail)
    found = path(addresses[0])
    holder = None
    if sys.version_info >= (3, 11):
        assert found is not None and found.endswith(".holder.__traceback__.tb_next.tb_frame.thing")
    else:
        assert found == "fail:thing"


def test_causes_and_contexts() -> None:
    def fail_by_cause() -> None:
        raise ValueError from KeyError(things[0])

    def fail_in_context() -> None:
        try:
            raise KeyError(things[1])
        except KeyError:
            raise ValueError  # noqa: B904 (this one has a context and no cause)

    global holder
    things = [Thing(), Thing()]
    holder = [failed(fail_by_cause), failed(fail_in_context)]
    for error in holder:
        error.__traceback__ = None
        (error.__cause__ or error.__context__).__traceback__ = None
    addresses = [id(thing) for thing in things]
    things.clear()
    found = _native._paths_to(addresses)
    holder = None
    assert found == [f"{__name__}.holder[*].__cause__.args[*]", f"{__name__}.holder[*].__context__.args[*]"]


def test_the_last_exception() -> None:
    sys.last_value = ValueError(Thing())
    found = path(id(sys.last_value.args[0]))
    del sys.last_value
    assert found == "sys.last_value.args[*]"


variable: contextvars.ContextVar[Any] = contextvars.ContextVar("variable")


def test_a_context_variable() -> None:
    token = variable.set([Thing()])
    found = path(id(variable.get()[0]))
    variable.reset(token)
    assert found == "contextvars.variable[*]"


def test_many_context_variables() -> None:
    variables: list[contextvars.ContextVar[Any]] = [contextvars.ContextVar(f"name{i}") for i in range(200)]
    tokens = [v.set(Thing()) for v in variables]
    found = _native._paths_to([id(v.get()) for v in variables])
    for v, token in zip(variables, tokens):
        v.reset(token)
    assert found == [f"contextvars.name{i}" for i in range(200)]


def test_a_context_that_is_kept() -> None:
    def function() -> tuple[contextvars.Context, int]:
        variable.set(Thing())
        return contextvars.copy_context(), id(variable.get())

    context, address = contextvars.copy_context().run(function)
    assert path(address) == "contextvars.variable"
    del context


local = threading.local()


class Local(threading.local):
    pass


derived = Local()


def test_a_thread_local() -> None:
    local.thing = Thing()
    derived.things = [Thing()]
    found = _native._paths_to([id(local.thing), id(derived.things[0])])
    del local.thing, derived.things
    assert found == [f"{__name__}.local.thing", f"{__name__}.derived.things[*]"]


def test_a_thread_local_of_another_thread() -> None:
    addresses: list[int] = []
    ready, done = threading.Event(), threading.Event()

    def work() -> None:
        local.thing = Thing()
        addresses.append(id(local.thing))
        ready.set()
        done.wait()

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait()
    found = path(addresses[0])
    done.set()
    thread.join()
    assert found == f"{__name__}.local.thing"


def test_what_is_registered_for_the_exit() -> None:
    def at_exit(thing: Any, keyword: Any = None) -> None: ...

    def register() -> list[int]:
        things = Thing(), Thing(), Thing()
        atexit.register(at_exit, things[0], keyword=things[1])
        atexit.register(things[2].walk)
        return [id(thing) for thing in things]

    addresses = register()
    found = [path(address) for address in addresses]
    atexit.unregister(at_exit)
    atexit.unregister(next(o for o in gc.get_objects() if id(o) == addresses[2]).walk)
    assert found == ["atexit[*].args[*]", "atexit[*].keywords[*]", "atexit[*].__self__"]


def test_garbage_and_callbacks_of_the_collector() -> None:
    gc.garbage.append(Thing())
    thing = Thing()
    gc.callbacks.append(lambda phase, info, thing=thing: None)
    del thing
    found = _native._paths_to([id(gc.garbage[0]), id(gc.callbacks[-1].__defaults__[0])])
    gc.garbage.clear()
    gc.callbacks.pop()
    assert found == ["gc.garbage[*]", "<lambda>.__defaults__[*]"]


def test_garbage_is_unreachable() -> None:
    def make() -> int:
        thing = Thing()
        thing.me = thing  # type: ignore[attr-defined]
        return id(thing)

    gc.disable()
    try:
        assert path(make()) == "unreachable"
    finally:
        gc.enable()
        gc.collect()


def test_weak_references_do_not_hold() -> None:
    import weakref

    def make() -> int:
        thing = Thing()
        thing.me = thing  # type: ignore[attr-defined]
        references.append(weakref.ref(thing))
        by_key[thing] = 1
        by_value["key"] = thing
        members.add(thing)
        return id(thing)

    references: list[Any] = []
    by_key: Any = weakref.WeakKeyDictionary()
    by_value: Any = weakref.WeakValueDictionary()
    members: Any = weakref.WeakSet()
    gc.disable()
    try:
        assert path(make()) == "unreachable"
    finally:
        gc.enable()
        gc.collect()


@pytest.mark.parametrize("distrust", [False, True])
def test_frozen_objects(distrust: bool) -> None:
    global holder
    holder = [Thing(), {"key": [Thing()]}]
    gc.collect()
    gc.freeze()
    try:
        found = [path(id(holder[0]), distrust), path(id(holder[1]["key"][0]), distrust)]
    finally:
        gc.unfreeze()
        holder = None
    assert found == [f"{__name__}.holder[*]", f"{__name__}.holder[*][*][*]"]


def test_containers_that_the_collector_does_not_track() -> None:
    global holder
    inner = tuple(range(3))
    gc.collect()
    assert not gc.is_tracked(inner)
    holder = [inner]
    del inner
    found = path(id(holder[0]))
    holder = None
    assert found == f"{__name__}.holder[*]"


@pytest.mark.parametrize("distrust", [False, True])
def test_the_users_code_comes_before_libraries(distrust: bool) -> None:
    global holder
    holder = Thing()
    threading.added_by_a_test = holder  # type: ignore[attr-defined]
    found = path(id(holder), distrust)
    holder = None
    alone = path(id(threading.added_by_a_test), distrust)  # type: ignore[attr-defined]
    del threading.added_by_a_test  # type: ignore[attr-defined]
    assert (found, alone) == (f"{__name__}.holder", "threading.added_by_a_test")


def test_without_a_known_layout_variables_are_asked_for_where_that_is_harmless() -> None:
    def function() -> str | None:
        thing = Thing()
        return path(id(thing), True)

    assert function() == ("function:thing" if sys.version_info >= (3, 13) else "held outside")
    assert _native._walk_figures(distrust=True)["warnings"]


def test_the_layout_is_known() -> None:
    assert _native._walk_figures()["warnings"] == []
