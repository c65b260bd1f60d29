"""Where the server is and who we are: from the environment, then from the server's home.

It only reads. A missing file is an answer ("no token"), an unreadable one is an error with its name.
"""

import os

from trainshed.client.errors import ClientError

TYPE_CHECKING = False  # the module typing takes longer to import than a job takes to submit
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

DEFAULT_URL = "http://127.0.0.1:8080"
DEFAULT_PROJECT = "local"
DEFAULT_LOCATION = "us-central1"
LOGIN = "login.json"  # in the home: the server and the token of `trainshed login`
SERVER_VARIABLES = ("TRAINSHED_URL", "TRAINSHED_TOKEN", "TRAINSHED_TOKEN_FILE", "TRAINSHED_CA")


class Target:
    """One server, one project, one location, and by which word each was found (for error messages)."""

    __slots__ = ("ca", "folder", "location", "project", "token", "token_from", "url", "url_from")

    def __init__(
        self,
        folder: str,
        address: tuple[str, str],
        token: tuple[str | None, str],
        project: str,
        location: str,
        ca: str = "",
    ) -> None:
        self.folder = folder
        self.ca = ca  # a file with the certificate of who signs for the server
        self.url, self.url_from = address
        self.token, self.token_from = token
        self.project = project
        self.location = location

    @property
    def home(self) -> "Path":
        from pathlib import Path

        return Path(self.folder)


def discover(
    *,
    url: str | None = None,
    project: str | None = None,
    location: str | None = None,
    home: "Path | str | None" = None,
    environ: "Mapping[str, str] | None" = None,
) -> Target:
    """What is given wins, then the environment, then what the server left in its home.

    With a `home`, the server of that home is meant, wherever variables point.
    """
    env = os.environ if environ is None else environ
    if home:
        env = {name: value for name, value in env.items() if name not in SERVER_VARIABLES}
    folder = str(home or os.path.expanduser(env.get("TRAINSHED_HOME") or "~/.trainshed"))
    login = {} if home else _login(folder)
    address, address_from = _address(url, folder, env, login)
    is_login = bool(login) and address == login["url"] and address_from != "TRAINSHED_URL"
    project_names = ("TRAINSHED_PROJECT", "CLOUDSDK_CORE_PROJECT", "GOOGLE_CLOUD_PROJECT")
    return Target(
        folder,
        (address.rstrip("/"), address_from),
        _token(folder, env, login if is_login else {}),
        project
        or _first(env, project_names)
        or (login.get("project") if is_login else "")
        or DEFAULT_PROJECT,
        location or _first(env, ("TRAINSHED_LOCATION", "CLOUDSDK_AI_REGION")) or DEFAULT_LOCATION,
        _authority(address, folder, env),
    )


def _first(env: "Mapping[str, str]", names: tuple[str, ...]) -> str | None:
    return next((env[name] for name in names if env.get(name)), None)


def _login(home: str) -> "dict[str, str]":
    """What `trainshed login` wrote; empty where nobody has signed in."""
    path = f"{home}/{LOGIN}"
    text = _read(path)
    if text is None:
        return {}
    from trainshed.client.notation import loads

    try:
        login = loads(text)
        return {
            "url": str(login["url"]),
            "token": str(login["token"]),
            "project": str(login.get("project", "")),
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ClientError(f"{path} is not what a login writes; run: trainshed login") from error


def _address(
    url: str | None, home: str, env: "Mapping[str, str]", login: "Mapping[str, str]"
) -> tuple[str, str]:
    if url:
        return url, "--url"
    if env.get("TRAINSHED_URL"):
        return env["TRAINSHED_URL"], "TRAINSHED_URL"
    if login:
        return login["url"], f"{home}/{LOGIN}"
    note = f"{home}/server.json"
    text = _read(note)
    if text is None:
        return DEFAULT_URL, "the default"
    from trainshed.client.notation import loads

    try:
        return str(loads(text)["url"]), note
    except (ValueError, KeyError, TypeError) as error:
        raise ClientError(f"{note} is not what a server writes; remove it or give --url") from error


def _token(home: str, env: "Mapping[str, str]", login: "Mapping[str, str]") -> tuple[str | None, str]:
    if env.get("TRAINSHED_TOKEN"):
        return env["TRAINSHED_TOKEN"].strip(), "TRAINSHED_TOKEN"
    named = env.get("TRAINSHED_TOKEN_FILE")
    if login and not named:
        return login["token"], f"{home}/{LOGIN}"
    path = named or f"{home}/token"
    text = _read(path)
    if text is None and named:
        raise ClientError(f"TRAINSHED_TOKEN_FILE names {path}, which is not there")
    return (text.strip() or None) if text is not None else None, path


def _authority(url: str, home: str, env: "Mapping[str, str]") -> str:
    """The file that is named, or the one of the server's home; empty where there is none."""
    if not url.lower().startswith("https:"):
        return ""
    own = f"{home}/tls/own/ca.pem"
    return env.get("TRAINSHED_CA") or (own if os.access(own, os.R_OK) else "")


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ClientError(f"cannot read {path}: {error}") from error
