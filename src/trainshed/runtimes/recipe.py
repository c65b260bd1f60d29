"""From an image's name to the recipe of the environment that stands in for it. Pure.

It may assume what interpreters there are; it never looks for one. Where the framework's or Python's version
is not the one asked for, the recipe carries a note that names both.
"""

import fnmatch
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from trainshed.core.jobs.readiness import READY, Readiness
from trainshed.core.supplies.package import Package
from trainshed.core.supplies.runtime import PLAIN
from trainshed.runtimes.rows import RuntimeRow

_REGISTRIES = r"(?:[a-z0-9-]+-docker\.pkg\.dev/vertex-ai|gcr\.io/cloud-aiplatform)/training"
_GOOGLE = re.compile(
    rf"{_REGISTRIES}/(?P<framework>[a-z0-9-]+?)-(?:cpu|gpu|tpu|xla)(?:-[a-z0-9]+)?"
    r"\.(?P<version>\d+(?:-\d+)*)(?:[.-](?:py|cp)(?P<python>\d{2,3}))?[a-z0-9.-]*"
    r"(?::[\w.-]+)?(?:@sha256:[0-9a-f]+)?"
)
_TAGGED = re.compile(r"(?P<name>[^:@]+)(?::(?P<tag>[\w.-]+?)(?:-py(?P<python>\d\.\d+)(?:\.\d+)?)?)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    path: str
    version: str  # "3.11"


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentRecipe:
    """Everything that decides what an environment holds, and so what it is called on disk."""

    name: str  # for people: trainshed/pytorch:2.13.0
    interpreter: Interpreter
    requirements: tuple[str, ...] = ()
    packages: tuple[Package, ...] = ()  # installed first, in this order
    index: str = ""
    extra_indexes: tuple[str, ...] = ()
    below: "EnvironmentRecipe | None" = None  # what it is laid on; its packages are seen, not installed again
    imports: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    lacks: str = ""  # a Python version that would be taken instead, were it here
    digest: str = ""  # set by `named`
    ready: Readiness = READY  # what is said of it once it is there

    @property
    def is_plain(self) -> bool:
        return self.below is None and not self.requirements and self.name == PLAIN

    @property
    def operator_addresses(self) -> tuple[str, ...]:
        """Where the operator says that packages are. The lines on top of another environment are a job's."""
        words = () if self.below else (word for line in self.requirements for word in line.split())
        return (self.index, *self.extra_indexes, *(word for word in words if "://" in word))


def recipe_of(
    image: str, rows: Iterable[RuntimeRow], own: Interpreter, others: Mapping[str, Interpreter]
) -> EnvironmentRecipe | None:
    """The recipe for an image; None where none stands in for it."""
    name, wanted, python = _asked(image)
    if name == PLAIN:
        return None if python else _plain(wanted, own, others)
    known = list(rows)
    google = _GOOGLE.fullmatch(image)
    fits = [row for row in known if google and google["framework"] in row.google]
    fits = fits or [row for row in known if row.name == name]
    if not fits:
        fits = [row for row in known if any(fnmatch.fnmatchcase(image, item) for item in row.images)]
        wanted = ""
    if not fits:
        return None
    row = min(fits, key=lambda item: _distance(item.version, wanted))
    wanted_python = python if python in row.pythons else row.python
    interpreter = others.get(wanted_python, own)
    notes = _python_notes(image, python or row.python, interpreter)
    if wanted and not _agrees(row.version, wanted):
        kind = row.name.rpartition("/")[2]
        notes = (
            f"'{image}' asks for {kind} {wanted}; {kind} {row.version} is here and used instead.",
            *notes,
        )
    return named(
        EnvironmentRecipe(
            name=f"{row.name}:{row.version}" if row.version else row.name,
            interpreter=interpreter,
            requirements=row.requirements,
            index=row.index,
            extra_indexes=row.extra_indexes,
            imports=row.imports,
            notes=notes,
            lacks=wanted_python if wanted_python != interpreter.version else "",
        )
    )


def layered(
    recipe: EnvironmentRecipe, requirements: tuple[str, ...], packages: tuple[Package, ...] = ()
) -> EnvironmentRecipe:
    """The same with more on top: an environment of its own that sees the packages of the one below."""
    if not requirements and not packages:
        return recipe
    return named(replace(recipe, requirements=requirements, packages=packages, below=recipe))


def named(recipe: EnvironmentRecipe) -> EnvironmentRecipe:
    content = [
        recipe.interpreter.path,
        recipe.interpreter.version,
        list(recipe.requirements),
        recipe.index,
        list(recipe.extra_indexes),
        (recipe.below.digest or PLAIN) if recipe.below else "",
        *([[package.sha256 for package in recipe.packages]] if recipe.packages else []),
    ]
    digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:20]
    ready = Readiness(notes=recipe.notes, installed=tuple(package.sentence for package in recipe.packages))
    return replace(recipe, digest=digest, ready=READY if ready == READY else ready)


def _asked(image: str) -> tuple[str, str, str]:
    """Name, version of the framework and of Python, as far as the image's name says."""
    if google := _GOOGLE.fullmatch(image):
        python = google["python"] or ""
        return (
            google["framework"],
            google["version"].replace("-", "."),
            python and f"{python[0]}.{python[1:]}",
        )
    tagged = _TAGGED.fullmatch(image)
    if tagged is None:
        return image, "", ""
    tag = tagged["tag"] or ""
    return tagged["name"], "" if tag == "latest" else tag, tagged["python"] or ""


def _plain(wanted: str, own: Interpreter, others: Mapping[str, Interpreter]) -> EnvironmentRecipe | None:
    if wanted in ("", "3", own.version):
        return EnvironmentRecipe(name=PLAIN, interpreter=own)
    if wanted in others:
        return named(EnvironmentRecipe(name=f"{PLAIN}:{wanted}", interpreter=others[wanted]))
    return None


def _python_notes(image: str, asked: str, given: Interpreter) -> tuple[str, ...]:
    if not asked or asked == given.version:
        return ()
    return (f"'{image}' asks for Python {asked}; Python {given.version} is here and used instead.",)


def _numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)][:3]


def _distance(version: str, wanted: str) -> tuple[int, ...]:
    """How far from what is wanted; where nothing is, the newest is nearest."""
    here = [*_numbers(version), 0, 0, 0][:3]
    asked = _numbers(wanted)
    if not asked:
        return tuple(-number for number in here)
    near = [abs(have - want) for have, want in zip(here, asked, strict=False)]
    return (*near, *(-number for number in here[len(asked) :]))


def _agrees(version: str, wanted: str) -> bool:
    asked = _numbers(wanted)
    return bool(asked) and _numbers(version)[: len(asked)] == asked
