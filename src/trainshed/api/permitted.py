"""Checks each call against the permission of its row. Every `Route` sends its calls through here.

It finds the buckets that the call names, and their projects; `core.accounts.permission.allowed` decides. What
goes on after that, a stream or a conversation, ends when the caller is not allowed any more.
"""

import contextlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from urllib.parse import unquote

from trainshed.api.call import (
    Call,
    Handler,
    Method,
    RawAnswer,
    Reply,
    SocketAnswer,
    SocketChannel,
    StreamAnswer,
)
from trainshed.api.lasting import LastingRights, RightsEnded
from trainshed.core.accounts.permission import Permission, Principal, PrincipalKind, Resource, allowed
from trainshed.core.accounts.role import EVERYWHERE
from trainshed.core.bucket import NOBODY
from trainshed.core.errors import Forbidden, TrainshedError, Unauthenticated
from trainshed.core.supplies.image import hidden_sentence, is_seen, project_in


def permitted(method: Method) -> Handler:
    """Its handler, which raises Forbidden with the reason for callers without the permission."""

    async def answered(call: Call) -> Reply:
        try:
            if _may_end(call.principal):
                return await _answered_as_long(call, method)
            await _check(call, method)
            reply = await method.handler(call)
        except (Forbidden, Unauthenticated) as error:
            call.trace.reason = error.message
            raise
        return _lasting_talk(reply, call) if isinstance(reply, SocketAnswer) else reply

    return answered


def _may_end(principal: Principal) -> bool:
    """Whether what it may do can end while it asks."""
    return principal.kind is PrincipalKind.ACCOUNT or bool(principal.session)


async def _answered_as_long(call: Call, method: Method) -> Reply:
    call = replace(call, principal=call.rights.of(call.principal))  # its body may have taken long
    await _check(call, method)
    lasting = LastingRights(call.rights, call.principal, call.needs)
    if method.streams:
        return _lasting(await method.handler(replace(call, chunks=lasting.chunks(call.chunks))), lasting)
    if not method.permission.reads:  # what changes something is not left half done
        return _lasting(await method.handler(call), lasting)
    with lasting.watched(), lasting.waiting():
        reply = await method.handler(call)
    return _lasting(reply, lasting)


def _lasting(reply: Reply, lasting: LastingRights) -> Reply:
    """The reply, of which nothing comes once the rights have ended."""
    match reply:
        case StreamAnswer():
            return replace(reply, chunks=lasting.chunks(reply.chunks, shows_end=reply.shows_end))
        case RawAnswer(content=AsyncIterator() as chunks):
            return replace(reply, content=lasting.chunks(chunks))
        case _:
            return reply


def _lasting_talk(reply: SocketAnswer, call: Call) -> SocketAnswer:
    if not _may_end(reply.principal):
        return reply
    lasting = LastingRights(call.rights, reply.principal, [reply.need])

    async def hold(channel: SocketChannel) -> None:
        try:
            with lasting.watched(), lasting.waiting():
                await reply.hold(channel)
        except RightsEnded as ended:
            await channel.say(reply.last_words(ended.message))

    return replace(reply, hold=hold)


async def _check(call: Call, method: Method) -> None:
    permission = method.permission
    require(call, permission, _project(call, method))
    if call.principal.kind is PrincipalKind.OWNER:
        # The owner may use every bucket: spare the lookup, unless others read what was done with theirs.
        if call.trace.finds_projects and not permission.reads:
            with contextlib.suppress(TrainshedError):
                for name in _buckets(call):
                    await _look(call, name)
        return
    for name in _buckets(call):
        require(call, permission, Resource(await _look(call, name), bucket=name))


async def _look(call: Call, bucket: str) -> str:
    """Whose the bucket is. The last one that is looked up is the one that is changed."""
    project = (await call.look(bucket)).project
    call.trace.project = "" if project in NOBODY else project
    return project


def _project(call: Call, method: Method) -> Resource | None:
    """The project that the call names; None where it names none."""
    permission, of_account = method.permission, call.principal.kind is PrincipalKind.ACCOUNT
    if method.of_server:
        return Resource(EVERYWHERE)
    if of_account and "project" in call.path:
        return Resource(call.path["project"])
    if permission is Permission.BUCKETS_LIST or (of_account and permission is Permission.BUCKETS_WRITE):
        return Resource(call.query.get("project", ""))
    return None


def require(call: Call, permission: Permission, resource: Resource | None) -> None:
    """For handlers too, of calls that name projects in their bodies."""
    decision = allowed(call.principal, permission, resource)
    if not decision:
        raise Forbidden(decision.reason)
    call.needs.append((permission, resource))


def allowed_image(call: Call, name: str) -> str:
    """The name of an image; Forbidden where it is named after a project that the caller may not see."""
    if not is_seen(name, call.principal):
        if project := project_in(name):
            require(call, Permission.IMAGES_READ, Resource(project))
        raise Forbidden(hidden_sentence(name))
    return name


def _buckets(call: Call) -> Iterator[str]:
    """Every bucket the call names; the last is the one into which it writes."""
    if source := call.headers.get("x-goog-copy-source", ""):
        yield unquote(source).lstrip("/").partition("/")[0]
    for key in ("bucket", "target"):
        if key in call.path:
            yield call.path[key]
