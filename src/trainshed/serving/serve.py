"""Serves what was assembled: one process, one event loop. `server` calls `run`.

It listens, starts the assembly, prints where the server is, and closes everything in order at a signal.
"""

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
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from starlette.types import ASGIApp
from uvicorn.config import Config
from uvicorn.server import Server

from trainshed import __version__
from trainshed.assembly.api import CONNECTION, INIT, JOB
from trainshed.assembly.assembly import Assembly, assemble
from trainshed.core.errors import TrainshedError
from trainshed.serving.google_listener import GoogleListener
from trainshed.serving.home_folder import close_home, make_home
from trainshed.serving.http_protocol import ConnectionState
from trainshed.serving.loopback_server import LoopbackServer
from trainshed.serving.tunnel_server import TunnelServer
from trainshed.settings.table import DEFAULT_HOME, Settings, SettingsError

if TYPE_CHECKING:
    from trainshed.serving.server_tls import ServerTls
    from trainshed.serving.tls_listener import TlsListener

_BOUNDED = "trainshed.serving.http_protocol:BoundedHttp"
_IN_NO_TIME = 0.1  # seconds for answers that wait for nothing
_FORGIVING = "trainshed.serving.google_protocol:ForgivingHttp"


async def serve(settings: Settings) -> None:
    listener = listen(settings.host, settings.port)
    port = listener.getsockname()[1]
    address = url = f"http://{local_name(settings.host)}:{port}"  # jobs of this machine stay with it
    tls = find_tls(settings) if settings.tls else None
    if tls is not None:
        url = f"https://{local_name(tls.name)}:{port}"
        settings = replace(settings, allowed_hosts=(*settings.allowed_hosts, *tls.names))
    assembly = assemble(settings, address)
    sockets = SocketServer(configure(assembly.api.app), ConnectionState())
    google = listen_for_google(assembly, sockets)
    outside = listen_with_tls(assembly, sockets, listener, tls, url) if tls is not None else None
    loopback = listen_in_containers(assembly, sockets, google)
    parts = (outside, loopback, answer_in_pods(assembly, sockets, google))
    trust = str(tls.ca or "") if tls is not None else ""
    server = _Server(sockets, parts, lambda: announce(settings.home, url, trust), assembly.api.end.begin)
    await assembly.open()
    close_home(settings.home, ways=bool(settings.run_as))  # again: the first start has made its folders
    gc.freeze()  # what is there now stays: forgotten by the collector, which begins here (server.py)
    gc.enable()
    beside = [assembly.tick(), announce_containers(server, assembly), announce_google(server, google)]
    if tls is not None:
        beside.append(tls.renew_daily())
    tasks = [asyncio.create_task(work) for work in beside]
    try:
        await server.serve(sockets=[] if outside else [listener])
    finally:
        for task in tasks:
            task.cancel()
        (settings.home / "server.json").unlink(missing_ok=True)
        await google.close()
        await assembly.close()


def find_tls(settings: Settings) -> "ServerTls":
    """Imported only where the settings ask for TLS."""
    from trainshed.serving.server_tls import ServerTls

    return ServerTls(settings)


def listen_with_tls(
    assembly: Assembly, sockets: "SocketServer", listener: socket.socket, tls: "ServerTls", url: str
) -> "TlsListener":
    """The server's own address where it speaks TLS, not open yet."""
    from trainshed.api.plain_http import PlainHttp
    from trainshed.serving.tls_listener import TlsListener

    api = assembly.api
    rows = tuple(method for method in api.methods if method.plain)
    plain = configure(PlainHttp(api.app_of(rows), rows, assembly.access.service.was_issued, url))
    plain.load()

    async def answer(connection: socket.socket, context: ssl.SSLContext) -> None:
        await sockets.answer(connection, context=context)

    async def answer_plain(connection: socket.socket) -> None:
        await sockets.answer(connection, config=plain)

    return TlsListener(listener, tls.context, answer, answer_plain)


