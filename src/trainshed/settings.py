"""The server's settings: what `trainshed up` accepts, what `python -m trainshed.server` is started with.

One frozen value, read from flags in one place, so that both check the same way. It only parses: it makes no
folder, opens no port, and imports nothing heavy, because every start pays for it.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

_T = TypeVar("_T")
_D = TypeVar("_D")

DEFAULT_HOME = "~/.trainshed"
FITS = ("shrink", "strict")
S3_BUCKETS = ("training", "datasets")  # as guides to training from S3 call them
SUBNETS = "10.210.0.0/16"
GIB = 1 << 30
DATABASE_VARIABLE = "TRAINSHED_DATABASE"  # not a flag between processes: everyone can read a process's flags


class SettingsError(ValueError):
    """A setting is wrong; the message says which and what would be right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    host: str = "127.0.0.1"
    port: int = 8080  # 0: any free one
    home: Path = Path(DEFAULT_HOME)
    auth: bool = True
    database: str | None = None  # SQLite under home unless given
    fit: str = "shrink"
    cpus: float | None = None  # all the machine has unless given
    memory: int | None = None  # bytes; all the machine has unless given
    log_quota: int = GIB  # bytes a job
    allowed_hosts: tuple[str, ...] = ()
    runtimes: Path | None = None  # a file of further runtimes
    default_output: str = ""  # below it go the results of jobs that do not say where, each by its id
    keep_free: int | None = None  # bytes of the disk; unused runtimes go before it runs lower
    wheels: Path | None = None  # a folder of packages, in which pip looks first
    offline: bool = False  # pip asks no index
    warm: tuple[str, ...] = ()  # runtimes, or INTERPRETER=MODULE,..., kept ready to be forked
    buckets: Path | None = None  # a file of buckets kept elsewhere
    s3: bool = False  # an S3 store is run beside the server
    s3_buckets: tuple[str, ...] = S3_BUCKETS  # what it holds
    registry_auth: Path | None = None  # a file of credentials for registries, as `docker login` writes it
    engine: str = "auto"  # the socket of a container engine; none: no containers
    image_retention: timedelta | None = None  # unused images that were pulled go after it
    subnets: str = SUBNETS  # addresses for the networks of jobs in containers

    @classmethod
    def from_args(cls, args: Iterable[str], environ: Mapping[str, str] | None = None) -> "Settings":
        """Reads `--flag value` and `--flag=value`; raises SettingsError with a sentence for people."""
        env = os.environ if environ is None else environ
        given: dict[str, str] = {}
        hosts: list[str] = []
        warm: list[str] = []
        s3_buckets: list[str] = []
        queue = list(args)
        while queue:
            flag, equals, value = queue.pop(0).partition("=")
            if flag in _SWITCHES and not equals:
                given[flag] = ""
                continue
            if flag not in _FLAGS:
                raise SettingsError(f"{flag} is not a setting; there are {', '.join((*_FLAGS, *_SWITCHES))}")
            if not equals and not queue:
                raise SettingsError(f"{flag} needs a value")
            given[flag] = value if equals else queue.pop(0)
            if flag == "--allowed-host":
                hosts.append(given.pop(flag))
            if flag == "--warm":
                warm.append(_read(given, flag, _warm, ""))
            if flag == "--s3-bucket":
                s3_buckets.append(_read(given, flag, _bucket, ""))
        settings = cls(
            host=given.get("--host", "127.0.0.1"),
            port=_read(given, "--port", _port, 8080),
            home=Path(given.get("--home") or env.get("TRAINSHED_HOME") or DEFAULT_HOME)
            .expanduser()
            .absolute(),
            auth="--no-auth" not in given,
            database=given.get("--database") or env.get(DATABASE_VARIABLE) or None,
            fit=_read(given, "--fit", _fit, "shrink"),
            cpus=_read(given, "--cpus", _cpus, None),
            memory=_read(given, "--memory", parse_size, None),
            log_quota=_read(given, "--log-quota", parse_size, GIB),
            allowed_hosts=tuple(hosts),
            runtimes=_file(given.get("--runtimes") or env.get("TRAINSHED_RUNTIMES")),
            default_output=_read(given, "--default-output", _output, ""),
            keep_free=_read(given, "--keep-free", parse_size, None),
            wheels=_folder(given.get("--wheels") or env.get("TRAINSHED_WHEELS")),
            offline="--offline" in given,
            warm=tuple(warm),
            buckets=_file(given.get("--buckets") or env.get("TRAINSHED_BUCKETS")),
            s3="--s3" in given or bool(s3_buckets),
            s3_buckets=tuple(dict.fromkeys(s3_buckets)) or S3_BUCKETS,
            registry_auth=_file(given.get("--registry-auth") or env.get("TRAINSHED_REGISTRY_AUTH")),
            engine=_engine(given.get("--engine") or env.get("TRAINSHED_ENGINE") or "auto"),
            image_retention=_read(given, "--image-retention", _days, None),
            subnets=_read(given, "--subnets", _subnets, SUBNETS),
        )
        if not settings.auth and not is_loopback(settings.host):
            raise SettingsError(
                f"--no-auth lets anyone in, so it needs a loopback address, and {settings.host} is none: "
                "leave out --no-auth, or use --host 127.0.0.1"
            )
        return settings

    def to_args(self) -> list[str]:
        """The flags that give this value back, the database excepted: that goes by DATABASE_VARIABLE."""
        args = ["--host", self.host, "--port", str(self.port), "--home", str(self.home), "--fit", self.fit]
        args += ["--log-quota", str(self.log_quota)]
        if not self.auth:
            args.append("--no-auth")
        if self.cpus is not None:
            args += ["--cpus", str(self.cpus)]
        if self.memory is not None:
            args += ["--memory", str(self.memory)]
        if self.runtimes is not None:
            args += ["--runtimes", str(self.runtimes)]
        if self.default_output:
            args += ["--default-output", self.default_output]
        if self.keep_free is not None:
            args += ["--keep-free", str(self.keep_free)]
        if self.wheels is not None:
            args += ["--wheels", str(self.wheels)]
        if self.offline:
            args.append("--offline")
        for name in self.warm:
            args += ["--warm", name]
        for host in self.allowed_hosts:
            args += ["--allowed-host", host]
        if self.buckets is not None:
            args += ["--buckets", str(self.buckets)]
        if self.s3:
            args += ["--s3", *(word for name in self.s3_buckets for word in ("--s3-bucket", name))]
        if self.registry_auth is not None:
            args += ["--registry-auth", str(self.registry_auth)]
        if self.engine != "auto":
            args += ["--engine", self.engine]
        if self.image_retention is not None:
            args += ["--image-retention", f"{self.image_retention / timedelta(days=1)!r}d"]
        if self.subnets != SUBNETS:
            args += ["--subnets", self.subnets]
        return args


