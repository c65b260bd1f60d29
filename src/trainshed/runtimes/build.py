"""Builds one environment: makes it, then runs pip in it, in processes that die with the server.

It may assume that nobody else builds in the same place. It leaves an unfinished folder where it fails or is
cancelled: whoever called it puts that away. Pip's output goes into a log, and in passing into a Progress.
"""

import asyncio
import contextlib
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from trainshed.core.supplies.package import Package
from trainshed.disk.regular_file import open_regular, write_regular
from trainshed.runtimes import install
from trainshed.runtimes.folders import RuntimeFolders
from trainshed.runtimes.progress import PipProgress
from trainshed.runtimes.recipe import EnvironmentRecipe

LONGEST = 7200.0  # seconds one step may take: what hangs must not keep others from being built for ever

_GUARD = Path(__file__).with_name("guard.py")
_MAKE = Path(__file__).with_name("make_environment.py")
# Of the server's environment: what would lead pip elsewhere than into the environment being made.
_HARMFUL = (
    "PIP_USER",
    "PIP_TARGET",
    "PIP_PREFIX",
    "PIP_ROOT",
    "PIP_REQUIREMENT",
    "PIP_PYTHON",
    "VIRTUAL_ENV",
    "PYTHONPATH",
    "PYTHONHOME",
)


class BuildFailed(Exception):
    """A step of the build failed; with its exit code, and the last it said."""

    def __init__(self, code: int, lines: tuple[str, ...]) -> None:
        super().__init__(code)
        self.code, self.lines = code, lines