def configure(app: ASGIApp, http: str = _BOUNDED) -> Config:
    return Config(
        app,
        http=http,
        lifespan="off",
        ws=cast(type[asyncio.Protocol], _websocket_protocol),
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


def _websocket_protocol(**given: Any) -> asyncio.Protocol:
    """Imported at the first WebSocket."""
    from uvicorn.protocols.websockets.wsproto_impl import WSProtocol

    return WSProtocol(**given)


@dataclass(frozen=True, slots=True)
class SocketServer:
    """Answers HTTP at sockets. The server and the listeners beside it share one, and so their connections."""

    config: Config
    state: ConnectionState

    async def serve_at(
        self,
        listener: socket.socket,
        *,
        config: Config | None = None,
        context: ssl.SSLContext | None = None,
        about: Mapping[str, object] = MappingProxyType({}),
    ) -> asyncio.Server:
        """Answer there as at the server's own address, or as `config` says; with `context` over TLS.

        `about` is what is known of every connection from the start.
        """
        loop, made = asyncio.get_running_loop(), self._protocol(config, about)
        return await loop.create_server(made, sock=listener, ssl=context, backlog=self.config.backlog)

    async def answer(
        self,
        connection: socket.socket,
        *,
        config: Config | None = None,
        context: ssl.SSLContext | None = None,
        about: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        """The same on a connection that is there already."""
        loop = asyncio.get_running_loop()
        await loop.connect_accepted_socket(self._protocol(config, about), connection, ssl=context)

    def _protocol(self, config: Config | None, about: Mapping[str, object]) -> Callable[[], asyncio.Protocol]:
        used = config or self.config
        make_protocol = cast(Callable[..., asyncio.Protocol], used.http_protocol_class)

        def connected() -> asyncio.Protocol:
            state = {CONNECTION: dict(about)}
            return make_protocol(config=used, server_state=self.state, app_state=state)

        return connected


class _Server(Server):
    """Says that it is ready once it is."""

    def __init__(
        self,
        sockets: SocketServer,
        parts: "Sequence[LoopbackServer | TunnelServer | TlsListener | None]",
        ready: Callable[[], None],
        end: Callable[[], None],
    ) -> None:
        """`parts` answer beside it: in containers and pods, with TLS; None: there is none.

        `end` ends streams, and calls that wait.
        """
        super().__init__(sockets.config)
        self.server_state = sockets.state
        self.is_ready = asyncio.Event()
        self._parts = [part for part in parts if part is not None]
        self._ready, self._end = ready, end

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Stop at a signal, and leave `serve` as from any other call: the caller then closes everything."""
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
        for part in self._parts:
            part.open()
        self._ready()
        self.is_ready.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for part in self._parts:
            await part.close()
        asyncio.get_running_loop().call_later(_IN_NO_TIME, self._end)  # what is answered at once still is
        await super().shutdown(sockets)


def listen_in_containers(
    assembly: Assembly, sockets: SocketServer, google: GoogleListener
) -> LoopbackServer | None:
    """The server inside containers; None where there are none."""
    loopback = assembly.backends.loopback
    if loopback.folder is None:
        return None
    return LoopbackServer(loopback.folder, sockets.serve_at, google.serve_at, loopback.passed)


def answer_in_pods(assembly: Assembly, sockets: SocketServer, google: GoogleListener) -> TunnelServer | None:
    """The server inside pods; None where there are none."""
    if assembly.backends.cluster is None:
        return None

    async def answer(connection: socket.socket, job: str) -> None:
        await sockets.answer(connection, about={JOB: job})

    loopback = assembly.backends.loopback
    tunnels = TunnelServer(answer, google.answer, loopback.passed)
    loopback.dial = tunnels.dial
    return tunnels


def listen_for_google(assembly: Assembly, sockets: SocketServer) -> GoogleListener:
    """This server under Google's names, not open yet."""
    config = configure(assembly.api.google, _FORGIVING)
    config.load()

    async def serve_tls(listener: socket.socket, context: ssl.SSLContext, init: int) -> asyncio.Server:
        return await sockets.serve_at(listener, config=config, context=context, about={INIT: init})

    async def answer_tls(connection: socket.socket, context: ssl.SSLContext, job: str) -> None:
        await sockets.answer(connection, config=config, context=context, about={JOB: job})

    home, certificates = assembly.shared.settings.home, assembly.access.certificates
    return GoogleListener(home, certificates, assembly.backends.google, serve_tls, answer_tls)


async def announce_google(server: _Server, google: GoogleListener) -> None:
    await server.is_ready.wait()
    print(f"  Google's hosts   {await google.open()}", flush=True)


async def announce_containers(server: _Server, assembly: Assembly) -> None:
    """Say who runs containers, or why nobody does, once the server is ready: nobody waits for an engine."""
    await server.is_ready.wait()
    cluster = assembly.backends.cluster
    if cluster is not None:
        print(f"  kubernetes       {await cluster.look()}", flush=True)
    if cluster is None or assembly.shared.settings.here in ("first", "last"):
        print(f"  containers       {await assembly.backends.containers.look()}", flush=True)


def local_name(host: str) -> str:
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


def announce(home: Path, url: str, trust: str = "") -> None:
    """Tell people, and commands on this machine, where the server is. `trust`: a certificate of its own."""
    ready = home / "server.json"
    draft = ready.with_suffix(".new")
    draft.write_text(json.dumps({"url": url, "pid": os.getpid()}))
    draft.replace(ready)
    print(f"Trainshed {__version__} is ready at {url}", flush=True)
    print(f"  state and logs   {home}", flush=True)
    print(f'  use it           eval "$({env_command(home)})"   then   trainshed submit FILE.yaml', flush=True)
    if trust:
        print(f"  trust it         TRAINSHED_CA={shlex.quote(trust)}   on other machines, a copy", flush=True)
    print(f"  console          {url}/console   or, signed in:   trainshed console", flush=True)


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
        close_home(settings.home, ways=bool(settings.run_as))
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
