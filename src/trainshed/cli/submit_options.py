"""The options of `submit`, once: a table from which both the quick reader here and click's command are made.

The quick reader knows the plain forms only. What it does not know, or what is wrong, it leaves to click,
which knows all forms and says what is wrong; both make the same `SubmitWords`.
"""

TYPE_CHECKING = False  # the module typing takes longer to import than a job takes to submit
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

TEXT, MANY, COUNT, NUMBER, SPAN, FLAG = "text", "many", "count", "number", "span", "flag"
WATCH, POLICY, NETWORK, FATE = "span or never", "policy", "network", "end or hold"
CHOICES = {POLICY: ("warn", "restart", "fail"), NETWORK: ("private", "none")}
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
IMAGE = "trainshed/python:3"
MACHINE = "n1-standard-4"

# field, names, kind, metavar, help
Row = tuple[str, tuple[str, ...], str, str, str]
OPTIONS: tuple[Row, ...] = (
    (
        "replicas",
        ("--replicas",),
        COUNT,
        "N",
        "How many: the first is pool 0, the others pool 1. [default: 1]",
    ),
    ("machine", ("--machine",), TEXT, "TYPE", f"The machine type of each. [default: {MACHINE}]"),
    ("gpu", ("--gpu", "--accelerator"), TEXT, "TYPE[:COUNT]", "GPUs of each: T4, A100:2, or just a number."),
    ("image", ("--runtime", "--image"), TEXT, "NAME", f"A runtime, or any image. [default: {IMAGE}]"),
    ("requirements", ("--requirements",), TEXT, "FILE", "Packages to install on top of that."),
    ("env", ("--env",), MANY, "KEY=VALUE", "A variable; KEY alone takes its value from here. Repeatable."),
    (
        "secrets",
        ("--secret",),
        MANY,
        "KEY[=VALUE]",
        "The same, and its value is shown to nobody. Repeatable.",
    ),
    (
        "secret_files",
        ("--secret-file",),
        MANY,
        "KEY=NAME",
        "A variable with the path of a file that has the project's secret NAME. Repeatable.",
    ),
    ("name", ("--name",), TEXT, "TEXT", "The display name. [default: the file's own, then the file's name]"),
    ("labels", ("--label",), MANY, "KEY=VALUE", "A label. Repeatable."),
    ("timeout", ("--timeout",), SPAN, "TIME", "End it after this time: 90s, 10m, 2h, 1d. [default: 7d]"),
    ("priority", ("--priority",), NUMBER, "N", "Higher ones start first. [default: 0]"),
    (
        "output",
        ("--output",),
        TEXT,
        "gs://BUCKET/PATH",
        "Where its results go: AIP_MODEL_DIR, AIP_CHECKPOINT_DIR and AIP_TENSORBOARD_LOG_DIR lie there.",
    ),
    (
        "job_dir",
        ("--job-dir",),
        TEXT,
        "gs://BUCKET/PATH",
        "Given to the program as --job-dir; without --output its results go there too.",
    ),
    (
        "data",
        ("--data",),
        MANY,
        "[NAME=]gs://BUCKET/PATH",
        "What it reads, as TRAINSHED_DATA or TRAINSHED_DATA_NAME; has to be there. Repeatable.",
    ),
    (
        "hang_after",
        ("--hang-after",),
        WATCH,
        "TIME",
        "Suspect a hang when nothing moves so long, or never. [default: 20m; of one replica: never]",
    ),
    (
        "exit_hang_after",
        ("--exit-hang-after",),
        WATCH,
        "TIME",
        "... when one replica is done and the others are silent so long, or never. [default: 10m]",
    ),
    ("on_hang", ("--on-hang",), POLICY, "WHAT", "What to do then: warn, restart or fail. [default: warn]"),
    (
        "hold",
        ("--on-failure",),
        FATE,
        "WHAT",
        "Of a job that fails: end, or hold=TIME, which keeps its failed replicas for a look. [default: end]",
    ),
    (
        "network",
        ("--network",),
        NETWORK,
        "WHAT",
        "Of an image: private, the job's own, or none, which also leads nowhere. [default: private]",
    ),
    (
        "module",
        ("-m", "--module"),
        TEXT,
        "PKG.MOD",
        "Run this module, as python -m does, instead of a script.",
    ),
    (
        "folder",
        ("--folder",),
        TEXT,
        "DIR",
        "The folder to pack. [default: the git work tree, or this folder]",
    ),
    ("include", ("--include",), MANY, "PATTERN", "Pack these even if ignored. Repeatable."),
    ("exclude", ("--exclude",), MANY, "PATTERN", "Leave these out, as a line of .gitignore. Repeatable."),
    ("follow", ("-f", "--follow"), FLAG, "", "Print the logs until the job ends, and exit as it did."),
    ("detach", ("--detach",), FLAG, "", "Do not follow: print the id and return at once."),
    ("dry_run", ("--dry-run",), FLAG, "", "Submit nothing: say whether it would start now, else why not."),
    ("yes", ("-y", "--yes"), FLAG, "", "Do not ask before large files are sent."),
    ("as_json", ("--json",), FLAG, "", "Print JSON, for scripts."),
    ("url", ("--url",), TEXT, "URL", "The server's address. [default: the one running here]"),
    ("project", ("--project",), TEXT, "NAME", "The project. [default: TRAINSHED_PROJECT or gcloud's]"),
    (
        "location",
        ("--location", "--region"),
        TEXT,
        "NAME",
        "The location. [default: TRAINSHED_LOCATION or gcloud's]",
    ),
)
FOR_FILES = (
    *("name", "labels", "follow", "detach", "dry_run", "yes", "as_json", "url", "project", "location"),
    *("output", "job_dir", "data", "hold"),
)


