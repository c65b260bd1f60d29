"""The server's settings: what `trainshed up` accepts, what `python -m trainshed.server` is started with.

One frozen value, read from flags in one place, so that both check the same way. It only parses: it makes no
folder, opens no port, and imports nothing heavy, because every start pays for it.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

_T = TypeVar("_T")
_D = TypeVar("_D")

DEFAULT_HOME = "~/.trainshed"
FITS = ("shrink", "strict")
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
    keep_free: int | None = None  # bytes of the disk; unused runtimes go before it runs lower
    warm: tuple[str, ...] = ()  # runtimes, or INTERPRETER=MODULE,..., kept ready to be forked

    @classmethod
    def from_args(cls, args: Iterable[str], environ: Mapping[str, str] | None = None) -> "Settings":
        """Reads `--flag value` and `--flag=value`; raises SettingsError with a sentence for people."""
        env = os.environ if environ is None else environ
        given: dict[str, str] = {}
        hosts: list[str] = []
        warm: list[str] = []
        queue = list(args)
        while queue:
            flag, equals, value = queue.pop(0).partition("=")
            if flag == "--no-auth" and not equals:
                given[flag] = ""
                continue
            if flag not in _FLAGS:
                raise SettingsError(f"{flag} is not a setting; there are {', '.join((*_FLAGS, '--no-auth'))}")
            if not equals and not queue:
                raise SettingsError(f"{flag} needs a value")
            given[flag] = value if equals else queue.pop(0)
            if flag == "--allowed-host":
                hosts.append(given.pop(flag))
            if flag == "--warm":
                warm.append(_read(given, flag, _warm, ""))
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
            keep_free=_read(given, "--keep-free", parse_size, None),
            warm=tuple(warm),
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
        if self.keep_free is not None:
            args += ["--keep-free", str(self.keep_free)]
        for name in self.warm:
            args += ["--warm", name]
        for host in self.allowed_hosts:
            args += ["--allowed-host", host]
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
    "--keep-free",
    "--warm",
)
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
