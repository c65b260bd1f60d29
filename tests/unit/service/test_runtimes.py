"""What people may do with runtimes, by the words they get."""

from collections.abc import Iterator
from typing import cast

import pytest

from trainshed.core.errors import NotFound
from trainshed.core.ports import Store
from trainshed.core.runtime import Runtime, RuntimePhase
from trainshed.core.runtime_port import RuntimeStore
from trainshed.service import runtimes
from trainshed.service.runtimes import RuntimeService

BUILDING = Runtime(
    id="7", name="team/own", phase=RuntimePhase.BUILDING, message="Building team/own: it begins."
)


class FakeRuntimeStore:
    """Says of a runtime what it was given to say, one word after the other, then that there is none."""

    def __init__(self, *words: Runtime) -> None:
        self._words: Iterator[Runtime] = iter(words)

    def get(self, identity: str) -> Runtime:
        found = next(self._words, None)
        if found is None:
            raise NotFound(f"There is no runtime {identity}.")
        return found


def service(*words: Runtime) -> RuntimeService:
    return RuntimeService(cast("Store", None), cast("RuntimeStore", FakeRuntimeStore(*words)))


async def test_who_follows_a_build_is_told_that_it_was_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtimes, "PACE", 0)
    told = [one async for one in service(BUILDING).follow("7")]
    assert [one.phase for one in told] == [RuntimePhase.BUILDING, RuntimePhase.ABSENT]
    assert told[-1].message == "team/own was removed while it was built."


async def test_a_build_that_never_was_cannot_be_followed() -> None:
    with pytest.raises(NotFound):
        await anext(service().follow("7"))
