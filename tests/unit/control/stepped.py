"""Time that only passes when everybody waits: an event loop whose sleeps are over at once, in their order.

With it a test of timers is exact and takes no time. Nothing here may wait for a thread or a socket.
"""

import asyncio
import selectors
from collections.abc import Awaitable, Callable, Coroutine
from datetime import datetime, timedelta
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar

from tests.builders import T0

P = ParamSpec("P")
Result = TypeVar("Result")


class SteppedLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.passed = 0.0
        super().__init__(_SteppingSelector(self))

    def time(self) -> float:
        return self.passed


class _SteppingSelector(selectors.SelectSelector):
    """Asked to wait for so long, it lets that time have passed."""

    def __init__(self, loop: SteppedLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise AssertionError("everybody waits and nothing will ever happen")
        if timeout > 0:
            self._loop.passed += timeout
        return super().select(0)


class SteppedClock:
    """The Clock of a test: the loop's time since T0."""

    def now(self) -> datetime:
        return T0 + timedelta(seconds=round(asyncio.get_running_loop().time(), 6))


def simulate(play: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    """Run a test's coroutine in stepped time."""
    with asyncio.Runner(loop_factory=SteppedLoop) as runner:
        return runner.run(play())


def in_stepped_time(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """The decorator of tests that are coroutines."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        simulate(partial(test, *args, **kwargs))

    return run


async def until(holds: Callable[[], Awaitable[bool]], *, every: float = 1.0, at_most: float = 1e5) -> None:
    """Let time pass until something holds."""
    waited = 0.0
    while not await holds():
        assert waited < at_most, f"it does not come true within {at_most:g} s"
        await asyncio.sleep(every)
        waited += every
