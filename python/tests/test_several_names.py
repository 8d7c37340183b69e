"""What has two names is freed only when both are deleted, whatever kind of names they are."""

from __future__ import annotations

from typing import Any, Callable

import pytest

torch = pytest.importorskip("torch")
import vramscope

#: Bytes of the tensor.
SIZE = 4000


def rows() -> dict[str, Any]:
    """The rows by their paths."""
    return {row["path"]: row for row in vramscope.holders(device="cpu").to_dict()["holders"]}


def check(first: str, second: str, delete: Callable[[], None]) -> None:
    """The first name alone promises nothing and names the second; once it is deleted the memory is still there, and the second's alone."""
    before = rows()
    row = before[first]
    assert (row["bytes"], row["exclusive_bytes"]) == (SIZE, 0)
    assert [(other["path"], other["bytes"]) for other in row["also_held_by"]] == [(second, SIZE)]
    delete()
    after = rows()
    assert first not in after
    assert (after[second]["bytes"], after[second]["exclusive_bytes"], after[second]["also_held_by"]) == (SIZE, SIZE, [])


def test_globals() -> None:
    names = globals()
    names["one"] = names["two"] = torch.zeros(SIZE // 4)
    try:
        check(f"{__name__}.one", f"{__name__}.two", lambda: names.__delitem__("one"))
    finally:
        del names["two"]


class Plain:
    """Its attributes are in a dict, or in an array that stands for it."""


class Slotted:
    """Its attributes are in slots."""

    __slots__ = ("one", "two")


@pytest.mark.parametrize("make", [Plain, Slotted])
def test_attributes(make: Callable[[], Any]) -> None:
    thing = make()
    thing.one = thing.two = torch.zeros(SIZE // 4)
    check("test_attributes:thing.one", "test_attributes:thing.two", lambda: delattr(thing, "one"))


def test_a_dict_of_attributes() -> None:
    thing = Plain()
    thing.one = thing.two = torch.zeros(SIZE // 4)
    assert vars(thing)
    check("test_a_dict_of_attributes:thing.one", "test_a_dict_of_attributes:thing.two", lambda: delattr(thing, "one"))


def test_attributes_of_a_class() -> None:
    Plain.one = Plain.two = torch.zeros(SIZE // 4)  # type: ignore[attr-defined]
    try:
        check("Plain.one", "Plain.two", lambda: delattr(Plain, "one"))
    finally:
        del Plain.two  # type: ignore[attr-defined]


def test_variables() -> None:
    one = two = torch.zeros(SIZE // 4)
    before = rows()["test_variables:one"]
    assert (before["bytes"], before["exclusive_bytes"]) == (SIZE, 0)
    assert [other["path"] for other in before["also_held_by"]] == ["test_variables:two"]
    del one
    after = rows()["test_variables:two"]
    assert (after["bytes"], after["exclusive_bytes"], after["also_held_by"]) == (SIZE, SIZE, [])
    del two


def test_modules() -> None:
    names = globals()
    names["one"] = names["two"] = torch.nn.Linear(SIZE // 4, 1, bias=False)
    try:
        row = rows()[f"{__name__}.one.weight"]
        assert (row["bytes"], row["exclusive_bytes"]) == (SIZE, 0)
        assert [other["path"] for other in row["also_held_by"]] == [f"{__name__}.two"]
        del names["one"]
        row = rows()[f"{__name__}.two.weight"]
        assert (row["bytes"], row["exclusive_bytes"], row["also_held_by"]) == (SIZE, SIZE, [])
    finally:
        del names["two"]


def test_what_a_list_has_twice_is_given_up_with_it() -> None:
    tensors = [torch.zeros(SIZE // 4)] * 2
    row = rows()["test_what_a_list_has_twice_is_given_up_with_it:tensors[*]"]
    assert (row["bytes"], row["exclusive_bytes"], row["also_held_by"]) == (SIZE, SIZE, [])
    tensors.clear()
