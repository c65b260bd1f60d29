"""Views of buckets on the process backend keep the promises of core.view: mounted, and where nothing is."""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.contracts.backend_bench import until
from tests.contracts.views import ViewsContract, ViewWorld, a_view
from trainshed.backends.machine import mounts, written
from trainshed.backends.machine.written import shows
from trainshed.backends.process import ProcessBackend, views
from trainshed.backends.process.keeper import CompiledKeeper, Keeper, ShellKeeper, make_keeper
from trainshed.core.errors import NotYet, Unavailable
from trainshed.core.view import View

NOBODY = 65534


class ProcessViews(ViewWorld):
    image = "trainshed/python:3"
    python = sys.executable

    def __init__(self, home: Path, keeper: Keeper) -> None:
        super().__init__(home)
        self.keeper = keeper

    def make(self) -> ProcessBackend:
        backend = ProcessBackend(self.place, storage=self.storage, keeper=self.keeper)
        if isinstance(self.keeper, WithoutOverlay):
            backend.views.tried = without_overlay(backend.views)  # type: ignore[method-assign]
        return backend


class WithoutOverlay(CompiledKeeper):
    """One on a machine that can mount, but no overlay: copies are bound to /gcs."""


def without_overlay(of: views.ProcessViews) -> Callable[[Keeper], Keeper]:
    tried = of.tried

    def without(keeper: Keeper) -> Keeper:
        tried(keeper)
        assert of.means is not None
        of.means, of.copies = replace(of.means, no_overlay="the home is on an overlay"), True
        return keeper

    return without


@asynccontextmanager
async def world(one: ViewWorld) -> AsyncIterator[ViewWorld]:
    await one.buckets.start()
    await one.start()
    try:
        yield one
    finally:
        await one.close()


@pytest.fixture(params=["mounted", "bound", "plain"])
def keeper(request: pytest.FixtureRequest, tmp_path: Path, tools: Path) -> Keeper:
    if request.param == "plain":
        return ShellKeeper()
    made = make_keeper(tools)
    trial = views.ProcessViews(tmp_path, tmp_path, lambda _: None)
    if why := trial.try_to_mount(made):
        pytest.skip(f"nothing can be mounted here: {why}")
    assert isinstance(made, CompiledKeeper)
    return WithoutOverlay(made.path) if request.param == "bound" else made


class TestProcesses(ViewsContract):
    @pytest.fixture
    async def one(self, tmp_path: Path, keeper: Keeper) -> AsyncIterator[ViewWorld]:
        async with world(ProcessViews(tmp_path, keeper)) as one:
            yield one


async def test_a_program_finds_all_buckets_when_it_first_looks_whatever_can_be_mounted(
    tmp_path: Path, keeper: Keeper
):
    async with world(ProcessViews(tmp_path, keeper)) as one:
        await one.bucket("mine", "a/b")
        await one.bucket("large", *(str(number) for number in range(6)))
        lazy = View(project="p", named={}, label="0.0", lazy=True)
        making: list[asyncio.Task[None]] = []
        shown = one.backend.views
        shown.on_want(lambda job: making.append(asyncio.create_task(shown.make(job, lazy))))
        if isinstance(keeper, ShellKeeper):
            assert await one.run("print(root != '/gcs')", view=lazy) == "True\n"
            return
        source = "print(os.path.isdir('/gcs'), len(os.listdir('/gcs/large')), open('/gcs/mine/a/b').read())"
        source += "; open('/gcs/mine/a/b', 'a').write('!')"
        assert await one.run(source, view=lazy) == "True 6 a/b\n"
        assert await one.content("mine", "a/b") == b"a/b"
        assert (await one.written()).keys() == {("mine", "a/b")}
        assert len(making) == 1


async def test_nothing_is_made_for_a_program_that_does_not_look(tmp_path: Path, keeper: Keeper):
    async with world(ProcessViews(tmp_path, keeper)) as one:
        await one.bucket("mine", "a")
        lazy = View(project="p", named={}, label="0.0", lazy=True)
        if isinstance(keeper, ShellKeeper):
            return
        assert (
            await one.run("print(os.stat('/gcs').st_size, os.path.ismount('/gcs'))", view=lazy) == "0 True\n"
        )
        assert one.backend.views.view_of("job") is None
        assert not (one.place / "jobs/job/gcs").exists()


async def test_a_view_is_known_as_soon_as_a_program_can_see_it_however_long_it_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(mounts, "_MOMENT", 0)
    async with world(ProcessViews(tmp_path, ShellKeeper())) as one:
        lazy = View(project="p", named={}, label="0.0", lazy=True)
        shown, source = one.backend.views, one.storage.buckets
        assert source is not None
        with pytest.raises(NotYet):
            await shown.make("job", lazy)
        while not shown.place("job", lazy).exists():
            await asyncio.sleep(0)
        assert shown.view_of("job") == "0.0"
        again = replace(lazy, label="1.0", begin=True)
        with pytest.raises(NotYet):
            await shown.folder("job", again, source, shared=False, copies=False, plain=False)
        await until(lambda: shown.view_of("job") == "1.0")
        assert shown.place("job", again).exists()


