"""The process backend and folders of code: what a replica finds where it starts."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.contracts.backend_bench import Bench, launched
from tests.contracts.code_store import Steps, keep
from tests.contracts.test_process_backend import ShellPrograms
from trainshed.backends.machine import code_folders
from trainshed.backends.machine.run_storage import RunStorage
from trainshed.backends.process import ProcessBackend
from trainshed.backends.process.keeper import make_keeper
from trainshed.core.errors import NotYet, Unavailable
from trainshed.core.jobs.replica import Exit
from trainshed.core.ports import Backend
from trainshed.core.supplies.code import Mode
from trainshed.testing.code import MemoryCodeStore
from trainshed.testing.run_files import FolderRunFiles

FILES = {
    "say": (Mode.EXECUTABLE, b"#!/bin/sh\ncat note\nprintf '%s;' $1 >>note\n"),
    "note": (Mode.PLAIN, b"as sent;"),
}


class Home:
    """A backend over a folder, with a store of code beside."""

    files: FolderRunFiles

    def __init__(self, home: Path, tools: Path) -> None:
        self.programs = ShellPrograms()
        self.image, self.refused = "trainshed/python:3", "example/train:1"
        self.home = home
        self.code = MemoryCodeStore(Steps())
        self.keeper = make_keeper(tools)

    async def backend(self) -> Backend:
        backend = ProcessBackend(
            self.home, storage=RunStorage(files=self.files, code=self.code), keeper=self.keeper
        )
        await backend.start()
        return backend


@pytest.fixture
async def bench(tmp_path: Path, tools: Path) -> AsyncIterator[Bench]:
    home = Home(tmp_path / "home", tools)
    bench = Bench(home, tmp_path)  # type: ignore[arg-type]
    bench.backend = await home.backend()
    yield bench
    await bench.backend.remove(bench.job)
    await bench.backend.close()


async def run(bench: Bench, code: str, number: int = 0, index: int = 0) -> None:
    launch = replace(bench.launch(("./say", str(number)), number, index), code=code)
    await launched(bench.backend, launch)
    assert (await bench.ended(launch.key)).exit == Exit(code=0), bench.err(index)


async def test_a_run_starts_in_its_folder_and_the_next_one_finds_what_it_wrote(bench: Bench):
    code = await keep(bench.world.code, FILES)  # type: ignore[attr-defined]
    await run(bench, code, 0)
    assert bench.out() == "as sent;"
    await bench.renew()
    await run(bench, code, 1)
    assert bench.out() == "as sent;as sent;0;"


@pytest.mark.parametrize("place", ["sub/dir", "missing/too"])
async def test_a_run_may_start_anywhere_in_its_folder(bench: Bench, place: str):
    files = {"sub/dir/note": (Mode.PLAIN, b"here"), "top": (Mode.PLAIN, b"up")}
    code = await keep(bench.world.code, files)  # type: ignore[attr-defined]
    launch = replace(bench.launch(("sh", "-c", "pwd; cat ../../top")), code=code, working_directory=place)
    await launched(bench.backend, launch)
    assert (await bench.ended(launch.key)).exit == Exit(code=0), bench.err()
    assert bench.out().endswith(f"/work/{place}\nup")


async def test_a_run_that_should_start_in_a_file_says_so(bench: Bench):
    code = await keep(bench.world.code, FILES)  # type: ignore[attr-defined]
    for place in ("note", "note/deeper"):
        launch = replace(bench.launch(("true",), index=len(place)), code=code, working_directory=place)
        await launched(bench.backend, launch)
        assert (await bench.ended(launch.key)).exit == Exit(code=126)
        assert f"work/{place}" in bench.err(len(place))


async def test_replicas_do_not_see_each_other(bench: Bench):
    code = await keep(bench.world.code, FILES)  # type: ignore[attr-defined]
    await run(bench, code, index=0)
    await run(bench, code, index=1)
    assert (bench.out(0), bench.out(1)) == ("as sent;", "as sent;")


async def test_a_folder_that_is_not_there_stops_the_launch_and_nothing_is_left_of_it(bench: Bench):
    launch = replace(bench.launch(("./say",)), code="0" * 64)
    with pytest.raises(Unavailable, match="not on this server"):
        await bench.backend.launch(launch)
    assert await bench.backend.observe(bench.job) == ()
    code = await keep(bench.world.code, FILES)  # type: ignore[attr-defined]
    await run(bench, code)
    assert bench.out() == "as sent;"


async def test_without_a_store_of_code_a_launch_that_needs_one_says_so(bench: Bench, tmp_path: Path):
    backend = ProcessBackend(tmp_path / "other", storage=RunStorage(files=bench.files))
    await backend.start()
    with pytest.raises(Unavailable, match="keeps none"):
        await backend.launch(replace(bench.launch(("./say",)), code="0" * 64))
    await backend.close()
    shutil.rmtree(tmp_path / "other")


class SlowCodeStore(MemoryCodeStore):
    """One whose folders take until they are let go."""

    def __init__(self) -> None:
        super().__init__(Steps())
        self.may_go, self.given_up = asyncio.Event(), 0

    async def lay_out(self, code: str, folder: str) -> None:
        try:
            await self.may_go.wait()
        except asyncio.CancelledError:
            self.given_up += 1
            raise
        await super().lay_out(code, folder)

    def lay_out_small(self, code: str, folder: str) -> bool:
        return False


@pytest.fixture
def slow(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> SlowCodeStore:
    monkeypatch.setattr(code_folders, "_MOMENT", 0.001)
    store = SlowCodeStore()
    monkeypatch.setattr(bench.backend._folders, "_code", store)  # type: ignore[attr-defined]
    return store


async def test_no_launch_waits_for_a_large_folder_and_a_hint_says_when_it_is_there(
    bench: Bench, slow: SlowCodeStore
):
    hints: asyncio.Queue[str] = asyncio.Queue()
    bench.backend.on_change(hints.put_nowait)
    code = await keep(slow, FILES)
    launch = replace(bench.launch(("./say", "0")), code=code)
    for _ in range(3):
        with pytest.raises(NotYet, match=r"being laid out for workerpool0-0"):
            await bench.backend.launch(launch)
    assert hints.empty()
    slow.may_go.set()
    assert await hints.get() == bench.job
    await bench.backend.launch(launch)
    assert (await bench.ended(launch.key)).exit == Exit(code=0)
    assert bench.out() == "as sent;"


async def test_a_removed_job_gives_up_the_folders_on_their_way(bench: Bench, slow: SlowCodeStore):
    code = await keep(slow, FILES)
    for index in (0, 1):
        with pytest.raises(NotYet):
            await bench.backend.launch(replace(bench.launch(("./say",), 0, index), code=code))
    await bench.backend.remove(bench.job)
    assert slow.given_up == 2
    assert await bench.backend.jobs() == frozenset()


async def test_a_backend_that_closes_gives_them_up_as_well(bench: Bench, slow: SlowCodeStore):
    code = await keep(slow, FILES)
    with pytest.raises(NotYet):
        await bench.backend.launch(replace(bench.launch(("./say",)), code=code))
    await bench.renew()
    assert slow.given_up == 1
