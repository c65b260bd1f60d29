"""From what a person asked for to the job the server is asked for: the program, where it starts, its pools.

A job starts where the person stands: its files are a copy of the folder, its working directory the same place
in that copy. So a path that is right for `python train.py` here is right there.
"""

import os
import stat

from trainshed.cli.pack import git_above
from trainshed.cli.submit_options import IMAGE, MACHINE
from trainshed.cli.trouble import EarlyError

TYPE_CHECKING = False  # the module typing takes longer to import than a job takes to submit
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trainshed.cli.submit_options import SubmitWords
    from trainshed.client import Json

SHELLS = {".sh": "sh", ".bash": "bash"}


class SubmittedProgram:
    """What will run: the folder to pack, the place in it to start from, and the words that start it."""

    __slots__ = ("command", "name", "root", "script", "start")

    def __init__(self, options: "SubmitWords") -> None:
        here = _here()
        full = os.path.abspath(options.target) if options.target else ""
        is_folder = bool(full) and os.path.isdir(full)
        if options.folder and full and not is_folder and not os.path.exists(full):
            full = os.path.normpath(os.path.join(here, options.folder, options.target))
        if full and not os.path.exists(full):
            raise EarlyError(f"there is no {options.target}", _near(options.target))
        if is_folder and options.module:
            self.root = _root(options, full, here, full)
        else:
            self.root = _root(options, full or here, here, "")
        start = os.path.relpath(here, self.root)
        self.start = "." if start.startswith("..") else start
        self.script = ""  # the path that must be packed, whatever is ignored
        self.name = options.module.rpartition(".")[2]
        if options.module:
            if full and not is_folder:
                raise EarlyError(
                    "give a script or --module, not both; what is the program's goes behind --", code=2
                )
            self.command = ["python", "-m", options.module]
            return
        if not full:
            raise EarlyError("say what to run: a script, a folder, a YAML file, or --module", code=2)
        self._run(full, options.target, is_folder)

    def _run(self, full: str, called: str, is_folder: bool) -> None:
        path = os.path.relpath(full, os.path.join(self.root, self.start))
        self.name = os.path.basename(full).partition(".")[0] or "job"
        if is_folder:
            if not os.path.isfile(f"{full}/__main__.py"):
                raise EarlyError(
                    f"{called} has no __main__.py, so it is not known what to run in it",
                    ["name a script in it, or a module with --module"],
                )
            self.script = os.path.relpath(f"{full}/__main__.py", self.root)
            self.command = ["python", path]
            return
        self.script = os.path.relpath(full, self.root)
        self.command = _started(full, path if not path.startswith("-") else f"./{path}", called)

    def unused_requirements(self, options: "SubmitWords") -> str:
        """The requirements.txt that lies there and is not asked for; "" where there is none."""
        if options.requirements or self.command[0] != "python":
            return ""
        near = os.path.dirname(os.path.join(self.root, self.script)) if self.script else ""
        for folder in filter(None, (near, _here(), self.root)):
            if os.path.isfile(f"{folder}/requirements.txt"):
                return os.path.relpath(f"{folder}/requirements.txt")
        return ""

    def check(self, options: "SubmitWords") -> None:
        """Raises Trouble with all that can be seen to be wrong before anything is packed or anybody asked."""
        errors: list[EarlyError] = []
        checks: list[tuple[Callable[[str], object], str]] = [(_gpu, options.gpu)] if options.gpu else []
        checks += [(_variable, item) for item in options.env] + [(_secret, item) for item in options.secrets]
        checks += [(_secret_file, item) for item in options.secret_files]
        checks += [(_label, label) for label in options.labels]
        checks += [(requirements, options.requirements)] if options.requirements else []
        if options.has_places:
            from trainshed.cli.places import checks as of_places

            checks += of_places(options)
        for check, text in checks:
            try:
                check(text)
            except EarlyError as error:
                errors.append(error)
        if len(errors) > 1:
            messages = [error.message for error in errors]
            raise EarlyError("some options are wrong", messages, code=errors[0].code)
        if errors:
            raise errors[0]

    def body(self, options: "SubmitWords", code: str) -> "Json":
        """The CustomJob. Raises Trouble for what can be seen to be wrong before anybody is asked."""
        spec: Json = {"workerPoolSpecs": self._pools(options)}
        if code:
            spec["code"] = code
            if self.start != ".":
                spec["workingDirectory"] = self.start
        if options.requirements:
            spec["requirements"] = requirements(options.requirements)
        if options.network:
            spec["network"] = options.network
        scheduling: Json = {}
        if options.timeout:
            scheduling["timeout"] = options.timeout
        if options.priority:
            scheduling["priority"] = options.priority
        if options.hold:
            scheduling["holdOnFailure"] = options.hold
        watch = {
            "after": options.hang_after,
            "exitAfter": options.exit_hang_after,
            "policy": options.on_hang.upper(),
        }
        if any(watch.values()):
            scheduling["hangWatch"] = {field: value for field, value in watch.items() if value}
        if scheduling:
            spec["scheduling"] = scheduling
        body: Json = {"displayName": options.name or self.name, "jobSpec": spec}
        if options.labels:
            body["labels"] = dict(map(_label, options.labels))
        if options.has_places:
            from trainshed.cli.places import placed

            return placed(body, options)
        return body

    def _pools(self, options: "SubmitWords") -> "list[Json]":
        machine: Json = {"machineType": options.machine or MACHINE}
        if options.gpu:
            kind, machine["acceleratorCount"] = _gpu(options.gpu)
            if kind:
                machine["acceleratorType"] = kind
        container: Json = {"imageUri": options.image or IMAGE, "command": self.command}
        if options.arguments:
            container["args"] = list(options.arguments)
        if options.env or options.secrets or options.secret_files:
            secrets = dict(map(_secret, options.secrets))
            files = dict(map(_secret_file, options.secret_files))
            pairs = {**dict(map(_variable, options.env)), **secrets, **files}
            container["env"] = [
                {"name": name, "value": value, **({"secret": True} if name in secrets else {})}
                for name, value in pairs.items()
            ]
        counts = [1, options.replicas - 1] if options.replicas > 1 else [1]
        return [
            {"machineSpec": machine, "replicaCount": count, "containerSpec": container} for count in counts
        ]


