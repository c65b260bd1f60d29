"""Where pip looks on this machine, as variables that hold inside a container too.

The server's pip may be told by variables and by its configuration files: both are read here and put together
as pip would. Only what says where packages come from is taken along. Folders of this machine are shown inside
at their own paths, single files (certificates, constraints) at ours. Nobody is asked, and nothing is kept.
"""

import contextlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

_PLACES = ("index-url", "extra-index-url", "find-links")
_FILES = ("cert", "client-cert", "constraint")
_PLAIN = (
    *("no-index", "trusted-host", "proxy", "timeout", "default-timeout", "retries", "pre"),
    *("prefer-binary", "only-binary", "no-binary"),
)
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
_AUTHORITIES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
_SECTIONS = ("global", "install")  # the later wins


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexes:
    env: Mapping[str, str]
    shown: tuple[tuple[str, str], ...] = ()  # paths here and inside
    addresses: tuple[str, ...] = ()
    secrets: frozenset[str] = frozenset()  # never shown to anybody


def config_files(environ: Mapping[str, str], prefix: str) -> list[Path]:
    """Pip's configuration files, in its order: of later ones each line wins."""
    named = environ.get("PIP_CONFIG_FILE", "")
    if named == os.devnull:
        return []
    home = Path(environ.get("HOME") or "/")
    own = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    machine = [Path(part) / "pip/pip.conf" for part in environ.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":")]
    user = [home / ".pip/pip.conf", own / "pip/pip.conf"]
    last = [Path(prefix) / "pip.conf", *([Path(named)] if named else [])]
    return [*machine, Path("/etc/pip.conf"), *user, *last]


def read_files(files: Iterable[Path]) -> dict[str, str]:
    """The settings in the files, by the long names of pip's options. It blocks."""
    texts: list[str] = []
    for file in files:
        with contextlib.suppress(OSError, UnicodeDecodeError):
            texts.append(file.read_text(encoding="utf-8"))
    if not texts:
        return {}
    import configparser  # a server starts without

    values: dict[str, dict[str, str]] = {section: {} for section in _SECTIONS}
    for text in texts:
        parser = configparser.RawConfigParser()
        try:
            parser.read_string(text)
        except configparser.Error:
            continue
        for section in _SECTIONS:
            if parser.has_section(section):
                values[section] |= {key.replace("_", "-"): value for key, value in parser.items(section)}
    return values["global"] | values["install"]


def indexes(configured: Mapping[str, str], environ: Mapping[str, str], inside: str) -> Indexes:
    """Combine the settings of the files with the variables, which win."""
    settings = dict(configured)
    for name, value in environ.items():
        if name.startswith("PIP_") and value:
            settings[name[4:].lower().replace("_", "-")] = value
    if trusted := [environ[name] for name in _AUTHORITIES if environ.get(name)]:
        settings.setdefault("cert", trusted[0])
    env: dict[str, str] = {}
    shown: dict[str, str] = {}
    addresses: list[str] = []
    for key in _PLAIN:
        if key in settings:
            env[_variable(key)] = " ".join(settings[key].split())
    for key in _PLACES:
        words = settings.get(key, "").split()
        addresses += [word for word in words if "://" in word and not word.startswith("file:")]
        shown |= {path: path for word in words if (path := _folder(word))}
        if words:
            env[_variable(key)] = " ".join(words)
    for key in _FILES:
        path = settings.get(key, "").strip()
        if path and Path(path).is_file():
            shown[os.path.realpath(path)] = env[_variable(key)] = f"{inside}/{key}"
    for name in (*PROXIES, *map(str.lower, PROXIES)):
        if environ.get(name):
            env[name] = environ[name]
    urls = [*addresses, *(word for value in env.values() for word in value.split() if "://" in word)]
    secrets = frozenset(word for url in urls for word in _secrets(url))
    return Indexes(env=env, shown=tuple(shown.items()), addresses=tuple(addresses), secrets=secrets)


def _variable(key: str) -> str:
    return f"PIP_{key.upper().replace('-', '_')}"


def _folder(word: str) -> str:
    """The folder of this machine that is meant; empty where none is."""
    path = unquote(urlsplit(word).path) if word.startswith("file:") else word
    return path.rstrip("/") if path.startswith("/") and Path(path).is_dir() else ""


def _secrets(url: str) -> Iterable[str]:
    """Of http://USER:PASSWORD@HOST the password; a name alone may be a token, and is one too."""
    try:
        place = urlsplit(url)
        secret = place.password or place.username
    except ValueError:
        return ()
    return tuple({secret, unquote(secret)}) if secret else ()
