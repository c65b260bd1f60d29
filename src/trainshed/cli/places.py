"""Where a job's data comes from and its results go: read from the words, and put into the job.

Only for who says such places: nothing of this is imported for a job without (docs/adr/0014).
"""

from trainshed.cli import words
from trainshed.cli.trouble import EarlyError

TYPE_CHECKING = False  # the module typing takes longer to import than a job takes to submit
if TYPE_CHECKING:
    from collections.abc import Callable

    from trainshed.cli.submit_options import SubmitWords
    from trainshed.client import Json

DATA = "TRAINSHED_DATA"
LONGEST_NAME = 1024  # bytes


def checks(options: "SubmitWords") -> "list[tuple[Callable[[str], object], str]]":
    """What to ask of each option's text; each raises Trouble where it is wrong."""
    result: list[tuple[Callable[[str], object], str]] = []
    result += [(_output, options.output)] if options.output else []
    result += [(_job_dir, options.job_dir)] if options.job_dir else []
    result += [(_data, "\n".join(options.data))] if options.data else []
    return result


def _data(text: str) -> dict[str, str]:
    return variables(tuple(text.split("\n")))


def _output(text: str) -> str:
    return _place(text, "--output")


def _job_dir(text: str) -> str:
    return _place(text, "--job-dir")


def _place(text: str, option: str) -> str:
    scheme, mark, rest = text.partition("://")
    if not (mark and scheme and rest.strip("/")):
        raise EarlyError(f"{option} {text} is no place in a bucket; write gs://BUCKET/PATH", code=2)
    name = rest.partition("/")[2]
    if option != "--data" and name:  # the server's rule, told before a folder is sent
        if any(part in ("", ".", "..") for part in name.removesuffix("/").split("/")):
            raise EarlyError(f"{option} {text} has an empty, '.' or '..' part between slashes", code=2)
        if any(ord(item) < 32 or 127 <= ord(item) < 160 for item in text):
            raise EarlyError(f"{option} {text!r} has control characters", code=2)
        if len(name.encode(errors="replace")) > LONGEST_NAME:
            raise EarlyError(f"{option} has more than {LONGEST_NAME} bytes after the bucket", code=2)
    return text


def variables(data: tuple[str, ...]) -> dict[str, str]:
    """TRAINSHED_DATA, or TRAINSHED_DATA_NAME for NAME=gs://…, to each place."""
    result: dict[str, str] = {}
    for text in data:
        name, place = _named(text)
        variable = f"{DATA}_{name.upper()}" if name else DATA
        if variable in result:
            write = f"give it another name than {name}" if name else f"write NAME={place}"
            raise EarlyError(f"--data {text}: {variable} is taken; {write}", code=2)
        result[variable] = place
    return result


def _named(text: str) -> tuple[str, str]:
    name, equals, place = text.partition("=")
    if not equals or "://" in name:
        name, place = "", text
    elif not (name.isascii() and name.replace("_", "a").isalnum()):
        raise EarlyError(f"--data {text}: {name} cannot be part of a variable's name", code=2)
    if "://" not in place:
        send = "send a folder of yours there first: trainshed storage cp -r FOLDER gs://BUCKET/PATH"
        raise EarlyError(f"--data {text} is no place in a bucket; write gs://BUCKET/PATH", [send], code=2)
    return name, _place(place, "--data")


# ---- into the job


def placed(body: "Json", options: "SubmitWords") -> "Json":
    """The CustomJob with its places. A file may call its fields in either style."""
    key = words.key_of(body, "jobSpec")
    spec: Json = dict(words.part(body, key))
    if output := options.output or options.job_dir:
        spec[words.key_of(spec, "baseOutputDirectory")] = {"outputUriPrefix": output}
    pools = words.key_of(spec, "workerPoolSpecs")
    args = ["--job-dir", options.job_dir] if options.job_dir else []
    spec[pools] = [_equipped(pool, args, variables(options.data)) for pool in words.parts(spec, pools)]
    return {**body, key: spec}


def _equipped(pool: object, args: list[str], env: dict[str, str]) -> object:
    if not isinstance(pool, dict):
        return pool
    result: Json = dict(pool)  # pyright: ignore[reportUnknownArgumentType]
    for name in ("containerSpec", "pythonPackageSpec"):
        key = words.key_of(result, name)
        if not isinstance(result.get(key), dict):
            continue
        task: Json = dict(result[key])
        if args:
            task["args"] = [*words.parts(task, "args"), *args]
        own = words.parts(task, "env")
        given = {item.get("name") for item in own if isinstance(item, dict)}  # pyright: ignore
        if new := [{"name": name, "value": value} for name, value in env.items() if name not in given]:
            task["env"] = [*new, *own]
        result[key] = task
    return result
