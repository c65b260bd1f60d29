"""Packages in environments: fetched once a job, the same for all its runs, built once, hostile ones refused.

The packages are made here, lie in real buckets, are laid on the tests' own interpreter; no index is asked.
"""

import asyncio
import importlib.metadata
import os
import subprocess
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests import packages
from tests.builders import a_job, a_pool
from tests.contracts.bucket import Steps, info, pieces
from tests.contracts.test_venv_runtimes import PATIENCE, PLAIN, judged
from trainshed.buckets.store import DiskBuckets
from trainshed.core.bucket import ObjectDraft
from trainshed.core.errors import Exhausted, Forbidden, Invalid, NotFound, Unavailable
from trainshed.core.jobs.job import Job
from trainshed.core.jobs.readiness import Readiness, ReadinessState
from trainshed.core.jobs.verdict import Cause, Verdict
from trainshed.core.supplies.runtime import RuntimeNeed, RuntimePhase
from trainshed.core.supplies.source_port import Fetched, SourceFacts
from trainshed.runtimes import build, pins, tools
from trainshed.runtimes import packages as packages_module
from trainshed.runtimes.packages import PackageFetcher
from trainshed.runtimes.rows import RuntimeRow
from trainshed.runtimes.venvs import VenvRuntimes
from trainshed.service.source import BucketSource

URI = "gs://shed/staging/trainer-0.1.tar.gz"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


class Watched:
    """A source that counts, and fails when told so."""

    def __init__(self, source: BucketSource) -> None:
        self.source, self.fetches, self.fails = source, 0, 0

    async def look(self, uri: str, project: str) -> SourceFacts:
        if self.fails:
            self.fails -= 1
            raise Unavailable("The store does not answer.")
        return await self.source.look(uri, project)

    async def fetch(self, uri: str, project: str, into: str, most: int) -> Fetched:
        self.fetches += 1
        return await self.source.fetch(uri, project, into, most)


