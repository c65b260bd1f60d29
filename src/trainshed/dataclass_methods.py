"""Lets dataclasses compile their methods when they are first called, not when their module is imported.

`server` imports the program within `compiled_when_called`. The server has some 500 dataclasses with 2,500
generated methods. Compiling all of them was half of its start, and most are never called. Classes behave as
they do without it. It replaces a private function of `dataclasses`: up to Python 3.12 the one that makes a
method, from 3.13 on the one that makes all methods of a class. Where neither is there it changes nothing.

A class without a docstring would get its signature for one, which takes as long as to import its module. It
gets its name.
"""

import copy
import dataclasses
import inspect
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

Method = Callable[..., Any]


@contextmanager
def compiled_when_called() -> Generator[None]:
    """For dataclasses that are made meanwhile."""
    for place, name, later in (
        (dataclasses, "_create_fn", _method_later),
        (getattr(dataclasses, "_FuncBuilder", None), "add_fns_to_class", _methods_later),
    ):
        if compile_now := getattr(place, name, None):
            silent = SimpleNamespace(**vars(inspect) | {"signature": _no_signature})
            with _replaced(place, name, later(compile_now)), _replaced(dataclasses, "inspect", silent):
                yield
            return
    yield


@contextmanager
def _replaced(place: object, name: str, value: object) -> Generator[None]:
    before = getattr(place, name, None)
    setattr(place, name, value)
    try:
        yield
    finally:
        setattr(place, name, before)


def _no_signature(*_: object, **__: object) -> str:
    return ""


def _method_later(compile_now: Method) -> Method:
    def compile_later(name: str, *args: Any, **context: Any) -> Method:
        return _compiled_when_called(name, lambda: compile_now(name, *args, **context))

    return compile_later


def _methods_later(compile_now: Method) -> Method:
    def compile_later(builder: Any, owner: type) -> None:
        if any(name in vars(owner) for name in builder.overwrite_errors):
            compile_now(builder, owner)  # refuses that
            return
        for name, source in zip(builder.names, builder.src, strict=True):
            if name not in vars(owner) or builder.unconditional_adds.get(name):
                alone = copy.copy(builder)
                alone.names, alone.src = [name], [source]
                method = _compiled_when_called(name, lambda alone=alone: _compiled_alone(compile_now, alone))
                method.__qualname__ = f"{owner.__qualname__}.{name}"
                setattr(owner, name, method)

    return compile_later


def _compiled_alone(compile_now: Method, builder: Any) -> Method:
    class Nobody:
        """Has no methods that would stay."""

    compile_now(builder, Nobody)
    return vars(Nobody)[builder.names[0]]


def _compiled_when_called(name: str, compiled: Callable[[], Method]) -> Method:
    method: Method | None = None

    def first_call(self: object, /, *args: Any, **named: Any) -> Any:
        nonlocal method
        if method is None:
            method = compiled()
            method.__qualname__ = first_call.__qualname__
            for owner in type(self).__mro__:
                if owner.__dict__.get(name) is first_call:
                    setattr(owner, name, method)
        return method(self, *args, **named)

    first_call.__name__ = name
    return first_call