def _here() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise EarlyError("the folder you stand in is gone; go to one that is there") from None


def _root(options: "SubmitWords", full: str, here: str, default: str) -> str:
    """The folder to pack: the one that is named, the git work tree, this folder, or the script's own."""
    named = os.path.abspath(options.folder) if options.folder else ""
    if named:
        if not os.path.isdir(named):
            raise EarlyError(f"{options.folder} is not a folder", code=2)
        if full != named and not full.startswith(named.rstrip("/") + "/") and options.target:
            raise EarlyError(f"{options.target} is not in the folder {options.folder}", code=2)
        return named
    own = full if os.path.isdir(full) else os.path.dirname(full)
    root = git_above(own) or default
    if not root:
        root = here if own == here or own.startswith(here.rstrip("/") + "/") else own
        if root in ("/", os.path.expanduser("~")) or os.stat(root).st_mode & stat.S_ISVTX:
            raise EarlyError(
                f"all of {root} would be packed",
                ["put the program into a folder of its own", f"or say that it is meant: --folder {root}"],
            )
    return root


def _started(full: str, path: str, called: str) -> list[str]:
    """The words that start a script. Python's need the runtime's interpreter, whatever line 1 says."""
    ending = os.path.splitext(full)[1].lower()
    if ending in (".py", ".pyw"):
        return ["python", path]
    if ending == ".ipynb":
        from trainshed.cli.notebook import started

        return started(full, path, called)
    if os.access(full, os.X_OK):
        return [path if "/" in path else f"./{path}"]
    if ending in SHELLS:
        return [SHELLS[ending], path]
    raise EarlyError(
        f"{called} is neither a Python script nor a program that may be run",
        [f"make it one with: chmod +x {called}", "a job file ends in .yaml or .yml"],
    )


def requirements(name: str) -> list[str]:
    return list(_requirements(name))


