"""What was begun with a right ends with it: streams, conversations, calls that wait, uploads."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest

from tests.builders import T0
from tests.id_tokens import StepClock
from trainshed.api.call import (
    SOCKET,
    Call,
    Handler,
    RawAnswer,
    Reply,
    SocketAnswer,
    StreamAnswer,
    row,
)
from trainshed.api.lasting import RightsEnded
from trainshed.api.permitted import permitted, require
from trainshed.core.accounts.directory import AccessToken, Account, AccountChange, RoleGrant, digest_of
from trainshed.core.accounts.permission import OWNER, Permission, Principal, Resource
from trainshed.core.accounts.role import Role
from trainshed.core.errors import Unauthenticated
from trainshed.identity.account_tokens import AccountTokens
from trainshed.identity.directory_file import DirectoryFile
from trainshed.identity.ended_sessions import EndedSessions
from trainshed.identity.open import NoAuthentication
from trainshed.identity.session import SignedSessions

DISABLED = AccountChange(is_disabled=True)
SOON = 0.5  # seconds


@dataclass
class Endless:
    """A stream that says one word, and then nothing more. It knows whether it was closed."""

    is_closed: bool = False

    async def chunks(self) -> AsyncGenerator[bytes]:
        try:
            yield b"first"
            await asyncio.sleep(60)
            yield b"second"
        finally:
            self.is_closed = True


class World:
    """Ann is user in the projects p1 and p2."""

    def __init__(self, home: Path) -> None:
        self.clock, self.store = StepClock(), DirectoryFile(home / "accounts.json")
        self.ended = EndedSessions()
        self.people = AccountTokens(NoAuthentication(), self.store, self.clock, ended=self.ended)
        self.sessions = SignedSessions(b"s" * 64, lambda: "token", self.people.principal, self.ended)
        self.store.change(lambda old: old.with_account(Account(name="ann", created_at=T0)))
        for project in ("p1", "p2"):
            self.give(project, Role.USER)
        self.token()

    def token(self, expires_in: timedelta | None = None) -> None:
        expires_at = None if expires_in is None else self.clock.now() + expires_in
        token = AccessToken(
            id="1", account="ann", title="", digest=digest_of("x"), created_at=T0, expires_at=expires_at
        )
        self.store.change(lambda old: old.with_token(token))

    def give(self, project: str, *roles: Role) -> None:
        grants = [RoleGrant(project, role, "user:ann") for role in roles]
        self.store.change(lambda old: old.with_grants(project, grants))

    def revoke(self) -> None:
        self.store.change(lambda old: old.without_token("1"))

    @property
    def ann(self) -> Principal:
        principal = self.people.principal("1")
        assert principal is not None
        return principal

    async def answer(
        self,
        handler: Handler,
        permission: Permission = Permission.LOGS_READ,
        principal: Principal | None = None,
        *,
        chunks: AsyncIterator[bytes] | None = None,
    ) -> Reply:
        method = row("GET", "/v1/projects/{project}:x", handler, permission, streams=chunks is not None)
        call = Call(path={"project": "p1"}, query={}, body={}, headers={}, base_url="", rights=self.people)
        call = replace(call, principal=principal or self.ann)
        return await permitted(method)(call if chunks is None else replace(call, chunks=chunks))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def streamed(
    world: World, source: Endless, *, raw: bool = False, principal: Principal | None = None
) -> AsyncIterator[bytes]:
    """The stream of an answer, as the app gets it."""

    async def handler(call: Call) -> Reply:
        return RawAnswer(source.chunks()) if raw else StreamAnswer(source.chunks())

    reply = await world.answer(handler, principal=principal)
    if isinstance(reply, StreamAnswer):
        return reply.chunks
    assert isinstance(reply, RawAnswer) and isinstance(reply.content, AsyncIterator)
    return reply.content


async def rest(stream: AsyncIterator[bytes]) -> bytes:
    return b"".join([chunk async for chunk in stream])


CHANGES: dict[str, Callable[[World], object]] = {
    "token revoked": lambda world: world.revoke(),
    "account disabled": lambda world: world.store.change(lambda old: old.with_change("ann", DISABLED)),
    "account removed": lambda world: world.store.change(lambda old: old.without_account("ann")),
    "role taken away": lambda world: world.give("p1"),
}


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("change", CHANGES)
async def test_a_stream_of_whatever_method_is_cut_when_its_right_ends(world: World, change: str, raw: bool):
    source = Endless()
    stream = await streamed(world, source, raw=raw)
    assert await anext(stream) == b"first"
    reading = asyncio.create_task(rest(stream))
    await asyncio.sleep(0)
    CHANGES[change](world)
    with pytest.raises(RightsEnded):
        await asyncio.wait_for(reading, SOON)
    assert source.is_closed and not world.store.listeners


async def test_a_stream_whose_end_is_said_in_it_ends_with_its_right(world: World):
    source = Endless()

    async def handler(call: Call) -> Reply:
        return StreamAnswer(source.chunks(), shows_end=True)

    reply = await world.answer(handler)
    assert isinstance(reply, StreamAnswer)
    reading = asyncio.create_task(rest(reply.chunks))
    await asyncio.sleep(0)
    world.revoke()
    assert await asyncio.wait_for(reading, SOON) == b"first"
    assert source.is_closed and not world.store.listeners


@pytest.mark.parametrize("token", ["", "1"])
async def test_a_stream_of_a_browser_ends_when_somebody_signs_out_of_its_session(world: World, token: str):
    now = world.clock.now()
    words = [world.sessions.issue(now, token)[0] for _ in range(2)]
    streams, readings = [Endless(), Endless()], list[asyncio.Task[bytes]]()
    for word, source in zip(words, streams, strict=True):
        principal = world.sessions.principal(word, now)
        stream = await streamed(world, source, principal=principal)
        assert await anext(stream) == b"first"
        readings.append(asyncio.create_task(rest(stream)))
    await asyncio.sleep(0)
    world.sessions.end(words[0], now)
    with pytest.raises(RightsEnded, match="Sign in again"):
        await asyncio.wait_for(readings[0], SOON)
    assert streams[0].is_closed and not streams[1].is_closed
    readings[1].cancel()
    with pytest.raises(asyncio.CancelledError):
        await readings[1]
    assert not world.ended.listeners


@pytest.mark.parametrize("token", ["", "1"])
async def test_a_stream_of_a_browser_ends_when_its_session_has_lasted_its_time(world: World, token: str):
    word, lasts = world.sessions.issue(world.clock.now(), token)
    world.clock.time += lasts - timedelta(seconds=0.1)
    source = Endless()
    stream = await streamed(world, source, principal=world.sessions.principal(word, world.clock.now()))
    assert await anext(stream) == b"first"
    reading = asyncio.create_task(rest(stream))
    await asyncio.sleep(0)
    assert not reading.done()
    world.clock.time += timedelta(seconds=0.1)
    with pytest.raises(RightsEnded, match="Sign in again"):
        await asyncio.wait_for(reading, SOON)
    assert source.is_closed and not world.ended.listeners


@pytest.mark.parametrize("signs_out", [False, True])
@pytest.mark.parametrize("token", ["", "1"])
async def test_a_conversation_of_a_browser_ends_with_its_session(world: World, token: str, signs_out: bool):
    word, lasts = world.sessions.issue(world.clock.now(), token)
    world.clock.time += lasts - timedelta(seconds=0.1)
    principal = world.sessions.principal(word, world.clock.now())
    assert principal is not None
    async with conversation(world, principal) as (task, channel):
        if signs_out:
            world.sessions.end(word, world.clock.now())
        else:
            world.clock.time += timedelta(seconds=0.1)
        await asyncio.wait_for(task, SOON)
        assert ["Sign in again" in str(words) for words in channel.said] == [True]


async def test_a_stream_goes_on_when_something_else_changes(world: World):
    source = Endless()
    stream = await streamed(world, source)
    assert await anext(stream) == b"first"
    reading = asyncio.create_task(rest(stream))
    await asyncio.sleep(0)
    world.give("p2")
    world.give("p1", Role.VIEWER)
    world.store.change(lambda old: old.with_account(Account(name="bob", created_at=T0)))
    await asyncio.sleep(0)
    assert not reading.done() and not source.is_closed
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert source.is_closed and not world.store.listeners


async def test_a_stream_whose_right_ended_before_it_began_brings_nothing(world: World):
    stream = await streamed(world, Endless())
    world.revoke()
    with pytest.raises(RightsEnded):
        await anext(stream)


async def test_a_stream_ends_when_its_token_expires(world: World):
    world.token(timedelta(seconds=0.1))
    source = Endless()
    stream = await streamed(world, source)
    assert await anext(stream) == b"first"
    world.clock.time += timedelta(seconds=0.1)
    with pytest.raises(RightsEnded, match="Sign in again"):
        await asyncio.wait_for(rest(stream), SOON)


async def test_a_call_that_waits_ends_with_its_right(world: World):
    async def wait(call: Call) -> Reply:
        await asyncio.sleep(60)
        return {}

    waiting = asyncio.create_task(world.answer(wait))
    await asyncio.sleep(0)
    world.give("p1")
    with pytest.raises(RightsEnded, match=r"no permission logs\.read in project 'p1'"):
        await asyncio.wait_for(waiting, SOON)
    assert not world.store.listeners


async def test_what_a_handler_asked_for_must_last_as_well(world: World):
    async def elsewhere(call: Call) -> Reply:
        require(call, Permission.LOGS_READ, Resource("p2"))
        return StreamAnswer(Endless().chunks())

    reply = await world.answer(elsewhere)
    assert isinstance(reply, StreamAnswer) and await anext(reply.chunks) == b"first"
    world.give("p2")
    with pytest.raises(RightsEnded):
        await anext(reply.chunks)


async def test_what_changes_something_is_done_to_its_end(world: World):
    done = asyncio.Event()

    async def change(call: Call) -> Reply:
        world.revoke()
        await asyncio.sleep(0)
        done.set()
        return {}

    assert await world.answer(change, Permission.JOBS_CREATE) == {} and done.is_set()


async def test_an_upload_ends_with_its_right(world: World):
    source, got = Endless(), list[bytes]()

    async def upload(call: Call) -> Reply:
        async for chunk in call.chunks:
            got.append(chunk)
        return {}

    uploading = asyncio.create_task(world.answer(upload, Permission.OBJECTS_WRITE, chunks=source.chunks()))
    await asyncio.sleep(0)
    world.revoke()
    with pytest.raises(RightsEnded):
        await asyncio.wait_for(uploading, SOON)
    assert got == [b"first"] and source.is_closed


async def test_who_was_disabled_while_the_body_came_is_refused(world: World):
    ann = world.ann
    world.revoke()
    with pytest.raises(Unauthenticated):
        await world.answer(_nothing, principal=ann)


async def _nothing(call: Call) -> Reply:
    return {}


class Channel:
    def __init__(self) -> None:
        self.said: list[bytes | str] = []

    async def hear(self) -> bytes | str | None:
        await asyncio.sleep(60)
        return None

    async def say(self, data: bytes | str) -> bool:
        self.said.append(data)
        return True


@contextlib.asynccontextmanager
async def conversation(
    world: World, principal: Principal
) -> AsyncGenerator[tuple[asyncio.Task[None], Channel]]:
    async def talk(call: Call) -> Reply:
        async def hold(channel: object) -> None:
            await asyncio.sleep(60)

        need = (Permission.JOBS_SHELL, Resource("p1"))
        return SocketAnswer(hold, "", principal=principal, need=need, last_words=lambda words: f"! {words}")

    call = Call(path={"project": "p1"}, query={}, body={}, headers={}, base_url="", rights=world.people)
    reply = await permitted(row(SOCKET, "/x/{project}", talk, Permission.PUBLIC))(call)
    assert isinstance(reply, SocketAnswer)
    channel = Channel()
    task = asyncio.ensure_future(reply.hold(channel))
    await asyncio.sleep(0)
    try:
        yield task, channel
    finally:
        task.cancel()


async def test_a_conversation_ends_with_a_sentence_when_its_right_ends(world: World):
    async with conversation(world, world.ann) as (task, channel):
        world.give("p1", Role.VIEWER)
        await asyncio.wait_for(task, SOON)
        assert [str(words)[:6] for words in channel.said] == ["! ann "]
    assert not world.store.listeners


async def test_what_the_owner_began_costs_nothing_and_does_not_end(world: World):
    async with conversation(world, OWNER) as (task, _):
        source = Endless()

        async def handler(call: Call) -> Reply:
            return StreamAnswer(source.chunks())

        reply = await world.answer(handler, principal=OWNER)
        assert isinstance(reply, StreamAnswer) and await anext(reply.chunks) == b"first"
        assert not world.store.listeners
        world.revoke()
        await asyncio.sleep(0)
        assert not task.done()
