"""How each kind of setting is read from text. Used by the table in `settings/table.py`.

Each reader raises SettingsError with the value and what would be right; the caller says where it was written.
Nothing is made or opened here.
"""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

HERE = ("needed", "last", "first", "none")
FITS = ("shrink", "strict")
LEAST = 16  # processes and threads of a replica: with fewer not even a shell and what holds it run
SUBNETS = "10.210.0.0/16"
LAST_USER = (1 << 32) - 2  # the number after it means nobody at all
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
OBSTACLES = (
    "STARTING",
    "UNSCHEDULABLE",
    "SCALING_UP",
    "QUOTA_EXCEEDED",
    "WAITS_IN_CLUSTER_QUEUE",
    "CLUSTER_QUEUE_UNUSABLE",
    "CREATION_REFUSED",
    "IMAGE_UNAVAILABLE",
    "CONFIG_MISSING",
    "MOUNT_FAILED",
    "LAUNCH_FAILED",
)  # the reasons for which replicas do not start
_LONGEST = 100 * 365 * 86400  # seconds
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_YES, _NO = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


class SettingsError(ValueError):
    """A setting is wrong; the message says which and what would be right."""


def parse_size(text: str, *, least: int = 1) -> int:
    """Bytes from `8GiB`, `500MB`, `1.5G` or a plain number."""
    number = text.strip().rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    unit = _UNITS.get(text.strip()[len(number) :].upper())
    try:
        size = int(float(number) * unit) if unit else -1
    except (ValueError, OverflowError):
        size = -1
    if size < least:
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


def switch(text: str) -> bool:
    word = text.strip().lower()
    if word not in (*_YES, *_NO):
        raise SettingsError(f"{text!r} is neither true nor false")
    return word in _YES


def place(text: str) -> Path:
    """A path, whole: what reads it may stand elsewhere."""
    return Path(text).expanduser().absolute()


def folder(text: str) -> Path:
    path = place(text)
    if not path.is_dir():
        raise SettingsError(f"{path} is no folder; put wheels or source distributions into one")
    return path


def warm(text: str) -> str:
    """A runtime by name, or an interpreter with what it is to import."""
    python, equals, modules = text.partition("=")
    named = all(part.isidentifier() for part in modules.replace(",", ".").split("."))
    if not python or (equals and not (named and python.startswith("/"))):
        raise SettingsError(
            f"{text!r} is neither a runtime, such as trainshed/pytorch, nor an interpreter and the modules "
            "to import, such as /srv/venv/bin/python=torch,numpy"
        )
    return text


def bucket(text: str) -> str:
    name = text.removeprefix("s3://").rstrip("/")
    letters = name.replace("-", "").replace(".", "")
    if not (3 <= len(name) <= 63 and letters.isascii() and letters.isalnum() and letters == letters.lower()):
        raise SettingsError(f"{text!r} is not a bucket's name: 3 to 63 small letters, digits, '-' or '.'")
    return name


def host(text: str) -> str:
    name, colon, number = text.partition(":")
    letters = name.replace("-", "").replace(".", "")
    if not (letters.isascii() and letters.isalnum()) or (colon and not port(number)):
        raise SettingsError(f"{text!r} is not a host; write packages.example or packages.example:8080")
    return text.lower()


def engine(text: str) -> str:
    """auto, none, or the path of a socket."""
    path = text.removeprefix("unix://")
    if path not in ("auto", "none") and not path.startswith("/"):
        raise SettingsError(
            f"{text!r} is neither auto, none nor a socket of this machine, such as /run/podman/podman.sock"
        )
    return path


def here(text: str) -> str:
    if text not in HERE:
        raise SettingsError(f"{text!r} is none of {', '.join(HERE)}")
    return text


def namespace(text: str) -> str:
    letters = text.replace("-", "a")
    if not (letters.isascii() and letters.isalnum() and text == text.lower().strip("-")) or len(text) > 63:
        raise SettingsError(
            f"{text!r} is no namespace of Kubernetes: it takes small letters, digits and dashes"
        )
    return text


def queue(text: str) -> str:
    letters = text.replace("-", "a").replace(".", "a")
    if not (letters.isascii() and letters.isalnum() and text == text.lower().strip("-.")) or len(text) > 63:
        raise SettingsError(f"{text!r} is no queue of Kueue: it takes small letters, digits, dashes and dots")
    return text


def give_up(text: str) -> str:
    """A reason for which replicas do not start, and how long that is borne."""
    patience_of(text)
    return text


def patience_of(text: str) -> tuple[str, timedelta]:
    """The word of the reason, and the time."""
    reason, _, length = text.partition("=")
    unit = _SECONDS.get(length[-1:])
    try:
        seconds = float(length[:-1]) * (unit or 0)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < _LONGEST or reason not in OBSTACLES:
        known = ", ".join(OBSTACLES)
        raise SettingsError(
            f"{text!r} is no reason with a time such as UNSCHEDULABLE=2h (s, m, h or d); reasons: {known}"
        )
    return reason, timedelta(seconds=seconds)