@dataclass(slots=True)
class Build:
    recipe: EnvironmentRecipe
    folders: RuntimeFolders
    sites: tuple[str, ...]  # folders of packages it shall see besides its own
    environ: Mapping[str, str] = field(repr=False)
    files: tuple[tuple[Package, Path], ...] = ()  # those of the recipe's packages
    tools: Path | None = None  # what builds source distributions, to be put on PYTHONPATH
    outward: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)  # variables for pip
    progress: PipProgress = field(default_factory=PipProgress)

    async def run(self) -> None:
        await asyncio.to_thread(self._clear)
        place, recipe = self.folders.place(self.recipe.digest), self.recipe
        plans = await self._plans()
        # Pip is seen from below where it is there.
        without = ("--without-pip",) if any((Path(site) / "pip").is_dir() for site in self.sites) else ()
        await self._step((recipe.interpreter.path, "-I", str(_MAKE), str(place), *without))
        await asyncio.to_thread(self._connect)
        lines = (*recipe.requirements, *(await self._install(plans)))
        if lines:
            await asyncio.to_thread(_write_lines, place / "requirements.txt", lines)
            await self._pip(*self._indexes(), "-r", str(place / "requirements.txt"))
        await asyncio.to_thread(self._share_scripts)

    def installed(self) -> list[str]:
        """The packages that lie there already. A look at one folder."""
        packages = self.folders.packages(self.recipe.digest)
        if packages is None or not self.progress.packages:
            return []
        with contextlib.suppress(OSError):
            return [
                entry.name.partition("-")[0]
                for entry in os.scandir(packages)
                if entry.name.endswith(".dist-info") and (Path(entry) / "RECORD").exists()  # written last
            ]
        return []

    def _clear(self) -> None:
        self.folders.discard(self.recipe.digest)
        place = self.folders.place(self.recipe.digest)
        (place / "tmp").mkdir(parents=True, mode=0o700)
        log = self.folders.log(self.recipe.digest)
        log.unlink(missing_ok=True)  # a job may have put a link there
        write_regular(log, b"", os.O_EXCL)

    def _connect(self) -> None:
        packages = self.folders.packages(self.recipe.digest)
        if packages is None:
            raise BuildFailed(1, ("ERROR: the new environment has no folder for packages.",))
        paths = [*self.sites, str(self.folders.library)]
        (packages / "trainshed.pth").write_text("\n".join(paths) + "\n", encoding="utf-8")

    def _share_scripts(self) -> None:
        """Pip, and the commands of the environment below, with this one's interpreter."""
        below, mine = self.recipe.below, self.folders.place(self.recipe.digest) / "bin"
        for name in ("pip", "pip3"):
            if not (mine / name).exists():
                (mine / name).write_text(
                    f"#!{mine}/python\nimport runpy\nrunpy.run_module('pip', run_name='__main__')\n"
                )
                (mine / name).chmod(0o755)
        if below is None or not below.digest:
            return
        theirs = self.folders.place(below.digest) / "bin"
        begins = f"#!{theirs}/".encode()
        for script in theirs.iterdir():
            target = mine / script.name
            if target.exists() or script.is_symlink() or not script.is_file():
                continue
            content = script.read_bytes()
            if content.startswith(begins):
                target.write_bytes(content.replace(begins, f"#!{mine}/".encode(), 1))
                target.chmod(0o755)

    async def _plans(self) -> list[install.InstallPlan]:
        """Every package is looked into before pip sees any."""
        result: list[install.InstallPlan] = []
        for package, path in self.files:
            self.progress.doing = f"looking into {package.uri}"
            version = self.recipe.interpreter.version
            result.append(await install.plan(package, path, version, has_tools=self.tools is not None))
        return result

    async def _install(self, plans: list[install.InstallPlan]) -> tuple[str, ...]:
        """The packages themselves; the lines of what they need besides."""
        packages = self.folders.packages(self.recipe.digest)
        if not plans or packages is None:
            return ()
        before = await asyncio.to_thread(install.present, packages)
        for words in install.steps(plans, self._indexes()):
            await self._pip(*words)
        return await asyncio.to_thread(install.needing, packages, before)

    def _indexes(self) -> tuple[str, ...]:
        recipe = self.recipe
        index = (f"--index-url={recipe.index}",) if recipe.index else ()
        return (*index, *(f"--extra-index-url={extra_index}" for extra_index in recipe.extra_indexes))

    async def _pip(self, *words: str) -> None:
        pip = ("-I", "-m", "pip", "install", "--no-input", "--disable-pip-version-check")
        quiet = ("--progress-bar=off", "--no-color")
        python = self.folders.place(self.recipe.digest) / "bin" / "python"
        await self._step((str(python), *pip, *quiet, *words))

    async def _step(self, argv: tuple[str, ...]) -> None:
        place = self.folders.place(self.recipe.digest)
        environ = install.lent(self.environ) if self.files else dict(self.environ)
        environ = {name: value for name, value in environ.items() if name not in _HARMFUL}
        environ |= {"TMPDIR": str(place / "tmp"), "PYTHONUNBUFFERED": "1", "LC_ALL": "C.UTF-8"}
        environ |= self.outward
        if self.tools is not None:
            environ["PYTHONPATH"] = str(self.tools)  # seen by what pip starts, not by pip itself: that has -I
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", str(_GUARD), *argv),
            stdin=asyncio.subprocess.PIPE,  # the guard ends when this end of it is closed, by whatever
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd=place,
            env=environ,
            start_new_session=True,
        )
        assert child.stdout is not None and child.stdin is not None
        try:
            async with asyncio.timeout(LONGEST):
                await self._listen(child.stdout, argv)
                code = await child.wait()
        except TimeoutError as error:
            words = f"ERROR: it was ended because it took longer than {LONGEST / 60:.0f} minutes."
            raise BuildFailed(124, (*self.progress.last_words(), words)) from error
        finally:
            child.stdin.close()
            if child.returncode is None:
                await asyncio.shield(child.wait())
        if code:
            raise BuildFailed(code, self.progress.last_words())

    async def _listen(self, output: asyncio.StreamReader, argv: tuple[str, ...]) -> None:
        rest = b""
        file = open_regular(self.folders.log(self.recipe.digest), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        with os.fdopen(file, "ab", buffering=0) as log:
            log.write(f"+ {' '.join(argv)}\n".encode())
            while chunk := await output.read(1 << 16):
                with contextlib.suppress(OSError):  # a full disk: what is said counts, not that it is kept
                    log.write(chunk)
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self.progress.hear(line.decode(errors="replace"))
            if rest:
                self.progress.hear(rest.decode(errors="replace"))


def _write_lines(file: Path, lines: tuple[str, ...]) -> None:
    file.write_text("\n".join((*lines, "")), encoding="utf-8")