def _requirements(name: str, above: tuple[str, ...] = ()) -> "Iterator[str]":
    """The lines of a requirements file, with those of the files it names by -r in their place."""
    try:
        with open(name, encoding="utf-8") as file:
            lines = file.read().replace("\\\n", "").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise EarlyError(f"cannot read {name}: {getattr(error, 'strerror', None) or error}") from error
    if name in above:
        raise EarlyError(f"{name} names itself by -r")
    for line in lines:
        text = line.partition(" #")[0].strip()
        if not text or text.startswith("#"):
            continue
        word, _, rest = (
            text.replace("=", " ", 1).partition(" ") if text.startswith("--r") else text.partition(" ")
        )
        if word in ("-r", "--requirement"):
            yield from _requirements(os.path.join(os.path.dirname(name), rest.strip()), (*above, name))
        else:
            yield text


def _gpu(text: str) -> tuple[str, int]:
    """The accelerator and how many; "" where only a number was said."""
    kind, _, count = ("", "", text) if is_count(text) else text.partition(":")
    if not (kind or is_count(text)) or (count and not (is_count(count) and int(count))):
        raise EarlyError(f"--gpu {text} is not TYPE, COUNT or TYPE:COUNT", code=2)
    return accelerator(kind) if kind else "", int(count or 1)


def is_count(text: str) -> bool:
    return text.isdecimal() and text.isascii()


def accelerator(called: str) -> str:
    """The accelerator's whole name. What is not known here is left to the server to refuse."""
    name = called.upper().replace("-", "_").replace(" ", "_")
    known = accelerators()
    if name in known:
        return name
    short = {full: full.removeprefix("NVIDIA_").removeprefix("TESLA_") for full in known}
    bare = {full: text.rpartition("_")[0] if text.endswith("GB") else text for full, text in short.items()}
    ways = (
        [full for full in known if short[full] == name],
        [full for full in known if bare[full] == name],
        [full for full in known if f"_{name}_" in f"_{full}_"],
        [full for full in known if name in full],
    )
    meant = next(filter(None, ways), [name])
    if len(meant) > 1:
        raise EarlyError(f"--gpu {called} could mean {', '.join(meant)}: say which", code=2)
    return meant[0]


def accelerators() -> list[str]:
    """The names in the data file, without a parser for all of it: a person waits."""
    with open(f"{os.path.dirname(os.path.dirname(__file__))}/data/machines.toml", encoding="utf-8") as file:
        table = file.read().partition("\n[accelerators]\n")[2].partition("\n\n")[0]
    return [line.partition(" ")[0] for line in table.splitlines()]


def _label(text: str) -> tuple[str, str]:
    return _pair(text, "--label")


def _variable(text: str) -> tuple[str, str]:
    return _pair(_valued(text, "--env"), "--env")


def _secret(text: str) -> tuple[str, str]:
    if text.startswith("="):  # not quoted: what follows may be the secret
        raise EarlyError("--secret needs a name before =", code=2)
    if text and "=" not in text and text not in os.environ:
        return text, f"secret://{text}"  # not known here: the project's secret of that name
    return _pair(_valued(text, "--secret"), "--secret")


def _secret_file(text: str) -> tuple[str, str]:
    key, equals, name = text.partition("=")
    if not (key and equals and name):
        raise EarlyError(f"--secret-file {text} is not KEY=NAME, with the name of a secret", code=2)
    return key, f"secret-file://{name}"


def _pair(text: str, option: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise EarlyError(f"{option} {text} is not KEY=VALUE", code=2)
    return key, value


def _valued(text: str, option: str) -> str:
    if "=" in text or not text:
        return text
    if text not in os.environ:
        raise EarlyError(f"{option} {text}: there is no such variable here; say {text}=VALUE", code=2)
    return f"{text}={os.environ[text]}"


def _near(target: str) -> list[str]:
    """The file that may have been meant."""
    folder, name = os.path.split(target)
    try:
        there = os.listdir(folder or ".")
    except OSError:
        return []
    from difflib import get_close_matches

    return [f"did you mean {os.path.join(folder, match)}?" for match in get_close_matches(name, there, 1)]
