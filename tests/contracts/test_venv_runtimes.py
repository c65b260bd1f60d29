"""Virtual environments keep the promises of their port: built once, whole or not at all, then kept.

The packages are wheels made here; nothing is downloaded. They are laid on the tests' own interpreter, which
has pip, so that a build takes a second or two.
"""

import asyncio
import os
import subprocess
import sys
import zipfile
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.builders import a_job, a_pool
from trainshed.core.errors import NotFound, Unavailable
from trainshed.core.event import Reason
from trainshed.core.jobs.job import Job, JobSpec
from trainshed.core.jobs.readiness import READY, Readiness, ReadinessState
from trainshed.core.jobs.replica import Exit
from trainshed.core.jobs.verdict import Cause, Evidence, Verdict, judge
from trainshed.core.supplies.runtime import RuntimeNeed, RuntimePhase
from trainshed.data.verdict_rules import load_rules
from trainshed.runtimes import folders, interpreters
from trainshed.runtimes.build import Build
from trainshed.runtimes.recipe import EnvironmentRecipe, Interpreter
from trainshed.runtimes.rows import RuntimeRow
from trainshed.runtimes.venvs import RuntimeLimits, VenvRuntimes

PLAIN = "trainshed/python:3"
PATIENCE = 120.0

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def a_wheel(folder: Path, name: str, version: str = "1.0", *, needs: str = "") -> None:
    """A package of one module that knows its version, and a command of its name that prints it."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": f"version = {version!r}\ndef main():\n    print({name!r}, version)\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        + (f"Requires-Dist: {needs}\n" if needs else ""),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{name} = {name}:main\n",
    }
    record = "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD"))
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        for path, text in {**files, f"{info}/RECORD": record}.items():
            wheel.writestr(path, text)


def judged(code: int, lines: tuple[str, ...]) -> Verdict:
    evidence = Evidence(reason=Reason.PREPARATION_FAILED, exit=Exit(code=code), stderr=lines)
    return judge(evidence, load_rules())


class Place:
    """The folder on disk and whichever server works on it just now."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.wheels = folder / "runtimes", folder / "wheels"
        self.wheels.mkdir()
        for name in ("smalla", "smallb"):
            a_wheel(self.wheels, name)
        self.jobs: list[Job] = []
        self.hints: list[str] = []
        self.open: list[VenvRuntimes] = []
        self.environ: dict[str, str] = {}  # of pip, besides its folder of wheels

    async def runtimes(self, *rows: RuntimeRow, limits: RuntimeLimits | None = None) -> VenvRuntimes:
        environ = {**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.wheels)}
        environ |= {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_CACHE_DIR": "1"}
        environ |= self.environ

        async def wanted() -> list[Job]:
            return self.jobs

        made = VenvRuntimes(self.folder, rows, judge=judged, wanted=wanted, limits=limits, environ=environ)
        made.on_change(self.hints.append)
        self.open.append(made)
        await made.start()
        return made

    def folders(self) -> set[str]:
        return {path.name for path in self.folder.iterdir() if path.is_dir()} - {"lib", "trash", "packages"}


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    place = Place(tmp_path)
    yield place
    for one in place.open:
        await one.close()


async def settled(
    runtimes: VenvRuntimes, lines: tuple[str, ...], job: str = "job", image: str = PLAIN
) -> Readiness:
    async with asyncio.timeout(PATIENCE):
        while (
            now := runtimes.readiness(RuntimeNeed(image, lines), job)
        ).standing is ReadinessState.PREPARING:
            assert now.message
            await asyncio.sleep(0.02)
    return now


def said(runtimes: VenvRuntimes, lines: tuple[str, ...], code: str, image: str = PLAIN) -> str:
    python = runtimes.python(RuntimeNeed(image, lines))
    return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


async def test_the_plain_interpreter_is_ready_at_once_and_is_the_server_s_own(place: Place):
    runtimes = await place.runtimes()
    assert runtimes.readiness(RuntimeNeed(PLAIN), "job") == READY
    assert runtimes.python(RuntimeNeed(PLAIN)) == sys.executable
    assert place.folders() == set()


async def test_what_is_built_has_its_packages_commands_and_our_report_and_a_second_ask_costs_a_look_up(
    place: Place,
):
    runtimes = await place.runtimes()
    assert runtimes.readiness(RuntimeNeed(PLAIN, ("smalla",)), "").standing is ReadinessState.PREPARING
    assert place.folders() == set()  # nobody asked for it
    assert (await settled(runtimes, ("smalla",))).is_ready
    assert said(runtimes, ("smalla",), "import smalla; print(smalla.version)") == "1.0"
    assert said(runtimes, ("smalla",), "from trainshed import report; print(report.VARIABLE)")
    bin = Path(runtimes.python(RuntimeNeed(PLAIN, ("smalla",)))).parent
    assert subprocess.check_output([bin / "smalla"], text=True) == "smalla 1.0\n"
    assert subprocess.check_output([bin / "pip", "--version"], text=True).startswith("pip ")
    assert runtimes.readiness(RuntimeNeed(PLAIN, ("smalla",)), "another").is_ready
    assert len(place.folders()) == 1
    assert "job" in place.hints


async def test_many_that_ask_at_once_have_it_built_once_and_are_all_hinted(place: Place):
    runtimes = await place.runtimes()
    jobs = [f"job{n}" for n in range(20)]
    await asyncio.gather(*(settled(runtimes, ("smalla",), job) for job in jobs))
    assert len(place.folders()) == 1
    [log] = place.folder.glob("*.log")
    assert log.read_text().count("make_environment.py") == 1
    assert set(jobs) <= set(place.hints)


async def test_the_same_wishes_are_one_environment_and_other_ones_another(place: Place):
    runtimes = await place.runtimes()
    await settled(runtimes, ("smalla", "smallb"))
    await settled(runtimes, ("smallb # second", "smalla"))
    assert len(place.folders()) == 1
    await settled(runtimes, ("smallb",))
    assert len(place.folders()) == 2


async def test_a_failed_build_is_a_verdict_with_pip_s_words_leaves_nothing_and_the_next_job_tries_again(
    place: Place,
):
    runtimes = await place.runtimes()
    failed = await settled(runtimes, ("missing==9",))
    assert failed.standing is ReadinessState.FAILED
    assert failed.verdict is not None
    assert (failed.verdict.cause, failed.verdict.retry_may_help) == (Cause.NO_SUCH_PACKAGE, False)
    assert any("missing==9" in line for line in failed.verdict.lines)
    assert place.folders() == set()
    assert [one.phase for one in runtimes.all() if one.requirements] == [RuntimePhase.FAILED]
    a_wheel(place.wheels, "missing", "9")
    assert (await settled(runtimes, ("missing==9",), "another")).is_ready
    assert [one.phase for one in runtimes.all() if one.requirements] == [RuntimePhase.READY]


async def test_packages_that_cannot_go_together_are_told_as_that(place: Place):
    a_wheel(place.wheels, "picky", needs="smalla==2.0")
    a_wheel(place.wheels, "smalla", "2.0")
    runtimes = await place.runtimes()
    failed = await settled(runtimes, ("picky", "smalla==1.0"))
    assert failed.verdict is not None
    assert failed.verdict.cause is Cause.CONFLICTING_REQUIREMENTS


async def test_a_full_disk_is_told_as_that_and_may_be_tried_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    runtimes = await place.runtimes()
    monkeypatch.setattr(folders.RuntimeFolders, "complete", full)
    failed = await settled(runtimes, ("smalla",))
    assert failed.verdict is not None
    assert (failed.verdict.cause, failed.verdict.retry_may_help) == (Cause.DISK_FULL, True)
    assert place.folders() == set()


async def test_another_server_finds_what_is_whole_and_puts_away_what_is_not(place: Place):
    runtimes = await place.runtimes()
    await settled(runtimes, ("smalla",))
    await runtimes.close()
    whole = place.folders()
    (place.folder / "half" / "bin").mkdir(parents=True)
    (place.folder / "trash" / "old").mkdir(parents=True, exist_ok=True)
    again = await place.runtimes()
    assert place.folders() == whole
    assert not (place.folder / "trash").exists()
    assert (await settled(again, ("smalla",))).is_ready
    assert said(again, ("smalla",), "import smalla; print(1)") == "1"


async def test_what_was_not_on_the_disk_when_the_machine_went_down_is_built_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(folders.RuntimeFolders, "settle", lambda *_: None)  # type: ignore[arg-type]
    runtimes = await place.runtimes()
    await settled(runtimes, ("smalla",))
    await runtimes.close()
    monkeypatch.setattr(folders, "_boot", lambda: "another boot")
    await place.runtimes()
    assert place.folders() == set()


async def test_a_server_that_ends_takes_its_builds_along(place: Place):
    runtimes = await place.runtimes()
    async with asyncio.timeout(PATIENCE):
        while not _processes(place.folder):
            runtimes.readiness(RuntimeNeed(PLAIN, ("smalla",)), "job")
            await asyncio.sleep(0.01)
    await runtimes.close()
    await _until(lambda: not _processes(place.folder))


async def test_one_removed_behind_our_back_is_noticed_at_the_start_and_built_again(place: Place):
    runtimes = await place.runtimes()
    await settled(runtimes, ("smalla",))
    python = Path(runtimes.python(RuntimeNeed(PLAIN, ("smalla",))))
    python.unlink()
    with pytest.raises(Unavailable, match="made again"):
        runtimes.python(RuntimeNeed(PLAIN, ("smalla",)))
    assert (await settled(runtimes, ("smalla",))).is_ready
    assert python.exists()


async def test_the_least_recently_used_go_before_a_build_when_the_disk_runs_low_but_none_that_is_wanted(
    place: Place,
):
    runtimes = await place.runtimes()
    await settled(runtimes, ("smalla",))
    await settled(runtimes, ("smallb",))
    await runtimes.close()
    spec = JobSpec(pools=(replace(a_pool(), image=PLAIN),), requirements=("smallb",))
    place.jobs = [replace(a_job(), spec=spec)]
    low = await place.runtimes(limits=RuntimeLimits(room=1 << 60))
    await settled(low, ("smalla", "smallb"))
    kept = {one.requirements for one in low.all() if one.phase is RuntimePhase.READY and one.requirements}
    assert kept == {("smallb",), ("smalla", "smallb")}


async def test_people_may_have_one_built_and_removed(place: Place):
    runtimes = await place.runtimes()
    begun = runtimes.begin(PLAIN, ("smalla",))
    assert begun.phase is RuntimePhase.BUILDING and begun.message
    await settled(runtimes, ("smalla",))
    built = runtimes.get(begun.id)
    assert built.phase is RuntimePhase.READY and built.size > 0
    await runtimes.remove([built.id])
    assert place.folders() == set()
    with pytest.raises(NotFound):
        runtimes.get(begun.id)
    with pytest.raises(NotFound, match="example/x"):
        runtimes.begin("example/x:1", ())


async def test_a_refusal_names_the_image_and_what_runs(place: Place):
    runtimes = await place.runtimes(RuntimeRow(name="team/base"))
    assert runtimes.refuse("team/base") is None
    for image in ("example/train:1", "trainshed/python:2", "trainshed/python:3.99", ""):
        sentence = runtimes.refuse(image)
        assert sentence is not None
        assert f"'{image}'" in sentence and PLAIN in sentence
    assert "a container engine" in str(runtimes.refuse("example/train:1"))


async def test_other_interpreters_are_looked_for_when_one_is_asked_for_and_what_is_none_fails(
    place: Place, monkeypatch: pytest.MonkeyPatch
):
    old = Interpreter(path=sys.executable, version="3.7")
    monkeypatch.setattr(interpreters, "others", lambda: {"3.7": old})
    runtimes = await place.runtimes(
        RuntimeRow(name="team/old", python="3.7"), RuntimeRow(name="team/none", python="3.6")
    )
    assert runtimes.readiness(RuntimeNeed("team/old"), "old").standing is ReadinessState.PREPARING
    await _until(lambda: "old" in place.hints)
    assert runtimes.all()[0].phase is RuntimePhase.ABSENT
    [note] = runtimes.readiness(RuntimeNeed("team/none"), "").notes
    assert "Python 3.6;" in note
    gone = runtimes.readiness(RuntimeNeed("trainshed/python:3.99"), "gone")
    assert gone.standing is ReadinessState.FAILED and gone.verdict is not None


async def test_more_on_top_of_a_runtime_sees_its_packages_and_installs_only_its_own(place: Place):
    row = RuntimeRow(name="team/base", version="1.0", requirements=("smalla==1.0",), imports=("smalla",))
    runtimes = await place.runtimes(row)
    assert runtimes.warm_imports("team/base") == ("smalla",)
    assert (await settled(runtimes, ("smallb",), image="team/base:1.0")).is_ready
    assert runtimes.readiness(RuntimeNeed("team/base"), "job").is_ready  # it was built on the way
    both = "import smalla, smallb; print(smalla.__file__); print(smallb.__file__)"
    low, top = said(runtimes, ("smallb",), both, "team/base:1.0").splitlines()
    assert Path(low).parts[:-1] != Path(top).parts[:-1]
    bin = Path(runtimes.python(RuntimeNeed("team/base:1.0", ("smallb",)))).parent
    assert (bin / "smalla").read_text().startswith(f"#!{bin}")
    alone = "import importlib.util as u; print(u.find_spec('smallb'))"
    assert said(runtimes, (), alone, "team/base") == "None"
    spec = JobSpec(pools=(replace(a_pool(), image="team/base"),), requirements=("smallb",))
    assert len(runtimes.ids([replace(a_job(), spec=spec)])) == 2


def _processes(folder: Path) -> list[int]:
    found: list[int] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str(folder).encode() in (process / "cmdline").read_bytes():
                found.append(int(process.name))
        except OSError:
            continue
    return found


async def _until(check: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not check():
            await asyncio.sleep(0.02)


async def test_a_link_in_the_place_of_a_build_s_log_is_replaced_not_followed(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"of somebody else")
    places = folders.RuntimeFolders(tmp_path / "runtimes")
    places.open(other)
    places.log("d").symlink_to(other)
    python = Interpreter(path=sys.executable, version="3.11")
    await Build(EnvironmentRecipe(name="x", interpreter=python, digest="d"), places, (), os.environ).run()
    assert other.read_bytes() == b"of somebody else"
    assert b"make_environment.py" in places.log("d").read_bytes()
