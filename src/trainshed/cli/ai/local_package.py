"""local-package-path in --worker-pool-spec: a folder of this machine as the program of every pool.

gcloud builds an image of it with the docker here, and pushes that. We send the folder and name the image that
is below: the server lays the one out in the other, so there is no image to build, push or remove. What the
folder says it needs (requirements.txt, setup.py) and the key `requirements` the server installs on top.
"""

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainshed.cli.ai.grammar import Misspelt
from trainshed.cli.ai.listing import pairs
from trainshed.cli.failure import CommandFailed

FLAG = "--worker-pool-spec"
PATH = "local-package-path"
BUILDS = (PATH, "script", "output-image-uri", "requirements", "extra-packages", "extra-dirs")


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalPackage:
    root: str
    script: str  # the file in it that must come along
    image: str
    command: tuple[str, ...]
    requirements: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # what is other than with gcloud


def local_package(pool_specs: Sequence[str]) -> LocalPackage | None:
    """What the first pool says of a folder; None where it says nothing. It looks into the folder."""
    keys = [pairs(text, FLAG) if text.strip() else {} for text in pool_specs]
    check(keys)
    first = keys[0] if keys else {}
    if PATH not in first:
        return None
    root = os.path.abspath(os.path.expanduser(first[PATH]))  # noqa: PTH100, PTH111 - not resolved: links stay
    if not Path(root).is_dir():
        raise CommandFailed(f"Directory [{first[PATH]}] is not found.")
    for name in filter(None, first.get("extra-dirs", "").split(";")):
        if not Path(root, name).is_dir():
            raise CommandFailed(f"Directory [{name}] is not found in [{first[PATH]}].")
    script, command = _program(first, root)
    output = first.get("output-image-uri", "")
    note = f"output-image-uri={output} is not used: no image is built, the folder is sent."
    return LocalPackage(
        root=root,
        script=script,
        image=first["executor-image-uri"],
        command=command,
        requirements=(*_needs(Path(root)), *filter(None, first.get("requirements", "").split(";"))),
        notes=(note,) if output else (),
    )


def check(keys: Sequence[Mapping[str, str]]) -> None:
    """Raises Misspelt for keys that do not go together."""
    for number, spec in enumerate(keys):
        if PATH not in spec:
            if odd := [key for key in BUILDS if key in spec]:
                raise Misspelt(FLAG, f"Key [{odd[0]}] goes with {PATH}")
            continue
        if number:
            raise Misspelt(FLAG, f"Key [{PATH}] is for the first one alone: all others run the same")
        if not spec.get("executor-image-uri"):
            raise Misspelt(FLAG, f"Key [executor-image-uri] is required where {PATH} is given")
        if bool(spec.get("script")) == bool(spec.get("python-module")):
            raise Misspelt(
                FLAG, f"exactly one of the keys [script, python-module] is required where {PATH} is given"
            )
        if spec.get("extra-packages"):
            raise Misspelt(
                FLAG,
                "extra-packages of this machine are not sent; copy them into a bucket (trainshed storage cp) "
                "and give --python-package-uris and python-module, or put them into an image "
                "(trainshed images build)",
            )


def _program(keys: Mapping[str, str], root: str) -> tuple[str, tuple[str, ...]]:
    """The file that is run, and the words that run it, as gcloud's images have them."""
    if module := keys.get("python-module"):
        path = module.replace(".", "/")
        for script in (f"{path}.py", f"{path}/__main__.py"):
            if Path(root, script).is_file():
                return script, ("python", "-m", module)
        raise CommandFailed(f"Module [{module}] is not found in [{keys[PATH]}]: there is no {path}.py.")
    script = os.path.normpath(keys["script"])
    if script.startswith(("/", "..")) or not Path(root, script).is_file():
        raise CommandFailed(f"File [{keys['script']}] is not found in [{keys[PATH]}].")
    return script, ("python", script) if script.endswith(".py") else ("/bin/bash", script)


def _needs(root: Path) -> list[str]:
    """The lines of its requirements.txt, and what its setup.py would have installed."""
    from trainshed.cli.order import requirements
    from trainshed.cli.trouble import EarlyError

    result: list[str] = []
    try:
        if (root / "requirements.txt").is_file():
            result += requirements(str(root / "requirements.txt"))
    except EarlyError as error:
        raise CommandFailed(error.message, error.details) from error
    if (root / "setup.py").is_file():
        result += [line for line in _described(root) if line not in result]
    return result


def _described(root: Path) -> list[str]:
    """What its own description says it needs: built once in a copy, as nothing else can tell."""
    import tarfile

    from trainshed.cli import python_project

    described = python_project.project_at(root)
    if described is None:
        return []
    with tempfile.TemporaryDirectory(prefix="trainshed-package-") as folder:
        made = python_project.sdist(described, Path(folder))
        with tarfile.open(made) as archive:
            for member in archive:
                if member.name.endswith(".egg-info/requires.txt") and (file := archive.extractfile(member)):
                    lines = file.read().decode().splitlines()
                    return [line for line in _always(lines) if line]
    return []


def _always(lines: Sequence[str]) -> list[str]:
    """Without those of extras, which stand below a heading of their own."""
    end = next((at for at, line in enumerate(lines) if line.startswith("[")), len(lines))
    return [line.strip() for line in lines[:end]]
