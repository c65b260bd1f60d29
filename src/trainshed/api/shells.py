"""Shells in replicas: customJobs/ID:shell gives a ticket, /shell/… is its WebSocket and leads to the page.

A ticket needs the token, as cancelling does. It is sent as the second of the protocols that the WebSocket's
client offers, so it appears in no address and no log. A shell ends when who got the ticket may have none any
more.
"""

import asyncio
from dataclasses import dataclass
from urllib.parse import quote

from trainshed.api.call import Call, Json, RawAnswer, Reply, SocketAnswer, SocketChannel
from trainshed.core.accounts.permission import Permission, Resource
from trainshed.core.errors import Forbidden, TrainshedError
from trainshed.core.shell_port import Terminal
from trainshed.service.shells import PRIMARY, ReplicaPlace, ShellOrder, ShellService
from trainshed.wire.scalars import time_text
from trainshed.wire.shell import error_words, exit_words, parse_shell, parse_words

PROTOCOL = "trainshed.shell"
WINDOW = 512 * 1024  # bytes in flight to a screen that acknowledges them
_UNTAKEN = 1.0  # seconds to wait for an acknowledgement before sending more anyway
_PATIENCE = 30.0  # seconds a program may leave input unread before we check the connection


@dataclass(slots=True)
class ShellHandlers:
    service: ShellService

    async def ticket(self, call: Call) -> Json:
        request, path = parse_shell(call.body), call.path
        place = ReplicaPlace(path["project"], path["location"], path["job"], request.task or PRIMARY)
        ticket = await self.service.issue(
            place, request.command, request.screen, call.headers.get("origin"), call.principal
        )
        return {
            "ticket": ticket.word,
            "task": place.task,
            "path": f"/shell/{place.project}/{place.location}/{place.job}/{place.task}",
            "expireTime": time_text(ticket.until_at),
        }

    async def page(self, call: Call) -> Reply:
        """The shell is a tab of the job's page in the console."""
        path = {name: quote(value, safe="") for name, value in call.path.items()}
        tab = "/console/jobs/{project}/{location}/{job}/shell?task={task}".format_map(path)
        return RawAnswer(status=303, headers={"location": tab})

    async def talk(self, call: Call) -> Reply:
        if len(call.protocols) != 2 or call.protocols[0] != PROTOCOL:
            raise Forbidden(f"A shell wants the protocols {PROTOCOL} and a ticket, from customJobs/ID:shell.")
        place = ReplicaPlace(call.path["project"], call.path["location"], call.path["job"], call.path["task"])
        order = self.service.redeem(call.protocols[1], place, call.headers.get("origin"))
        return SocketAnswer(
            lambda channel: self._hold(order, channel),
            PROTOCOL,
            principal=order.principal,
            need=(Permission.JOBS_SHELL, Resource(place.project)),
            last_words=error_words,
        )

    async def _hold(self, order: ShellOrder, channel: SocketChannel) -> None:
        try:
            terminal = await self.service.open(order)
            try:
                await channel.say(await _conversed(terminal, channel))
            finally:
                await self.service.close(terminal)
        except TrainshedError as error:
            await channel.say(error_words(str(error)))


async def _conversed(terminal: Terminal, channel: SocketChannel) -> str:
    """Runs until the program ends or the client is gone. Returns the last message."""
    flow = _Flow()
    printing = asyncio.create_task(_print(terminal, channel, flow))
    typing = asyncio.create_task(_type(terminal, channel, flow))
    try:
        await asyncio.wait((printing, typing), return_when=asyncio.FIRST_COMPLETED)
        if printing.done() and printing.result():
            return exit_words(await terminal.wait())
        fault = typing.result() if typing.done() else ""
        return error_words(fault or "Nobody was there any more.")
    finally:
        for task in (printing, typing):
            task.cancel()
        await asyncio.gather(printing, typing, return_exceptions=True)


class _Flow:
    """Limits the bytes in flight: a browser buffers everything it receives and becomes unresponsive."""

    def __init__(self) -> None:
        self._sent = 0
        self._taken: int | None = None
        self._moved = asyncio.Event()

    def take(self, taken: int) -> None:
        self._taken = max(self._taken or 0, taken)
        self._moved.set()

    async def send(self, size: int) -> None:
        self._sent += size
        while self._taken is not None and self._sent - self._taken > WINDOW:
            self._moved.clear()
            try:
                await asyncio.wait_for(self._moved.wait(), _UNTAKEN)
            except TimeoutError:
                return  # the acknowledgement may be queued behind input that the program has not read


async def _print(terminal: Terminal, channel: SocketChannel, flow: _Flow) -> bool:
    """Whether the client received all output."""
    while data := await terminal.read():
        if not await channel.say(data):
            return False
        await flow.send(len(data))
    return True


async def _type(terminal: Terminal, channel: SocketChannel, flow: _Flow) -> str:
    """Runs until the client is gone. Returns the fault of a wrong message, else an empty text."""
    while (message := await channel.hear()) is not None:
        if isinstance(message, bytes):
            if not await _taken(terminal, message, channel):
                break
            continue
        try:
            words = parse_words(message)
        except TrainshedError as error:
            return str(error)
        if words.screen is not None:
            await terminal.resize(words.screen)
        if words.taken is not None:
            flow.take(words.taken)
        if words.end:
            await terminal.finish()
    return ""


async def _taken(terminal: Terminal, data: bytes, channel: SocketChannel) -> bool:
    """Whether the program read the input before the client was gone."""
    writing = asyncio.create_task(terminal.write(data))
    try:
        while not (await asyncio.wait((writing,), timeout=_PATIENCE))[0]:
            if not await channel.say("{}"):
                return False
    finally:
        writing.cancel()
    return True