class Place:
    """Buckets, a folder of environments, and whichever server works on them just now."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.wheels = folder / "run times", folder / "wheels [of ours]"  # pip minds neither
        self.wheels.mkdir()
        self.buckets = DiskBuckets(folder / "buckets", Steps())
        self.source = Watched(BucketSource({"gs": self.buckets}))
        self.jobs: list[Job] = []
        self.asked: set[str] = set()  # jobs that are taken for not over
        self.open: list[VenvRuntimes] = []

    async def runtimes(self, *rows: RuntimeRow) -> VenvRuntimes:
        environ = {**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": self.wheels.as_uri()}
        environ |= {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_CACHE_DIR": "1"}

        async def wanted() -> list[Job]:
            return [*self.jobs, *(a_job(id=one) for one in self.asked)]

        async def project_of(job: str) -> str:
            self.asked.add(job)
            return info().project

        package_fetcher = PackageFetcher(source=self.source, project_of=project_of)
        made = VenvRuntimes(
            self.folder, rows, judge=judged, wanted=wanted, environ=environ, package_fetcher=package_fetcher
        )
        self.open.append(made)
        await made.start()
        return made

    async def put(self, uri: str, content: bytes) -> str:
        _, _, bucket, name = uri.split("/", 3)
        await self.buckets.open(bucket).put(ObjectDraft(name=name), pieces(content))
        return uri

    def environments(self) -> list[str]:
        return [path.name for path in self.folder.iterdir() if (path / "bin").exists()]

    def left(self) -> list[Path]:
        """Files of packages, fetched or on their way."""
        return list((self.folder / "packages" / "coming").rglob("*"))


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    place = Place(tmp_path)
    await place.buckets.start()
    await place.buckets.create(info())
    yield place
    for one in place.open:
        await one.close()
    await place.buckets.close()


def need(*uris: str, lines: tuple[str, ...] = ()) -> RuntimeNeed:
    return RuntimeNeed(PLAIN, lines, uris or (URI,))


async def settled(runtimes: VenvRuntimes, wish: RuntimeNeed, job: str = "job") -> Readiness:
    async with asyncio.timeout(PATIENCE):
        while (now := runtimes.readiness(wish, job)).standing is ReadinessState.PREPARING:
            assert now.message
            await asyncio.sleep(0.02)
    return now


async def verdict(runtimes: VenvRuntimes, wish: RuntimeNeed, job: str = "job") -> Verdict:
    found = await settled(runtimes, wish, job)
    assert found.standing is ReadinessState.FAILED and found.verdict is not None, found
    return found.verdict


def said(runtimes: VenvRuntimes, wish: RuntimeNeed, job: str = "job", *args: str) -> str:
    words = [runtimes.python(wish, job), "-m", "trainer.task", *args]
    return subprocess.run(words, check=True, capture_output=True, text=True, cwd="/").stdout.strip()


async def test_a_plain_setup_py_is_built_installed_and_run_as_a_module_without_any_index(place: Place):
    await place.put(URI, packages.sdist())
    runtimes = await place.runtimes()
    ready = await settled(runtimes, need())
    assert ready.is_ready
    [line] = ready.installed
    assert line.startswith(f"{URI} as it was then: sha256 ") and "bytes." in line
    assert said(runtimes, need(), "job", "--x", "1") == "0.1 --x 1"
    [environment] = place.environments()
    assert list((place.folder / environment).rglob("trainer/__pycache__/task.*.pyc"))  # nothing is left to do
    [one] = [one for one in runtimes.all() if one.packages]
    assert (one.packages[0].uri, one.requirements) == (URI, ())


async def test_what_nobody_in_particular_asks_for_is_not_fetched(place: Place):
    await place.put(URI, packages.sdist())
    runtimes = await place.runtimes()
    assert runtimes.readiness(need()).standing is ReadinessState.PREPARING
    await asyncio.sleep(0.05)
    assert place.source.fetches == 0
    with pytest.raises(Unavailable):
        runtimes.python(need(), "job")


async def test_many_jobs_at_once_have_it_built_once_and_the_next_ones_fetch_nothing(place: Place):
    await place.put(URI, packages.sdist())
    runtimes = await place.runtimes()
    found = await asyncio.gather(*(settled(runtimes, need(), f"job{n}") for n in range(10)))
    assert all(one.is_ready for one in found)
    assert len(place.environments()) == 1
    [log] = place.folder.glob("*.log")
    assert log.read_text().count("make_environment.py") == 1
    before = place.source.fetches
    assert (await settled(runtimes, need(), "later")).is_ready
    assert place.source.fetches == before


async def test_a_replaced_object_changes_neither_a_job_that_has_it_nor_its_pools_after_a_restart(
    place: Place,
):
    await place.put(URI, packages.sdist())
    runtimes = await place.runtimes()
    await settled(runtimes, need())
    await place.put(URI, packages.sdist(packages.files(version="0.2")))
    assert said(runtimes, need()) == "0.1"
    await runtimes.close()
    again = await place.runtimes()
    assert again.readiness(need(), "job").is_ready  # found again, nothing to wait for
    other = need(URI, lines=("trainer",))  # another pool of the same job
    assert (await settled(again, other)).is_ready
    assert said(again, other) == "0.1"
    assert (await settled(again, need(), "new")).is_ready
    assert said(again, need(), "new") == "0.2"
    assert len(place.environments()) == 3


async def test_a_file_that_is_gone_is_fetched_again_but_only_the_same_content_will_do(place: Place):
    await place.put(URI, packages.sdist())
    runtimes = await place.runtimes()
    await settled(runtimes, need())
    [package] = [one.packages[0] for one in runtimes.all() if one.packages]
    file = pins.Pins(place.folder / "packages").path(package)

    async def lose() -> None:
        file.unlink(missing_ok=True)
        await runtimes.remove([one.id for one in runtimes.all() if one.packages])

    await lose()
    assert (await settled(runtimes, need())).is_ready
    await lose()
    await place.put(URI, packages.sdist(packages.files(version="0.2")))
    gone = await verdict(runtimes, need())
    assert "was replaced" in gone.summary and package.sha256 in gone.summary


async def test_a_damaged_file_is_not_unpacked(place: Place):
    await place.put(URI, packages.sdist())
    runtimes = await place.runtimes()
    await settled(runtimes, need())
    [package] = [one.packages[0] for one in runtimes.all() if one.packages]
    pins.Pins(place.folder / "packages").path(package).write_bytes(bytes(package.size))
    await runtimes.remove([one.id for one in runtimes.all() if one.packages])
    assert "is gone" in (await verdict(runtimes, need())).summary
    assert (await settled(runtimes, need(), "next")).is_ready


async def test_packages_and_requirements_and_what_packages_need_are_installed_together(place: Place):
    (place.wheels / "other-1.0-py3-none-any.whl").write_bytes(packages.wheel("other", "1.0"))
    (place.wheels / "third-2.0-py3-none-any.whl").write_bytes(packages.wheel("third", "2.0"))
    await place.put(URI, packages.sdist(packages.files(needs=("other>=1",))))
    second = await place.put("gs://shed/more-3-py3-none-any.whl", packages.wheel("more", "3"))
    runtimes = await place.runtimes()
    wish = need(URI, second, lines=("third",))
    assert (await settled(runtimes, wish)).is_ready
    code = "import other, third, more; print(other.version, third.version, more.version)"
    done = subprocess.run(
        [runtimes.python(wish, "job"), "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "1.0 2.0 3\n"


async def test_what_is_missing_without_an_index_is_named(place: Place):
    await place.put(URI, packages.sdist(packages.files(needs=("nosuch>=7",))))
    runtimes = await place.runtimes()
    found = await verdict(runtimes, need())
    assert found.cause is Cause.NO_SUCH_PACKAGE
    assert any("nosuch>=7" in line for line in found.lines)
    hatch = "[build-system]\nrequires = ['nosuchbackend']\nbuild-backend = 'nosuchbackend'\n"
    other = await place.put("gs://shed/h.tar.gz", packages.sdist({"pyproject.toml": hatch}))
    found = await verdict(runtimes, need(other), "other")
    assert any("nosuchbackend" in line for line in found.lines)
    assert place.environments() == []


async def test_a_server_without_setuptools_and_without_an_index_says_what_it_lacks(
    place: Place, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(tools, "lay_out", lambda _folder: None)  # type: ignore[arg-type]
    await place.put(URI, packages.sdist())
    runtimes = await place.runtimes()
    found = await verdict(runtimes, need())
    assert any("setuptools" in line for line in found.lines)


async def test_a_failing_setup_py_is_a_verdict_with_its_own_words(place: Place):
    await place.put(URI, packages.sdist({"setup.py": "raise SystemExit('the moon is full')"}))
    found = await verdict(await place.runtimes(), need())
    assert found.cause is Cause.BUILD_FAILED
    assert found.summary == "the moon is full"
    assert any("the moon is full" in line for line in found.lines)
    assert place.environments() == []


@pytest.mark.parametrize(
    ("setup", "summary", "advice"),
    [
        ("raise RuntimeError('set FOO_HOME')", "RuntimeError: set FOO_HOME", "could not be built"),
        (
            "import nosuchthing",
            "ModuleNotFoundError: No module named 'nosuchthing'",
            "[build-system] requires",
        ),
        (
            "open('README.md')",
            "FileNotFoundError: [Errno 2] No such file or directory: 'README.md'",
            "MANIFEST.in",
        ),
        ("setup(", "SyntaxError: '(' was never closed", "Correct the line"),
    ],
)
async def test_the_cause_of_a_failing_setup_py_is_the_line_that_says_it(
    place: Place, setup: str, summary: str, advice: str
):
    await place.put(URI, packages.sdist({"setup.py": setup}))
    found = await verdict(await place.runtimes(), need())
    assert found.summary == summary
    assert advice in found.advice


async def test_of_tries_to_build_a_package_only_the_newest_is_listed_whatever_was_changed_in_it(place: Place):
    runtimes = await place.runtimes()

    def listed() -> list[tuple[str, RuntimePhase]]:
        return [(one.packages[0].uri, one.phase) for one in runtimes.all() if one.packages]

    other = await place.put("gs://shed/other-0.1.tar.gz", packages.sdist({"setup.py": "1 / 0"}))
    assert (await settled(runtimes, need(other), "other")).standing is ReadinessState.FAILED
    staged = [f"gs://shed/{number}/trainer-0.1.tar.gz" for number in range(3)]  # as gcloud: one place each
    for number, uri in enumerate((URI, URI, *staged[:2])):
        await place.put(uri, packages.sdist({"setup.py": f"raise SystemExit('try {number}')"}))
        assert (await settled(runtimes, need(uri), str(number))).standing is ReadinessState.FAILED
        assert sorted(listed()) == sorted([(other, RuntimePhase.FAILED), (uri, RuntimePhase.FAILED)])
    await place.put(staged[2], packages.sdist())
    assert (await settled(runtimes, need(staged[2]), "good")).standing is ReadinessState.READY
    assert sorted(listed()) == sorted([(other, RuntimePhase.FAILED), (staged[2], RuntimePhase.READY)])


async def test_any_name_an_object_may_have_will_do_and_the_same_content_counts_once(place: Place):
    content = packages.zipped({f"t/{path}": text for path, text in packages.files().items()})
    odd = await place.put("gs://shed/größe: 大/../-r trainer [x] #1?%41.zip", content)
    twice = await place.put("gs://shed/other.zip", content)
    runtimes = await place.runtimes()
    wish = need(odd, twice, odd)
    assert (await settled(runtimes, wish)).is_ready
    assert said(runtimes, wish) == "0.1"
    assert [len(one.packages) for one in runtimes.all() if one.packages] == [1]


async def test_a_setup_py_does_not_see_the_server_s_secrets(place: Place, monkeypatch: pytest.MonkeyPatch):
    for name in ("AWS_SECRET_ACCESS_KEY", "TRAINSHED_DATABASE", "SOMETHING_ELSE"):
        monkeypatch.setenv(name, "the-secret")
    tells = "import os\nraise SystemExit('seen: ' + str([n for n, v in os.environ.items() if 'secret' in v]))"
    await place.put(URI, packages.sdist({"setup.py": tells}))
    found = await verdict(await place.runtimes(), need())
    assert any("seen: []" in line for line in found.lines), found.lines


async def test_a_package_hides_one_of_the_same_name_and_version_below(place: Place):
    version = importlib.metadata.version("click")
    content = packages.wheel("click", version)
    fake = await place.put(f"gs://shed/click-{version}-py3-none-any.whl", content)
    runtimes = await place.runtimes()
    assert (await settled(runtimes, need(fake))).is_ready
    code = "import click; print(click.__file__)"
    done = subprocess.run(
        [runtimes.python(need(fake), "job"), "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(str(place.folder))


@pytest.mark.parametrize(
    "kind",
    [
        "a name that climbs",
        "a tar bomb",
        "a tar larger than any",
        "a zip bomb",
        "no archive at all",
        "half a zip",
    ],
)
async def test_a_hostile_archive_ends_the_job_with_a_sentence_and_leaves_nothing(kind: str, place: Place):
    """Of each limit and reader one: the tests of `runtimes/archive.py` have all kinds."""
    name, make, sentence = packages.HOSTILE[kind]
    uri = await place.put(f"gs://shed/{name}", make())
    found = await verdict(await place.runtimes(), need(uri))
    assert uri in found.summary and sentence in found.summary and "unpacked" in found.advice
    assert not found.retry_may_help
    assert place.environments() == [] and place.left() == []
    assert not [path for path in place.folder.rglob("*") if "evil" in path.name]


async def test_what_is_not_there_not_readable_or_too_large_is_told_with_its_address_and_the_way_out(
    place: Place, monkeypatch: pytest.MonkeyPatch
):
    runtimes = await place.runtimes()
    missing = await verdict(runtimes, need())
    assert missing.cause is Cause.NO_SUCH_PACKAGE and URI in missing.summary
    assert "trainshed storage ls gs://shed" in missing.advice
    nowhere = await verdict(runtimes, need("gs://nobucket/t.tar.gz"), "nowhere")
    assert nowhere.cause is Cause.NO_SUCH_PACKAGE and "nobucket" in nowhere.summary
    await place.buckets.create(replace(info(), name="theirs", project="another"))
    theirs = await place.put("gs://theirs/t.tar.gz", packages.sdist())
    other = await verdict(runtimes, need(theirs), "other")
    assert other.cause is Cause.PERMISSION and theirs in other.summary and "own project" in other.advice
    foreign = await verdict(runtimes, need("s3://shed/t.tar.gz"), "foreign")
    assert "s3://" in foreign.summary and "gs://" in foreign.summary
    monkeypatch.setattr(packages_module, "LARGEST", 10)
    await place.put(URI, packages.sdist())
    large = await verdict(runtimes, need(), "large")
    assert "too large" in large.summary and URI in large.summary
    assert place.left() == [] and place.environments() == []


async def test_a_store_that_does_not_answer_is_asked_again_a_few_times(
    place: Place, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(packages_module, "PAUSE", 0.01)
    await place.put(URI, packages.sdist())
    runtimes = await place.runtimes()
    place.source.fails = 2
    assert (await settled(runtimes, need())).is_ready
    place.source.fails = 100
    found = await verdict(runtimes, need(), "other")
    assert (found.cause, found.retry_may_help) == (Cause.NETWORK_ERROR, True)


async def test_a_full_disk_is_told_as_that(place: Place, monkeypatch: pytest.MonkeyPatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    await place.put(URI, packages.sdist())
    runtimes = await place.runtimes()
    monkeypatch.setattr(pins.Pins, "keep", full)
    found = await verdict(runtimes, need())
    assert (found.cause, found.retry_may_help) == (Cause.DISK_FULL, True)
    assert place.left() == []


async def test_what_a_job_has_is_kept_while_it_is_not_over_and_goes_afterwards(
    place: Place, monkeypatch: pytest.MonkeyPatch
):
    await place.put(URI, packages.sdist())
    runtimes = await place.runtimes()
    job = replace(a_job(replace(a_pool(), packages=(URI,), module="trainer.task")), id="job")
    assert runtimes.ids([job]) == frozenset()  # not fetched yet: it is not known
    await settled(runtimes, need())
    monkeypatch.setattr(packages_module, "KEPT", -1.0)
    place.jobs, place.asked = [job], set()
    await runtimes._forget_packages()  # pyright: ignore[reportPrivateUsage]
    assert runtimes.ids([job]) == frozenset(place.environments())
    assert runtimes.readiness(need(), "job").is_ready
    place.jobs = []
    await runtimes._forget_packages()  # pyright: ignore[reportPrivateUsage]
    assert not list((place.folder / "packages" / "files").iterdir())
    assert not list((place.folder / "packages" / "pins").iterdir())


async def test_what_hangs_is_not_built_on_once_all_who_asked_for_it_are_over(place: Place):
    await place.put(URI, packages.sdist({"setup.py": "while True: pass"}))
    runtimes = await place.runtimes()
    runtimes.readiness(need(), "job")
    async with asyncio.timeout(PATIENCE):
        while not any(one.phase is RuntimePhase.BUILDING for one in runtimes.all()):
            runtimes.readiness(need(), "job")
            await asyncio.sleep(0.02)
        place.asked.clear()
        while any(one.phase is RuntimePhase.BUILDING for one in runtimes.all()):
            await asyncio.sleep(0.02)
    assert place.environments() == []


async def test_a_step_that_takes_too_long_is_ended_and_told(place: Place, monkeypatch: pytest.MonkeyPatch):
    await place.put(URI, packages.sdist({"setup.py": "while True: pass"}))
    monkeypatch.setattr(build, "LONGEST", 6.0)
    found = await verdict(await place.runtimes(), need())
    assert any("took longer than" in line for line in found.lines)
    assert place.environments() == []


async def test_packages_are_laid_on_a_named_runtime_and_see_what_is_in_it(place: Place):
    (place.wheels / "other-1.0-py3-none-any.whl").write_bytes(packages.wheel("other", "1.0"))
    await place.put(URI, packages.sdist(packages.files(task="import other; print(other.version)")))
    runtimes = await place.runtimes(RuntimeRow(name="team/base", requirements=("other",)))
    wish = RuntimeNeed("team/base", (), (URI,))
    assert (await settled(runtimes, wish)).is_ready
    assert said(runtimes, wish) == "1.0"
    assert len(place.environments()) == 2


async def test_a_server_that_ends_leaves_nothing_half_fetched_to_the_next(place: Place):
    await place.put(URI, packages.sdist())
    first = await place.runtimes()
    first.readiness(need(), "job")
    await first.close()
    (place.folder / "packages" / "coming" / "half").write_bytes(b"x")
    (place.folder / "packages" / "pins" / "torn").write_text("[{")
    again = await place.runtimes()
    assert place.left() == []
    assert (await settled(again, need())).is_ready


async def test_a_source_gives_what_it_promises(place: Place, tmp_path: Path):
    source, file = BucketSource({"gs": place.buckets}), tmp_path / "into"
    project = info().project
    await place.put(URI, b"x" * 3_000_000)
    found = await source.look(URI, project)
    got = await source.fetch(URI, project, str(file), 1 << 30)
    assert (got.size, got.mark, file.stat().st_size) == (3_000_000, found.mark, 3_000_000)
    file.unlink()
    await place.put(URI, b"y")
    assert (await source.look(URI, project)).mark != found.mark
    for uri, who, most, error in (
        (URI, project, 0, Exhausted),
        (URI, "another", 10, Forbidden),
        ("gs://shed/none.whl", project, 10, NotFound),
        ("gs://nobucket/none.whl", project, 10, NotFound),
        ("s3://shed/none.whl", project, 10, Invalid),
    ):
        with pytest.raises(error):
            await source.fetch(uri, who, str(file), most)
        assert not file.exists()
