"""The server inside containers, at the address at which it is found outside.

`serving` opens it. The init of a container listens on the container's own loopback, connects here and hands
that socket over: the server accepts on it as on its own. No packet passes between the networks, so it works
where a container reaches nothing else. While no server runs connections wait at the init's socket, and the
init hands it to the next server. Some ports lead elsewhere: to stores on this machine's loopback that jobs
are told of. It trusts nobody who connects, since programs in a container can connect too: what they hand
over is a socket that listens on their loopback or is closed. It never passes bytes to a port that the
settings do not name.
"""

import asyncio
import contextlib
import logging
import os
import socket
import struct
from collections.abc import Awaitable, Callable, Set
from dataclasses import dataclass, field
from pathlib import Path

from trainshed.core.google import PORT
from trainshed.serving.accepting import Accepting

log = logging.getLogger(__name__)

SOCKET = "socket"
MOST_INITS = 10_000
HASTE = 10.0  # seconds in which an init that connected must have handed its sockets over
_MOST_PORTS = 8
_BACKLOG = 1024
_PIECE = 256 * 1024

Serve = Callable[[socket.socket], Awaitable[asyncio.Server]]
ServeGoogle = Callable[[socket.socket, int], Awaitable[asyncio.Server]]  # with the init's pid


@dataclass(slots=True, eq=False)
class _InitConversation:
    """A connection of one init. It ends when the container does."""

    line: socket.socket
    late: asyncio.TimerHandle | None = None
    heard: bool = False
    servers: list[asyncio.Server] = field(default_factory=list[asyncio.Server])


class LoopbackServer:
    """`serve` answers with the API at a socket, `serve_google` with what Google's names lead to.

    Connections to `passed` ports go on to the same port of this machine. The set may grow meanwhile.
    """

    def __init__(self, folder: Path, serve: Serve, serve_google: ServeGoogle, passed: Set[int]) -> None:
        self._folder, self._passed = folder, passed
        self._serve, self._serve_google = serve, serve_google
        self._accepting: Accepting | None = None
        self._conversations: set[_InitConversation] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def open(self) -> None:
        """Listen for inits; those of an earlier server connect again. A disk without sockets is logged."""
        try:
            listener = self._listen()
        except OSError as error:
            log.warning("programs in containers cannot reach this server: %s", error)
            return
        complaint = "the server cannot be reached from further containers now"
        self._accepting = Accepting(listener, self._come, _BACKLOG, complaint)
        self._accepting.open()

    def _listen(self) -> socket.socket:
        self._folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        self._folder.chmod(0o755)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        place = os.open(self._folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            draft = f".{SOCKET}"
            with contextlib.suppress(FileNotFoundError):
                os.unlink(draft, dir_fd=place)
            # By its number: a path may be longer than a socket's name can be.
            listener.bind(f"/proc/self/fd/{place}/{draft}")
            os.chmod(draft, 0o666, dir_fd=place)  # whoever the image's user is
            listener.listen(_BACKLOG)
            os.rename(draft, SOCKET, src_dir_fd=place, dst_dir_fd=place)
        except OSError:
            listener.close()
            raise
        finally:
            os.close(place)
        return listener

    async def close(self) -> None:
        """Stop listening. From now on connections wait at the inits' sockets."""
        if self._accepting is not None:
            self._accepting.close()
            self._accepting = None
        for talk in list(self._conversations):
            self._end(talk)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _come(self, line: socket.socket) -> None:
        if len(self._conversations) >= MOST_INITS:
            line.close()
            return
        loop = asyncio.get_running_loop()
        talk = _InitConversation(line)
        talk.late = loop.call_later(HASTE, self._end, talk)
        self._conversations.add(talk)
        loop.add_reader(line.fileno(), self._hear, talk)

    def _hear(self, talk: _InitConversation) -> None:
        try:
            word, handles, _, _ = socket.recv_fds(talk.line, 1, _MOST_PORTS, socket.MSG_CMSG_CLOEXEC)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._end(talk)
            return
        listeners = [given for handle in handles if (given := _loopback_listener(handle)) is not None]
        if not word or talk.heard or not listeners:
            for listener in listeners:
                listener.close()
            self._end(talk)
            return
        talk.heard = True
        if talk.late is not None:
            talk.late.cancel()
        task = asyncio.create_task(self._take(talk, listeners))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _take(self, talk: _InitConversation, listeners: list[socket.socket]) -> None:
        for listener in listeners:
            port = listener.getsockname()[1]
            try:
                if port in self._passed:
                    server = await asyncio.start_server(_passer(port), sock=listener, backlog=_BACKLOG)
                elif port == PORT:
                    server = await self._serve_google(listener, _pid(talk.line))
                else:
                    server = await self._serve(listener)
            except (OSError, ValueError) as error:
                log.warning("programs in a container cannot reach this server: %s", error)
                listener.close()
                continue
            if talk in self._conversations:
                talk.servers.append(server)
            else:
                server.close()

    def _end(self, talk: _InitConversation) -> None:
        if talk not in self._conversations:
            return
        self._conversations.discard(talk)
        if talk.late is not None:
            talk.late.cancel()
        asyncio.get_running_loop().remove_reader(talk.line.fileno())
        talk.line.close()
        for server in talk.servers:
            server.close()


def _loopback_listener(handle: int) -> socket.socket | None:
    """The socket that was handed over; None, and closed, where it does not listen on loopback."""
    try:
        given = socket.socket(fileno=handle)
    except OSError:
        os.close(handle)
        return None
    try:
        listens = given.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        is_tcp = given.family is socket.AF_INET and given.type is socket.SOCK_STREAM
        if listens and is_tcp and given.getsockname()[0] == "127.0.0.1":
            given.setblocking(False)
            return given
    except OSError as error:
        log.debug("a container handed over no socket that listens: %s", error)
    given.close()
    return None


def _pid(line: socket.socket) -> int:
    """Of the process that connected: an init, or a program in a container that does as one."""
    credentials = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return struct.unpack("3i", credentials)[0]


def _passer(port: int) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    """Pass bytes both ways between a connection and the port of this machine."""

    async def passed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            inner, outer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            writer.transport.abort()
            return
        try:
            await asyncio.gather(_pass(reader, outer), _pass(inner, writer))
        except OSError:
            writer.transport.abort()
        finally:
            for item in (writer, outer):
                item.close()

    return passed


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(_PIECE):
        writer.write(piece)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