class SubmitWords:
    """What a person asked `submit` for; a field that was not said is empty."""

    target: str = ""
    arguments: tuple[str, ...] = ()
    replicas: int = 1
    machine: str = ""
    gpu: str = ""
    image: str = ""
    requirements: str = ""
    env: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    secret_files: tuple[str, ...] = ()
    name: str = ""
    labels: tuple[str, ...] = ()
    timeout: str = ""
    priority: int = 0
    output: str = ""
    job_dir: str = ""
    data: tuple[str, ...] = ()
    hang_after: str = ""
    exit_hang_after: str = ""
    on_hang: str = ""
    hold: str = ""
    network: str = ""
    module: str = ""
    folder: str = ""
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    follow: bool = False
    detach: bool = False
    dry_run: bool = False
    yes: bool = False
    as_json: bool = False
    url: str = ""
    project: str = ""
    location: str = ""

    def __init__(self, given: "Mapping[str, object]") -> None:
        self.given = {field: value for field, value in given.items() if value not in (None, "", (), False)}
        for field, value in self.given.items():
            setattr(self, field, value)

    @property
    def has_places(self) -> bool:
        """Whether it says where data comes from or results go."""
        return bool(self.output or self.job_dir or self.data)

    @property
    def is_file(self) -> bool:
        """Whether the job is described in a YAML file, and not a program to be packed."""
        return self.target == "-" or self.target.lower().endswith((".yaml", ".yml", ".json"))


def split(args: "Sequence[str]") -> tuple[list[str], tuple[str, ...]]:
    """What is ours, and behind the first `--` what is the program's."""
    at = args.index("--") if "--" in args else len(args)
    return list(args[:at]), tuple(args[at + 1 :])


def read(args: "Sequence[str]") -> SubmitWords | None:
    """What the words say; None where click has to be asked."""
    ours, arguments = split(args)
    known = {name: (row[0], row[2]) for row in OPTIONS for name in row[1]}
    given: dict[str, object] = {"arguments": arguments}
    words = iter(ours)
    for word in words:
        name, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        if not word.startswith("-") or word == "-":
            if "target" in given or not word:
                return None
            given["target"] = word
            continue
        option = known.get(name)
        if option is None or (equals and option[1] == FLAG):
            return None
        if not _take(given, option, value if equals else None, words):
            return None
    return SubmitWords(given)


def _take(
    given: dict[str, object], option: tuple[str, str], value: str | None, words: "Iterator[str]"
) -> bool:
    field, kind = option
    if kind == FLAG:
        given[field] = True
        return True
    value = next(words, None) if value is None else value
    if value is None:
        return False
    try:
        result = parsed(kind, value)
    except ValueError:
        return False
    given[field] = (*given.get(field, ()), result) if kind == MANY else result  # pyright: ignore
    return True


def parsed(kind: str, text: str) -> "str | int":
    """A value of its kind. Raises ValueError with a sentence about what is wrong."""
    if kind == SPAN:
        return span(text)
    if kind == WATCH:
        return "0s" if text in ("never", "0", "0s") else span(text)
    if kind == FATE:
        return _hold(text)
    if kind in CHOICES:
        if text not in CHOICES[kind]:
            raise ValueError(f"{text!r} is none of {', '.join(CHOICES[kind])}")
        return text
    if kind in (COUNT, NUMBER):
        sign = text[:1] == "-" and kind == NUMBER
        digits = text[1:] if sign else text
        if not (digits.isascii() and digits.isdecimal()) or (kind == COUNT and not int(digits)):
            raise ValueError(f"{text!r} is not a {'number from 1 up' if kind == COUNT else 'whole number'}")
        return int(text)
    return text


def _hold(text: str) -> str:
    """How long to hold, as the API has it: hold=30m is 1800s."""
    what, equals, length = text.partition("=")
    if text == "end":
        return "0s"
    if what != "hold" or not equals:
        raise ValueError(f"{text!r} is neither end nor hold=TIME, such as hold=30m")
    return span(length)


def span(text: str) -> str:
    """A length of time as the API has it, in seconds: 10m is 600s."""
    number, unit = (text[:-1], text[-1:]) if text[-1:] in UNITS else (text, "s")
    try:
        seconds = float(number) * UNITS[unit]
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < 1e9:
        raise ValueError(f"{text!r} is not a length of time such as 90s, 10m, 2h or 1d")
    return f"{seconds:.9f}".rstrip("0").rstrip(".") + "s"