def run_as(text: str) -> str:
    """A user by name or number, or the first and the last number of a range. It need not exist."""
    first, dash, last = text.partition("-")
    if not (first.isascii() and first.isdigit()):
        letters = text.rstrip("$").replace("-", "").replace("_", "").replace(".", "")
        if not (letters.isascii() and letters.isalnum()):
            raise SettingsError(
                f"{text!r} is no user; write a name, a number, or a range such as 200000-200999"
            )
        return text
    least, most = int(first), int(last) if last.isascii() and last.isdigit() else -1 if dash else int(first)
    if least < 1 or most > LAST_USER or (dash and most <= least):
        what = "no range of users of jobs" if dash else "no user of jobs"
        raise SettingsError(
            f"{text!r} is {what}: numbers go from 1, as 0 is root, to {LAST_USER}, "
            "and the last of a range is larger than the first, as in 200000-200999"
        )
    return text


def subnets(text: str) -> str:
    import ipaddress

    try:
        network = ipaddress.IPv4Network(text)
    except ValueError:
        network = None
    if network is None or not network.is_private or network.prefixlen > 24:
        raise SettingsError(f"{text!r} is no range of private addresses, /24 or larger; write {SUBNETS}")
    return text


def network(text: str) -> str:
    """An address or a network of either kind."""
    import ipaddress

    try:
        ipaddress.ip_network(text)
    except ValueError as error:
        raise SettingsError(
            f"{text!r} is neither an address nor a network; write 10.0.0.7 or 10.0.0.0/8"
        ) from error
    return text


@dataclass(frozen=True, slots=True)
class MailServer:
    host: str
    port: int
    is_tls: bool  # from the first byte
    user: str = ""


def smtp(text: str) -> str:
    mail_server(text)
    return text


def mail_server(text: str) -> MailServer:
    """Reads smtp://ada@mail.example:587, and smtps:// for TLS from the first byte."""
    from urllib.parse import unquote, urlsplit

    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        parts, host, port = urlsplit(""), "", None
    if parts.scheme not in ("smtp", "smtps") or not host or parts.path.strip("/") or parts.query:
        shape = "smtp://USER@HOST:587 or smtps://HOST"
        raise SettingsError(f"it is no mail server; write {shape}, and a password into a file")
    if parts.password is not None:
        raise SettingsError(
            "a password is not written here, where others may read it; put it into a file and give "
            "--smtp-password-file"
        )
    is_tls = parts.scheme == "smtps"
    return MailServer(host, port or (465 if is_tls else 587), is_tls, unquote(parts.username or ""))


def mail_address(text: str) -> str:
    name, at, domain = text.rpartition("@")
    fits = text.isascii() and text.isprintable() and not set(text) & set(' ,;<>"()')
    if not (fits and at and name and "@" not in name and domain.strip(".")) or "=" in domain:
        raise SettingsError(f"{text!r} is no mail address; write trainshed@example.com")
    return text


def web_address(text: str) -> str:
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(text)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
        raise SettingsError(f"{text!r} is no address of a server; write https://trainshed.example.com")
    return text.rstrip("/")


def issuer(text: str) -> str:
    """As the provider writes it: a slash at the end counts."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(text)
        host = parts.hostname or ""
    except ValueError:
        parts, host = urlsplit(""), ""
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))
    if not (is_safe and host) or parts.query or parts.fragment or parts.username or not text.isprintable():
        raise SettingsError(
            f"{text!r} is no issuer of OpenID Connect; write https://accounts.google.com or "
            "https://keycloak.example.com/realms/team, or http:// where it runs on this machine"
        )
    return text


def title(text: str) -> str:
    if not text.isprintable() or len(text) > 60:
        raise SettingsError(f"{text!r} is no name for people; write at most 60 printable characters")
    return text


def word(text: str) -> str:
    """A claim or a scope: some providers name them by addresses."""
    letters = text
    for mark in "._:/-":
        letters = letters.replace(mark, "a")
    if not (letters.isascii() and letters.isalnum()):
        raise SettingsError(f"{text!r} is not one word of letters, digits, '.', '_', ':', '/' and '-'")
    return text


def days(text: str) -> timedelta:
    try:
        number = float(text.strip().removesuffix("d"))
    except ValueError:
        number = 0
    if not 0 < number <= 36_500:
        raise SettingsError(f"{text!r} is no number of days; write 30d")
    return timedelta(days=number)


def output(text: str) -> str:
    scheme, mark, rest = text.partition("://")
    if not (mark and scheme in ("gs", "s3") and rest.strip("/")):
        raise SettingsError(f"{text!r} is no place in a bucket; write gs://BUCKET/PATH")
    return text.rstrip("/")


def port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) < 1 << 16):
        raise SettingsError(f"{text!r} is not a port; it is a number from 1 to 65535, or 0 for any free one")
    return int(text)


def processes(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10 and (int(text) == 0 or int(text) >= LEAST)):
        raise SettingsError(
            f"{text!r} is not a number of processes and threads; write {LEAST} or more, or 0 for no limit"
        )
    return int(text)


def fit(text: str) -> str:
    if text not in FITS:
        raise SettingsError(f"{text!r} is neither {' nor '.join(FITS)}")
    return text


def cpus(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0
    if not 0 < number < float("inf"):
        raise SettingsError(f"{text!r} is not a number of CPUs; write 4 or 0.5")
    return number