async def test_what_has_to_be_copied_is_what_the_job_names(tmp_path: Path):
    async with world(ProcessViews(tmp_path, ShellKeeper())) as one:
        await one.bucket("mine", "in/a", "huge")
        view = replace(a_view(), named={"mine": ("in",)})
        assert await one.run("print(os.listdir(root + '/mine'))", view=view) == "['in']\n"
        [seen] = await one.backend.observe("job")
        assert "There is no /gcs here (there is no C compiler" in seen.note


@pytest.mark.skipif(os.geteuid() != 0, reason="to become somebody else one has to be root")
def test_an_ordinary_user_finds_gcs_where_the_system_allows_it(tmp_path: Path, tools: Path):
    made = make_keeper(tools)
    trial = views.ProcessViews(tmp_path, tmp_path, print)
    if not isinstance(made, CompiledKeeper) or trial.try_to_mount(made):
        pytest.skip("not even root can mount here")
    with tempfile.TemporaryDirectory(prefix="ts-") as place:  # pytest's own folders are root's alone
        home = Path(place)
        keeper = shutil.copy(made.path, home)
        for folder in ("view/lower/b", "view/upper", "view/work", "run"):
            (home / folder).mkdir(parents=True)
        (home / "view/lower/b/x").write_text("seen")
        (home / "run/ready").write_bytes(b" " * 512)
        for one in (home, *home.rglob("*")):
            os.chown(one, NOBODY, NOBODY)
        source = "cat /gcs/b/x; echo new > /gcs/b/y; rm /gcs/b/x; id -u"
        words = [keeper, "--view", home / "view", home / "run", "/", "-", "/bin/sh", "-c", source]
        done = subprocess.run(
            words, user=NOBODY, group=NOBODY, extra_groups=(), capture_output=True, text=True, check=False
        )
        if "namespace" in done.stderr or "overlay" in done.stderr:
            pytest.skip(done.stderr)
        assert done.stdout == f"seen{NOBODY}\n", done.stderr
        assert (home / "view/upper/b/y").read_text() == "new\n"
        assert not shows(home / "view", "b", "x")
        assert (home / "view/lower/b/x").read_text() == "seen"


@pytest.fixture
def triggered(tmp_path: Path, tools: Path) -> Callable[[str], str]:
    """What a program prints whose keeper mounts a trigger at /gcs and cannot ask for a view."""
    made = make_keeper(tools)
    trial = views.ProcessViews(tmp_path, tmp_path, print)
    trial.tried(made)
    if not isinstance(made, CompiledKeeper) or trial.means is None or trial.means.no_trigger:
        pytest.skip("no trigger can be mounted here")
    (tmp_path / "job/run").mkdir(parents=True)
    (tmp_path / "job/run/ready").write_bytes(b" " * 512)
    (tmp_path / "job/gcs").write_text("in the way")

    def run(source: str) -> str:
        lazy = ["--lazy", tmp_path / "job/gcs/0.0", "0"]
        words = [made.path, *lazy, tmp_path / "job/run", "/", "-", sys.executable, "-c", source]
        return subprocess.run(words, capture_output=True, text=True, check=True, timeout=30).stdout

    return run


ZOMBIES = """
import os, time
def zombies(keeper=os.getppid()):
    pids = open(f"/proc/{keeper}/task/{keeper}/children").read().split()
    return sum(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0] == "Z" for pid in pids)
"""


def test_a_program_whose_view_cannot_be_asked_for_gets_an_error_each_time(triggered: Callable[[str], str]):
    source = (
        ZOMBIES + "for _ in range(20):\n  try: os.listdir('/gcs')\n  except OSError as e: print(e.errno)\n"
    )
    *errors, left = triggered(source + "time.sleep(0.5); print(zombies())").split()
    assert errors == ["2"] * 20
    assert left == "0"


def test_what_a_program_leaves_behind_is_reaped_while_it_runs_on(triggered: Callable[[str], str]):
    orphans = "for _ in range(5): os.system('(true &)')\n"
    assert triggered(f"{ZOMBIES}{orphans}time.sleep(0.5); print(zombies())") == "0\n"


def test_a_view_that_is_taken_away_meanwhile_does_not_tell_that_a_file_was_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    view = tmp_path / "0.0"
    for folder in ("lower/b", "upper/b"):
        (view / folder).mkdir(parents=True)
    (view / "lower/b/x").touch()
    look = os.lstat

    def taken_away_before(path: Path) -> os.stat_result:
        if view.exists():
            view.rename(tmp_path / "grave")
        return look(path)

    monkeypatch.setattr(os, "lstat", taken_away_before)
    assert shows(view, "b", "x")


async def test_a_file_that_became_a_fifo_before_it_was_stored_is_refused(tmp_path: Path):
    (tmp_path / "upper/b").mkdir(parents=True)
    path = tmp_path / "upper/b/model"
    path.write_bytes(b"weights")
    (file,) = written.scan(tmp_path).files
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(Unavailable, match="Not a regular file"):
        _ = [chunk async for chunk in written.read(file)]


def test_fifos_beside_a_view_are_not_waited_for(tmp_path: Path):
    (tmp_path / "view/plain/b").mkdir(parents=True)
    (tmp_path / "view/plain/b/model").write_bytes(b"weights")
    os.mkfifo(tmp_path / "view/baseline.json")
    os.mkfifo(tmp_path / written.NOTES)
    assert [file.name for file in written.scan(tmp_path / "view").files] == ["model"]
    written.note(tmp_path, [])
    assert written.notes(tmp_path) == ()
