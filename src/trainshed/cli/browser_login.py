"""`trainshed login` by the browser: a person allows it in the console, and the server gives a token.

`login` calls it. On a machine with a browser the console brings a word to a port of the loopback address;
elsewhere the person compares a code. Either way the token is only for who has the verifier, which is sent
last, to the server alone. Nothing is written here.
"""

import base64
import hashlib
import hmac
import http.server
import platform
import secrets
import threading
import time
import webbrowser
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import click

from trainshed.cli.failure import CommandFailed
from trainshed.client import Client

PATIENCE = 600.0  # seconds for a person to sign in and to allow it
PAUSE = 2.0  # seconds between two questions whether they have
SLOWEST = 5.0  # seconds for a browser to send its request
_ENDED = "The command line goes on. You can close this page.\n"
_UNKNOWN = "This is not what trainshed login waits for.\n"


def by_browser(client: Client) -> str:
    """A token, allowed in a browser of this machine."""
    verifier, challenge = _pair()
    state = secrets.token_urlsafe(24)
    with _Waiter(state) as waiter:
        query = {"port": waiter.port, "state": state, "challenge": challenge, "title": _title()}
        address = f"{client.url}/console/login?{urlencode(query)}"
        if webbrowser.open(address):
            click.echo("Sign in and allow it in your browser. If no page opens, open this address:", err=True)
        else:
            click.echo("Open this address in a browser of this machine:", err=True)
        click.echo(address, err=True)
        word = waiter.wait(PATIENCE)
    if word is None:
        raise CommandFailed(f"nobody allowed it within {PATIENCE / 60:.0f} minutes", ["run it again"])
    return client.accounts().redeem_login(word, verifier)["token"]


def by_code(client: Client) -> str:
    """A token, allowed in any browser that shows the same code."""
    verifier, challenge = _pair()
    accounts = client.accounts()
    login = accounts.ask_login(challenge, _title())
    click.echo(f"Open this address in any browser: {client.url}{login['path']}", err=True)
    click.echo(f"Sign in there, and allow it if it shows the code: {login['code']}", err=True)
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        answer = accounts.redeem_code(login["code"], verifier)
        if "token" in answer:
            return answer["token"]
        time.sleep(PAUSE)
    raise CommandFailed(f"nobody allowed it within {PATIENCE / 60:.0f} minutes", ["run it again"])


def _pair() -> tuple[str, str]:
    """A verifier and its challenge, as PKCE has them."""
    verifier = secrets.token_urlsafe(48)
    digest = hashlib.sha256(verifier.encode()).digest()
    return verifier, base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _title() -> str:
    name = "".join(c for c in platform.node() if c.isprintable())[:60]
    return name or "command line"


class _Waiter:
    """Listens on the loopback address until a browser brings the word that belongs to the state."""

    def __init__(self, state: str) -> None:
        self._state, self._word = state, ""
        self._is_there = threading.Event()
        waiter = self

        class Handler(http.server.BaseHTTPRequestHandler):
            timeout = SLOWEST

            def do_GET(self) -> None:
                is_ours = waiter.take(self.path)
                content = (_ENDED if is_ours else _UNKNOWN).encode()
                self.send_response(200 if is_ours else 404)
                self.send_header("Content-Type", "text/plain; charset=utf-8")
                self.send_header("Content-Length", str(len(content)))
                self.send_header("Cache-Control", "no-store")
                self.send_header("Referrer-Policy", "no-referrer")
                self.end_headers()
                self.wfile.write(content)
                self.close_connection = True

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing: the word is in the address."""

        # Threads: browsers open connections ahead, on which nothing may come.
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_port

    def take(self, path: str) -> bool:
        parts = urlsplit(path)
        query = parse_qs(parts.query)
        state, word = query.get("state", [""])[0], query.get("word", [""])[0]
        if parts.path != "/" or not word or not hmac.compare_digest(state.encode(), self._state.encode()):
            return False
        if not self._is_there.is_set():
            self._word = word
            self._is_there.set()
        return True

    def wait(self, seconds: float) -> str | None:
        return self._word if self._is_there.wait(seconds) else None

    def __enter__(self) -> "_Waiter":
        threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
