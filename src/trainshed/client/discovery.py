"""Where the server is and who we are: from the environment, then from the server's home.

It only reads. A missing file is an answer ("no token"), an unreadable one is an error with its name.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trainshed.client.errors import ClientError

DEFAULT_URL = "http://127.0.0.1:8080"
DEFAULT_PROJECT = "local"
DEFAULT_LOCATION = "us-central1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One server, one project, one location, and by which word each was found (for error messages)."""

    url: str
    url_from: str
    token: str | None
    token_from: str
    project: str
    location: str
    home: Path


def discover(
    *,
    url: str | None = None,
    project: str | None = None,
    location: str | None = None,
    home: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Target:
    """What is given wins, then the environment, then what the server left in its home."""
    env = os.environ if environ is None else environ
    home = home or Path(env.get("TRAINSHED_HOME") or "~/.trainshed").expanduser()
    address, address_from = _address(url, home, env)
    token, token_from = _token(home, env)
    project_names = ("TRAINSHED_PROJECT", "CLOUDSDK_CORE_PROJECT", "GOOGLE_CLOUD_PROJECT")
    return Target(
        url=address.rstrip("/"),
        url_from=address_from,
        token=token,
        token_from=token_from,
        project=project or _first(env, project_names) or DEFAULT_PROJECT,
        location=location or _first(env, ("TRAINSHED_LOCATION", "CLOUDSDK_AI_REGION")) or DEFAULT_LOCATION,
        home=home,
    )


def _first(env: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((env[name] for name in names if env.get(name)), None)


def _address(url: str | None, home: Path, env: Mapping[str, str]) -> tuple[str, str]:
    if url:
        return url, "--url"
    if env.get("TRAINSHED_URL"):
        return env["TRAINSHED_URL"], "TRAINSHED_URL"
    note = home / "server.json"
    text = _read(note)
    if text is None:
        return DEFAULT_URL, "the default"
    import json

    try:
        return str(json.loads(text)["url"]), str(note)
    except (ValueError, KeyError, TypeError) as error:
        raise ClientError(f"{note} is not what a server writes; remove it or give --url") from error


def _token(home: Path, env: Mapping[str, str]) -> tuple[str | None, str]:
    if env.get("TRAINSHED_TOKEN"):
        return env["TRAINSHED_TOKEN"].strip(), "TRAINSHED_TOKEN"
    named = env.get("TRAINSHED_TOKEN_FILE")
    path = Path(named) if named else home / "token"
    text = _read(path)
    if text is None and named:
        raise ClientError(f"TRAINSHED_TOKEN_FILE names {path}, which is not there")
    return (text.strip() or None) if text is not None else None, str(path)


def _read(path: Path) -> str | None:
    try:
        return path.read_text()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ClientError(f"cannot read {path}: {error}") from error
