"""Dataclasses whose methods are compiled late behave as all others do."""

import dataclasses
import inspect
from dataclasses import FrozenInstanceError, dataclass, field, replace

import pytest

from trainshed.dataclass_methods import compiled_when_called

with compiled_when_called():

    @dataclass(frozen=True, slots=True, order=True)
    class Point:
        x: int
        y: int = 0

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Named(Point):
        names: list[str] = field(default_factory=list[str])

        def __post_init__(self) -> None:
            self.names.append("made")

    @dataclass(slots=True)
    class Holder:
        self: int
        args: tuple[Point, ...] = ()


def test_objects_are_made_compared_hashed_ordered_and_shown() -> None:
    assert Point(1) == Point(1, 0) != Point(2)
    assert hash(Point(1, 2)) == hash((1, 2))
    assert Point(1, 2) < Point(1, 3)
    assert repr(Point(1, y=2)) == "Point(x=1, y=2)"
    assert replace(Point(1, 2), y=5) == Point(1, 5)
    assert Point(1).__eq__((1, 0)) is NotImplemented


def test_a_frozen_object_stays_as_it_is() -> None:
    with pytest.raises(FrozenInstanceError):
        Point(1).x = 2  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(FrozenInstanceError):
        del Point(1).x  # pyright: ignore[reportAttributeAccessIssue]


def test_a_subclass_calls_its_own_methods_whichever_is_called_first() -> None:
    assert Named(x=1, names=["a"]).names == ["a", "made"]
    assert Point(1) != Named(x=1)
    assert repr(Named(x=1)) == "Named(x=1, y=0, names=['made'])"


def test_fields_may_have_any_name() -> None:
    assert Holder(self=1, args=(Point(1),)).self == 1
    changed = Holder(1)
    changed.self = 2
    assert changed == Holder(2)


def test_wrong_arguments_are_refused_in_the_usual_words() -> None:
    with pytest.raises(TypeError, match=r"Point\.__init__\(\) missing 1 required positional argument: 'x'"):
        Point()  # pyright: ignore[reportCallIssue]


@pytest.mark.skipif(
    not hasattr(dataclasses, "_create_fn") and not hasattr(dataclasses, "_FuncBuilder"),
    reason="this Python generates methods otherwise",
)
def test_a_method_is_compiled_at_its_first_call_and_then_stands_in_the_class() -> None:
    with compiled_when_called():

        @dataclass(frozen=True, slots=True)
        class Fresh:
            x: int

    late = vars(Fresh)["__init__"]
    assert "x" not in late.__code__.co_varnames
    Fresh(1)
    assert vars(Fresh)["__init__"].__code__.co_varnames == ("self", "x")
    assert vars(Fresh)["__init__"].__qualname__ == late.__qualname__


def test_a_method_that_the_class_has_of_its_own_stays() -> None:
    with compiled_when_called():

        @dataclass
        class Own:
            x: int

            def __repr__(self) -> str:
                return "own"

    assert repr(Own(1)) == "own"


def test_a_method_that_may_not_be_there_is_refused() -> None:
    with compiled_when_called(), pytest.raises(TypeError, match="__lt__"):

        @dataclass(order=True)
        class Wrong:  # pyright: ignore[reportUnusedClass]
            x: int

            def __lt__(self, other: object) -> bool:
                return True


def test_classes_made_afterwards_are_compiled_at_once() -> None:
    @dataclass
    class Usual:
        x: int

    assert vars(Usual)["__init__"].__code__.co_varnames == ("self", "x")


def test_a_class_without_a_docstring_has_its_name_for_one() -> None:
    assert Point.__doc__ == "Point"
    assert dataclasses.inspect is inspect  # pyright: ignore - how Python works it out stays as it was