_FLAGS = (
    "--host",
    "--port",
    "--home",
    "--database",
    "--fit",
    "--cpus",
    "--memory",
    "--log-quota",
    "--allowed-host",
    "--runtimes",
    "--default-output",
    "--keep-free",
    "--wheels",
    "--warm",
    "--buckets",
    "--s3-bucket",
    "--registry-auth",
    "--engine",
    "--image-retention",
    "--subnets",
)
_SWITCHES = ("--no-auth", "--offline", "--s3")
_UNITS = {
    "": 1,
    "B": 1,
    "K": 1 << 10,
    "KI": 1 << 10,
    "KIB": 1 << 10,
    "KB": 10**3,
    "M": 1 << 20,
    "MI": 1 << 20,
    "MIB": 1 << 20,
    "MB": 10**6,
    "G": 1 << 30,
    "GI": 1 << 30,
    "GIB": 1 << 30,
    "GB": 10**9,
    "T": 1 << 40,
    "TI": 1 << 40,
    "TIB": 1 << 40,
    "TB": 10**12,
}


def parse_size(text: str) -> int:
    """Bytes from `8GiB`, `500MB`, `1.5G` or a plain number."""
    number = text.strip().rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    unit = _UNITS.get(text.strip()[len(number) :].upper())
    try:
        size = int(float(number) * unit) if unit else 0
    except (ValueError, OverflowError):
        size = 0
    if size <= 0:
        raise SettingsError(f"{text!r} is not a size; write 8GiB, 500MB or a number of bytes")
    return size


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address. Of names, only localhost is trusted to be so."""
    if host == "localhost":
        return True
    import ipaddress

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _read(given: Mapping[str, str], flag: str, parse: Callable[[str], _T], default: _D) -> _T | _D:
    if flag not in given:
        return default
    try:
        return parse(given[flag])
    except SettingsError as error:
        raise SettingsError(f"{flag}: {error}") from error


def _file(text: str | None) -> Path | None:
    return Path(text).expanduser().absolute() if text else None


def _folder(text: str | None) -> Path | None:
    folder = _file(text)
    if folder is not None and not folder.is_dir():
        raise SettingsError(f"--wheels: {folder} is no folder; put wheels or source distributions into one")
    return folder


def _warm(text: str) -> str:
    """A runtime by name, or an interpreter with what it is to import."""
    python, equals, modules = text.partition("=")
    named = all(part.isidentifier() for part in modules.replace(",", ".").split("."))
    if not python or (equals and not (named and python.startswith("/"))):
        raise SettingsError(
            f"{text!r} is neither a runtime, such as trainshed/pytorch, nor an interpreter and the modules "
            "to import, such as /srv/venv/bin/python=torch,numpy"
        )
    return text


def _bucket(text: str) -> str:
    name = text.removeprefix("s3://").rstrip("/")
    letters = name.replace("-", "").replace(".", "")
    if not (3 <= len(name) <= 63 and letters.isascii() and letters.isalnum() and letters == letters.lower()):
        raise SettingsError(f"{text!r} is not a bucket's name: 3 to 63 small letters, digits, '-' or '.'")
    return name


def _engine(text: str) -> str:
    """auto, none, or the path of a socket."""
    path = text.removeprefix("unix://")
    if path not in ("auto", "none") and not path.startswith("/"):
        raise SettingsError(
            f"--engine: {text!r} is neither auto, none nor a socket of this machine, such as "
            "/run/podman/podman.sock"
        )
    return path


def _subnets(text: str) -> str:
    import ipaddress

    try:
        found = ipaddress.IPv4Network(text)
    except ValueError:
        found = None
    if found is None or not found.is_private or found.prefixlen > 24:
        raise SettingsError(f"{text!r} is no range of private addresses, /24 or larger; write {SUBNETS}")
    return text


def _days(text: str) -> timedelta:
    try:
        days = float(text.strip().removesuffix("d"))
    except ValueError:
        days = 0
    if not 0 < days <= 36_500:
        raise SettingsError(f"{text!r} is no number of days; write 30d")
    return timedelta(days=days)


def _output(text: str) -> str:
    scheme, mark, rest = text.partition("://")
    if not (mark and scheme in ("gs", "s3") and rest.strip("/")):
        raise SettingsError(f"{text!r} is no place in a bucket; write gs://BUCKET/PATH")
    return text.rstrip("/")


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) < 1 << 16):
        raise SettingsError(f"{text!r} is not a port; it is a number from 1 to 65535, or 0 for any free one")
    return int(text)


def _fit(text: str) -> str:
    if text not in FITS:
        raise SettingsError(f"{text!r} is neither {' nor '.join(FITS)}")
    return text


def _cpus(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0
    if not 0 < number < float("inf"):
        raise SettingsError(f"{text!r} is not a number of CPUs; write 4 or 0.5")
    return number
