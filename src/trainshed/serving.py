"""Serves: one process, one event loop, one door. Starts what was put together, says so, ends it in order."""

import asyncio
import contextlib
import gc
import json
import logging
import os
import resource
import shlex
import shutil
import signal
import socket
import ssl
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from starlette.types import ASGIApp, Scope
from uvicorn.config import Config
from uvicorn.server import Server

from trainshed import __version__
from trainshed.api.app import make_app
from trainshed.api.google_hosts import GoogleHosts
from trainshed.api.methods import methods
from trainshed.api.request_gate import RequestGate
from trainshed.api.storage_table import storage_methods
from trainshed.assembly import Assembly, assemble
from trainshed.certificates import Certificates
from trainshed.core.errors import TrainshedError
from trainshed.core.google import HOSTS
from trainshed.google_listener import GoogleListener
from trainshed.identity.open import NoAuthentication
from trainshed.identity.origin import foreign_request
from trainshed.identity.token import TokenFile
from trainshed.loopback_server import LoopbackServer, Serve
from trainshed.settings import DEFAULT_HOME, Settings, SettingsError

_FORGIVING = "trainshed.google_protocol:ForgivingHttp"
CONNECTION = "connection"  # in a request's state: what is remembered for all requests of its connection


async def serve(settings: Settings) -> None:
    authenticator = TokenFile(settings.home / "token") if settings.auth else NoAuthentication()
    shed = assemble(settings)
    listener = listen(settings.host, settings.port)
    port = listener.getsockname()[1]
    name = name_here(settings.host)
    url = shed.access.address = f"http://{name}:{port}"
    inside = ("127.0.0.1",) if settings.engine != "none" else ()  # as containers know it
    own = frozenset({settings.host, name, *inside, *settings.allowed_hosts})
    door = RequestGate(authenticator, shed.access)
    app = make_app(methods(shed.handlers), door, lambda host, origin: foreign_request(host, origin, own))
    if not settings.s3:  # one that was killed may have left word of its store
        (settings.home / "s3" / "env.json").unlink(missing_ok=True)
    server = _Server(configure(app), lambda: announce(settings.home, url))
    google = serve_google(shed, settings.home, door, server)
    if settings.engine != "none":
        server.hatches = lead(shed, settings.home / "hatch", url, server.serve_at)
        server.hatches.named = google.serve_at
    await shed.open()
    gc.freeze()  # what is there now stays: forgotten by the collector, which begins here (server.py)
    gc.enable()
    beside = (shed.tick(), tell_containers(server, shed), tell_google(server, google))
    tasks = [asyncio.create_task(work) for work in beside]
    try:
        await server.serve(sockets=[listener])
    finally:
        for task in tasks:
            task.cancel()
        (settings.home / "server.json").unlink(missing_ok=True)
        await google.close()
        await shed.close()


def configure(app: ASGIApp, http: str = "httptools") -> Config:
    return Config(
        app,
        http=http,
        lifespan="off",
        ws=cast(type[asyncio.Protocol], _talking),
        ws_max_size=1 << 20,
        ws_ping_timeout=None,  # a program that does not read what is typed keeps pongs from being read
        ws_per_message_deflate=False,
        access_log=False,
        proxy_headers=False,
        log_config=None,
        server_header=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=2,
    )


def _talking(**given: Any) -> asyncio.Protocol:
    """What speaks WebSocket, imported by the first who does."""
    from uvicorn.protocols.websockets.wsproto_impl import WSProtocol

    return WSProtocol(**given)


