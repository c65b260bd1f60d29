"""Lets dataclasses compile their methods when they are first called, not when their module is imported.

`server` imports the program within `compiled_when_called`. The server has some 300 dataclasses with 1,600
generated methods. Compiling all of them was half of its start, and most are never called. Classes behave as
they do without it. Python 3.13 and newer generate methods in another way: there it changes nothing.
"""

import dataclasses
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

Method = Callable[..., Any]


@contextmanager
def compiled_when_called() -> Generator[None]:
    """For dataclasses that are made meanwhile."""
    compile_now: Method | None = getattr(dataclasses, "_create_fn", None)
    if compile_now is None:
        yield
        return

    def compile_later(name: str, *args: Any, **context: Any) -> Method:
        return _compiled_when_called(name, lambda: compile_now(name, *args, **context))

    setattr(dataclasses, "_create_fn", compile_later)  # noqa: B010 - not a public name
    try:
        yield
    finally:
        setattr(dataclasses, "_create_fn", compile_now)  # noqa: B010


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
