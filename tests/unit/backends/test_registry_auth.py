"""Credentials for registries: which file and entry holds, and that nothing shows them."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from trainshed.backends.machine.registry_auth import RegistryAuth

SECRET = "s3cret:with:colons"


def entry(user: str, password: str = SECRET) -> dict[str, str]:
    return {"auth": base64.b64encode(f"{user}:{password}".encode()).decode()}


def write(path: Path, told: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(told))
    return path


def unpacked(headers: dict[str, str], name: str = "X-Registry-Auth") -> Any:
    assert set(headers) == {name}
    return json.loads(base64.urlsafe_b64decode(headers[name]))


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path)}


def test_without_credentials_nothing_is_sent(environ: dict[str, str]) -> None:
    auth = RegistryAuth(environ=environ)
    assert auth.header("127.0.0.1:5000/a") == {} and auth.headers() == {}


def test_dockers_own_file_is_read(tmp_path: Path, environ: dict[str, str]) -> None:
    write(tmp_path / ".docker/config.json", {"auths": {"https://index.docker.io/v1/": entry("ann")}})
    told = unpacked(RegistryAuth(environ=environ).header("python:3"))
    assert told == {"username": "ann", "password": SECRET, "serveraddress": "docker.io"}
    assert RegistryAuth(environ=environ).header("quay.io/python:3") == {}


def test_the_file_of_the_setting_comes_first_then_podmans_then_dockers(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    auths = {"r.example:5000": entry("docker")}
    write(tmp_path / ".docker/config.json", {"auths": auths})
    assert unpacked(RegistryAuth(environ=environ).header("r.example:5000/a"))["username"] == "docker"
    write(tmp_path / ".config/containers/auth.json", {"auths": {"r.example:5000": entry("podman")}})
    assert unpacked(RegistryAuth(environ=environ).header("r.example:5000/a"))["username"] == "podman"
    environ["REGISTRY_AUTH_FILE"] = str(
        write(tmp_path / "named.json", {"auths": {"r.example:5000": entry("named")}})
    )
    assert unpacked(RegistryAuth(environ=environ).header("r.example:5000/a"))["username"] == "named"
    own = write(tmp_path / "own.json", {"auths": {"r.example:5000": entry("own")}})
    assert unpacked(RegistryAuth(own, environ).header("r.example:5000/a"))["username"] == "own"


def test_the_most_exact_entry_holds(tmp_path: Path, environ: dict[str, str]) -> None:
    auths = {"r.example": entry("all"), "r.example/team": entry("team"), "r.example/team/x": entry("one")}
    own = write(tmp_path / "own.json", {"auths": auths})
    auth = RegistryAuth(own, environ)
    names = {
        image: unpacked(auth.header(image))["username"] for image in ("r.example/a", "r.example/team/b:1")
    }
    assert names == {"r.example/a": "all", "r.example/team/b:1": "team"}
    assert unpacked(auth.header("r.example/team/x@sha256:" + "0" * 64))["username"] == "one"
    assert unpacked(auth.header("r.example/teams/b"))["username"] == "all"


def test_a_login_holds_without_a_restart_and_a_broken_file_is_none(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    own = tmp_path / "own.json"
    auth = RegistryAuth(own, environ)
    own.write_text("{not json")
    assert auth.header("r.example/a") == {}
    write(own, {"auths": {"r.example": entry("ann")}})
    assert unpacked(auth.header("r.example/a"))["username"] == "ann"
    write(own, {"auths": {"r.example": {"auth": "###"}}})
    assert auth.header("r.example/a") == {}


def test_a_helper_is_asked_as_docker_asks_it(
    tmp_path: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    helper = tmp_path / "docker-credential-tests"
    helper.write_text(
        '#!/bin/sh\nread server\necho "{\\"Username\\": \\"of $server\\", \\"Secret\\": \\"x\\"}"\n'
    )
    helper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    own = write(tmp_path / "own.json", {"credHelpers": {"gcr.io": "tests", "quay.io": "missing"}})
    auth = RegistryAuth(own, environ)
    assert unpacked(auth.header("gcr.io/p/a"))["username"] == "of gcr.io"
    assert auth.header("quay.io/a") == {}


def test_a_build_gets_those_of_every_registry(tmp_path: Path, environ: dict[str, str]) -> None:
    auths = {
        "r.example": entry("ann"),
        "https://index.docker.io/v1/": entry("ben"),
        "r.example/t": entry("c"),
    }
    own = write(tmp_path / "own.json", {"auths": auths})
    told = unpacked(RegistryAuth(own, environ).headers(), "X-Registry-Config")
    assert {key: value["username"] for key, value in told.items()} == {
        "r.example": "ann",
        "https://index.docker.io/v1/": "ben",
    }


def test_nothing_of_it_is_in_a_representation(tmp_path: Path, environ: dict[str, str]) -> None:
    from trainshed.backends.machine.registry_auth import Credentials

    own = write(tmp_path / "own.json", {"auths": {"r.example": entry("ann")}})
    shown = f"{Credentials('ann', SECRET, SECRET)!r} {RegistryAuth(own, environ)!r}"
    assert SECRET not in shown and "ann" not in shown
