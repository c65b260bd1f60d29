"""The folder of environments on disk: which are whole, what they are, and how one goes. It blocks.

An environment cannot be moved once it is made, so it is made in its place, and whole only with the file
`complete`, which is written last. What lies there without it was left by a killed server and goes. Nothing
here decides what goes; it may assume that one server alone works on the folder.
"""

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from trainshed.core.supplies.package import Package
from trainshed.core.supplies.runtime import Runtime, RuntimePhase
from trainshed.runtimes.recipe import EnvironmentRecipe

_COMPLETE, _SETTLED = "complete", "settled"
PACKAGES = "packages"
_OTHERS = ("trash", "lib", PACKAGES)  # folders that are no environments


@dataclass(frozen=True, slots=True)
class RuntimeFolders:
    folder: Path

    def open(self, report: Path) -> dict[str, Runtime]:
        """Everything whole; what is not is put away. Programs tell how far they are with `report`."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._offer(report)
        result: dict[str, Runtime] = {}
        for place in sorted(self.folder.iterdir()):
            if place.name in _OTHERS or not place.is_dir():
                continue
            if (runtime := _read(place)) is not None:
                result[runtime.id] = runtime
            else:
                self.discard(place.name)
        self.empty_trash()
        return result

    @property
    def library(self) -> Path:
        return self.folder / "lib"

    def place(self, digest: str) -> Path:
        return self.folder / digest

    def log(self, digest: str) -> Path:
        return self.folder / f"{digest}.log"

    def packages(self, digest: str) -> Path | None:
        """Where an environment's packages lie."""
        return next(self.place(digest).glob("lib/python3*/site-packages"), None)

    def complete(self, recipe: EnvironmentRecipe) -> Runtime:
        """Call it whole, as far as this boot of the machine goes; `settle` makes it so for good."""
        place = self.place(recipe.digest)
        shutil.rmtree(place / "tmp", ignore_errors=True)
        size = sum(_sizes(place))
        fields = {
            "name": recipe.name,
            "python": recipe.interpreter.version,
            "requirements": recipe.requirements,
            "packages": [asdict(package) for package in recipe.packages],
            "below": recipe.below.digest if recipe.below else "",
            "size": size,
            "built_at": datetime.now(UTC).isoformat(),
            "boot": _boot(),
        }
        draft = place / f"{_COMPLETE}.new"
        draft.write_text(json.dumps(fields))
        draft.replace(place / _COMPLETE)
        kept = _read(place)
        assert kept is not None
        return kept

    def settle(self, digest: str) -> None:
        """Have all of it on the disk, which may take a while, and say so: now a power cut may come."""
        os.sync()
        with contextlib.suppress(OSError):
            (self.place(digest) / _SETTLED).touch()

    def touch(self, digest: str) -> None:
        with contextlib.suppress(OSError):
            os.utime(self.place(digest) / _COMPLETE)

    def withdraw(self, digest: str) -> None:
        """From now on it is not there: one rename, so that a new one can be made in its place at once."""
        trash = self.folder / "trash"
        trash.mkdir(mode=0o700, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            self.place(digest).rename(trash / f"{digest}-{os.urandom(4).hex()}")

    def discard(self, digest: str) -> None:
        with contextlib.suppress(OSError):
            self.withdraw(digest)
        self.empty_trash()

    def empty_trash(self) -> None:
        shutil.rmtree(self.folder / "trash", ignore_errors=True)

    def free(self) -> tuple[int, int]:
        """Bytes free and in all, of the disk it lies on."""
        usage = os.statvfs(self.folder)
        return usage.f_bavail * usage.f_frsize, usage.f_blocks * usage.f_frsize

    def _offer(self, report: Path) -> None:
        """Every environment sees this folder: `from trainshed import report` works in all of them."""
        package = self.library / "trainshed"
        package.mkdir(parents=True, exist_ok=True)
        (package / "__init__.py").write_text('"""What of Trainshed programs may use."""\n')
        shutil.copyfile(report, package / "report.py")


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _read(place: Path) -> Runtime | None:
    complete = place / _COMPLETE
    try:
        fields = json.loads(complete.read_text())
        if fields["boot"] != _boot() and not (place / _SETTLED).exists():
            return None  # the machine went down before all of it was on the disk
        return Runtime(
            id=place.name,
            name=fields["name"],
            phase=RuntimePhase.READY,
            python=fields["python"],
            requirements=tuple(fields["requirements"]),
            packages=tuple(Package(**item) for item in fields.get("packages", ())),
            below=fields["below"],
            size=fields["size"],
            built_at=datetime.fromisoformat(fields["built_at"]),
            used_at=datetime.fromtimestamp(complete.stat().st_mtime, UTC),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _sizes(folder: Path) -> Iterator[int]:
    for root, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                yield os.lstat(os.path.join(root, name)).st_blocks * 512  # noqa: PTH118 - thousands of files