class _Server(Server):
    """Says that it is ready once it is."""

    def __init__(self, config: Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready
        self.is_ready = asyncio.Event()
        self.hatches: LoopbackServer | None = None

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Stop at a signal, and leave `serve` as from any other call: it is then that all is put away."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.hatches is not None:
            self.hatches.open()
        self._ready()
        self.is_ready.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self.hatches is not None:
            await self.hatches.close()
        await super().shutdown(sockets)

    async def serve_at(
        self,
        listener: socket.socket,
        *,
        config: Config | None = None,
        context: ssl.SSLContext | None = None,
        about: Mapping[str, object] = MappingProxyType({}),
    ) -> asyncio.Server:
        """Answer there too, as at the door; or as another configuration says, over TLS where told.

        `about` is what is known of every connection from the start.
        """
        used = config or self.config
        speak = cast(Callable[..., asyncio.Protocol], used.http_protocol_class)

        def made() -> asyncio.Protocol:
            state = {**self.lifespan.state, CONNECTION: dict(about)}
            return speak(config=used, server_state=self.server_state, app_state=state)

        loop = asyncio.get_running_loop()
        return await loop.create_server(made, sock=listener, ssl=context, backlog=self.config.backlog)


def lead(shed: Assembly, folder: Path, url: str, serve: Serve) -> LoopbackServer:
    """The way to the server out of containers, which what runs them is told of."""
    hatch = shed.backend.hatch
    hatch.folder, hatch.address, hatch.beyond = folder, url, shed.access.beyond
    hatch.passed |= hatch.beyond
    return LoopbackServer(folder, serve, hatch.passed)


def serve_google(shed: Assembly, home: Path, door: RequestGate, server: _Server) -> GoogleListener:
    """This server under Google's names, not open yet."""
    certificates = Certificates(home / "tls", HOSTS, os.environ)
    shed.access.roots = str(certificates.roots)
    shed.backend.google.settled.clear()

    async def caller(scope: Scope) -> str:
        """Whose connection it is does not change: asked once for each."""
        known: dict[str, Any] = scope["state"][CONNECTION]
        if "token" not in known:
            if known["init"]:
                job = await shed.backend.job_of_init(known["init"])
            else:
                job = await shed.backend.processes.calling_job(scope["client"], scope["server"])
            known["token"] = shed.access.token_of(job) if job else ""
        return known["token"]

    async def serve_tls(listener: socket.socket, context: ssl.SSLContext, init: int) -> asyncio.Server:
        return await server.serve_at(listener, config=config, context=context, about={"init": init})

    tokens = shed.handlers.tokens
    config = configure(GoogleHosts(storage_methods(shed.handlers.storage), tokens, door, caller), _FORGIVING)
    config.load()
    return GoogleListener(home, certificates, shed.backend.google, serve_tls)


async def tell_google(server: _Server, google: GoogleListener) -> None:
    await server.is_ready.wait()
    print(f"  Google's hosts   {await google.open()}", flush=True)


async def tell_containers(server: _Server, shed: Assembly) -> None:
    """Say who runs containers, or why nobody does, once the server is ready: nobody waits for an engine."""
    await server.is_ready.wait()
    print(f"  containers       {await shed.backend.containers.look()}", flush=True)


def name_here(host: str) -> str:
    """What commands and jobs of this machine call the server: one that listens everywhere, by loopback."""
    if host in ("", "0.0.0.0", "::"):
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host


def listen(host: str, port: int) -> socket.socket:
    """A listening socket that no replica inherits; a restarted server can take its port again at once."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise SettingsError(
            f"cannot listen on {host}:{port}: {error.strerror}; is a server running already? "
            "Choose another port with --port."
        ) from error
    return listener


def announce(home: Path, url: str) -> None:
    """Tell people, and commands on this machine, where the server is."""
    ready = home / "server.json"
    draft = ready.with_suffix(".new")
    draft.write_text(json.dumps({"url": url, "pid": os.getpid()}))
    draft.replace(ready)
    print(f"Trainshed {__version__} is ready at {url}", flush=True)
    print(f"  state and logs   {home}", flush=True)
    print(f'  use it           eval "$({env_command(home)})"   then   trainshed submit FILE.yaml', flush=True)


def env_command(home: Path) -> str:
    """What another shell runs for its variables: it knows neither this one's PATH nor its TRAINSHED_HOME."""
    program = Path(sys.executable).with_name("trainshed")
    own = os.environ.get("VIRTUAL_ENV")  # where activate put it on the PATH of this shell only
    folders = os.environ.get("PATH", "").split(os.pathsep)
    others = os.pathsep.join(folder for folder in folders if not own or folder != f"{own}/bin")
    words = [str(program)] if program.exists() else [sys.executable, "-m", "trainshed.cli"]
    if (there := shutil.which("trainshed", path=others)) and os.path.realpath(there) == str(
        program.resolve()
    ):
        words = ["trainshed"]
    words.append("env")
    if home != Path(DEFAULT_HOME).expanduser():
        words += ["--home", str(home)]
    return shlex.join(words)


def make_home(home: Path) -> None:
    """A new one is nothing that a repository or a submitted folder around it should take along."""
    try:
        home.mkdir(parents=True, mode=0o700)
    except FileExistsError:
        if not home.is_dir():
            raise
        return
    (home / ".gitignore").write_text("*\n")


def raise_file_limit() -> None:
    """A thousand replicas are a thousand watched processes: take all the file numbers we may have."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def run(args: Sequence[str]) -> int:
    raise_file_limit()
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.WARNING)
    try:
        settings = Settings.from_args(args)
        make_home(settings.home)
        with contextlib.suppress(KeyboardInterrupt):
            _loop(settings)
    except (SettingsError, TrainshedError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _loop(settings: Settings) -> None:
    try:
        import uvloop
    except ImportError:
        asyncio.run(serve(settings))
    else:
        uvloop.run(serve(settings))
