"""Words people bring along from kubectl and other tools, as the commands they mean here.

`menu.py` asks for a command line that begins with one of them. It runs nothing itself.
"""

import re
from pathlib import Path

from trainshed.cli.manifest_kinds import NO_JOBS, kind_called

MANIFEST = re.compile(r"^\s*apiVersion\s*:", re.MULTILINE)
FILE_FLAGS = ("-f", "--filename", "--file")


def meant(args: list[str]) -> list[str]:
    """The command line in our own words."""
    word, *rest = args
    match word:
        case "help":
            return [*rest, "--help"]
        case "describe":
            return _described(rest)
        case "status":
            return [_looked_at(rest), *rest]
        case _:
            return _created(rest)


def _described(args: list[str]) -> list[str]:
    """`describe JOB`, and as kubectl has it `describe job JOB` and `describe job/JOB`."""
    kind, slash, _ = args[0].partition("/") if args else ("", "", "")
    meant = kind_called(kind)
    if meant in NO_JOBS:
        return ["get", *args, "-o", "yaml"]
    if meant and not slash and len(args) > 1 and not args[1].startswith("-"):
        return ["show", f"{kind}/{args[1]}", *args[2:]]
    return ["show", *args]


def _looked_at(args: list[str]) -> str:
    """`status JOB` is show, `status` alone is ls, whatever options are beside."""
    valued = {"--url", "--project", "--location", "--region", "--limit", "--state", "--filter", "--replica"}
    before = ["", *args]
    named = [arg for arg, last in zip(args, before, strict=False) if last not in valued and arg[:1] != "-"]
    return "show" if named else "ls"


def _created(args: list[str]) -> list[str]:
    """`create -f FILE` is apply for Kubernetes' manifests, submit for jobs; without -f it is submit."""
    files, rest = list[str](), list[str]()
    words = iter(args)
    for word in words:
        flag, equals, value = word.partition("=")
        if flag in FILE_FLAGS:
            files.append(value if equals else next(words, ""))
        else:
            rest.append(word)
    if any(map(_is_manifest, files)):
        return ["apply", *args]
    return ["submit", *files, *rest]


def _is_manifest(file: str) -> bool:
    if file == "-":
        return True
    try:
        return MANIFEST.search(Path(file).read_text(encoding="utf-8", errors="replace")) is not None
    except OSError:
        return False  # submit says what is wrong with it
