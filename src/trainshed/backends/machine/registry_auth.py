"""Credentials for private registries, from the files in which Docker and Podman keep them.

The backends of containers and of clusters read them anew for each call, so a `podman login` counts at once.
They leave this module for an engine or a registry only: no error and no representation shows them.
"""

import base64
import binascii
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from trainshed.core.supplies.image import HUB, Reference, parse

_HUB_KEYS = ("https://index.docker.io/v1/", "index.docker.io", "registry-1.docker.io")
_HELPER_TIME = 20.0  # seconds


@dataclass(frozen=True, slots=True)
class Credentials:
    user: str = field(repr=False, default="")
    password: str = field(repr=False, default="")
    token: str = field(repr=False, default="")  # an identity token, in place of both

    def as_fields(self, registry: str) -> dict[str, str]:
        if self.token:
            return {"identitytoken": self.token, "serveraddress": registry}
        return {"username": self.user, "password": self.password, "serveraddress": registry}


class RegistryAuth:
    """Reads the files in this order: ours, Podman's, Docker's."""

    def __init__(self, own: Path | None = None, environ: Mapping[str, str] | None = None) -> None:
        self._own = own
        self._environ = os.environ if environ is None else environ

    def header(self, image: str) -> dict[str, str]:
        """For a pull or push of that image. Blocks: reads files, and may run a helper."""
        reference = parse(image)
        credentials = self.credentials(reference)
        if credentials is None:
            return {}
        return {"X-Registry-Auth": _encode(credentials.as_fields(reference.domain))}

    def credentials(self, reference: Reference) -> Credentials | None:
        """For its registry; None where there are none. Blocks as `header` does."""
        for file in self._files():
            if (credentials := _credentials_for(file, reference.domain, reference.name)) is not None:
                return credentials
        return None

    def headers(self) -> dict[str, str]:
        """For a build, which may pull from any of the registries."""
        known: dict[str, dict[str, str]] = {}
        for file in self._files():
            for key in _registries(file):
                credentials = _credentials_for(file, _domain(key), _domain(key)) if key not in known else None
                if credentials is not None:
                    known[key] = credentials.as_fields(key)
        return {"X-Registry-Config": _encode(known)} if known else {}

    def _files(self) -> Iterator[Mapping[str, Any]]:
        for path in self._places():
            try:
                text = path.read_bytes()
                content: object = json.loads(text)
            except (OSError, ValueError):
                continue
            if isinstance(content, dict):
                yield cast("Mapping[str, Any]", content)

    def _places(self) -> Iterator[Path]:
        env = self._environ
        home = Path(env.get("HOME") or "/nonexistent")
        if self._own is not None:
            yield self._own
        if env.get("REGISTRY_AUTH_FILE"):
            yield Path(env["REGISTRY_AUTH_FILE"])
        if env.get("XDG_RUNTIME_DIR"):
            yield Path(env["XDG_RUNTIME_DIR"], "containers", "auth.json")
        yield Path(f"/run/containers/{os.getuid()}/auth.json")
        yield Path(env.get("XDG_CONFIG_HOME") or home / ".config", "containers", "auth.json")
        yield Path(env.get("DOCKER_CONFIG") or home / ".docker", "config.json")


def credentials_in(text: str, reference: Reference) -> Credentials | None:
    """Those in the text of such a file that somebody else has written: it cannot name helpers to be run."""
    try:
        content: object = json.loads(text)
    except ValueError:
        return None
    auths = _mapping(_mapping(content).get("auths"))
    return _credentials_for({"auths": auths}, reference.domain, reference.name)


def _credentials_for(file: Mapping[str, Any], domain: str, name: str) -> Credentials | None:
    """The longest matching entry: Podman allows entries for parts of a registry."""
    helper = _mapping(file.get("credHelpers")).get(domain) or file.get("credsStore")
    if helper and (result := _from_helper(str(helper), domain)) is not None:
        return result
    auths = {_domain(key): _mapping(value) for key, value in _mapping(file.get("auths")).items()}
    at = name
    while at:
        if (entry := auths.get(at)) is not None and (result := _entry(entry)) is not None:
            return result
        at = at.rpartition("/")[0]
    return None


def _entry(entry: Mapping[str, Any]) -> Credentials | None:
    if entry.get("identitytoken"):
        return Credentials(token=str(entry["identitytoken"]))
    if entry.get("username"):
        return Credentials(str(entry["username"]), str(entry.get("password", "")))
    try:
        text = base64.b64decode(str(entry.get("auth", ""))).decode()
    except (binascii.Error, ValueError):
        return None
    user, colon, password = text.partition(":")
    return Credentials(user, password.rstrip("\0")) if colon and user else None


def _from_helper(helper: str, domain: str) -> Credentials | None:
    """The answer of docker-credential-HELPER; None where it has none, as for a public image."""
    if not helper.replace("-", "").replace("_", "").isalnum():
        return None
    server = _HUB_KEYS[0] if domain == HUB else domain
    try:
        done = subprocess.run(
            [f"docker-credential-{helper}", "get"],
            input=server.encode(),
            capture_output=True,
            timeout=_HELPER_TIME,
            check=True,
        )
        answer = _mapping(json.loads(done.stdout))
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    user, secret = str(answer.get("Username", "")), str(answer.get("Secret", ""))
    if not secret:
        return None
    return Credentials(token=secret) if user == "<token>" else Credentials(user, secret)


def _registries(file: Mapping[str, Any]) -> Iterator[str]:
    for key in (*_mapping(file.get("auths")), *_mapping(file.get("credHelpers"))):
        if "/" not in _domain(key):
            yield key


def _domain(key: str) -> str:
    """The registry, or part of one, that a key names; old files have whole URLs."""
    if key in _HUB_KEYS:
        return HUB
    scheme, mark, rest = key.partition("://")
    return rest.partition("/")[0] if mark and scheme in ("http", "https") else key.rstrip("/")


def _encode(fields: Mapping[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(fields).encode()).decode()


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}
