"""Use cases of notices: add, list, remove and test a channel.

`api/notice_channels.py` calls it. Whoever may add a channel makes the server send requests to any address,
also inside the private network: the permission `notices.write` says so. The API lets users without it add
mail to themselves only. Addresses and secrets go to files of their own, never into the database; answers
show an address without what may be secret in it.
"""

import contextlib
import secrets as random_source
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from trainshed.core.errors import Exhausted, Invalid, NotFound, TrainshedError, Violation
from trainshed.core.jobs.secret_port import SecretStore
from trainshed.core.notice import (
    MOST_OWN,
    ChannelFigures,
    Notice,
    NoticeChannel,
    NoticeKind,
    NoticeWay,
    check_notice,
)
from trainshed.core.notice_message import new_secret
from trainshed.core.notice_port import CarrierAnswer, Delivery, NoticeCarrier, NoticeStore
from trainshed.core.ports import Clock

EVERYWHERE = "-"  # in place of a project: the whole server
SECRET_BYTES = 32
NO_MAIL = "The server sends no mail: start it with --smtp smtp://HOST:587 and --smtp-from ADDRESS."


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelRequest:
    """A channel as it was asked for, already validated."""

    name: str
    way: NoticeWay
    address: str
    on: tuple[NoticeKind, ...]
    labels: Mapping[str, str]
    secret: str = ""  # empty: one is made
    owner: str = ""
    user: str = ""  # whose jobs it is told of; empty: everybody's


@dataclass(slots=True)
class NoticeService:
    store: NoticeStore
    secrets: SecretStore
    clock: Clock
    carrier: NoticeCarrier
    deliver: Callable[[NoticeChannel, Notice], Awaitable[CarrierAnswer]]  # one try
    resume: Callable[[str], None]  # the channel: its receiver answers again

    async def add(self, project: str, request: ChannelRequest) -> tuple[NoticeChannel, str]:
        """The new channel, and the secret that its requests are signed with; empty where they are not."""
        if request.way is NoticeWay.MAIL and not self.carrier.sends_mail:
            raise Invalid((Violation("mail", NO_MAIL),))
        secret = request.secret
        if request.way is NoticeWay.WEBHOOK and not secret:
            secret = new_secret(random_source.token_bytes(SECRET_BYTES))
        channel = NoticeChannel(
            id=random_source.token_hex(8),
            name=request.name,
            project="" if project == EVERYWHERE else project,
            way=request.way,
            shown=shown_address(request.way, request.address),
            on=request.on,
            labels=request.labels,
            created_at=self.clock.now(),
            owner=request.owner,
            user=request.user,
        )
        others = [
            other for other in self.store.channels.values() if request.user and other.user == request.user
        ]
        if len(others) >= MOST_OWN:
            raise Exhausted(f"{request.user} has {MOST_OWN} channels already, which is the most: remove one.")
        # Before the channel: a channel that is there has its address, wherever this process dies.
        await self.secrets.keep(channel.id, {0: {"address": request.address, "secret": secret}})
        try:
            await self.store.insert_channel(channel)
        except TrainshedError:
            await self.secrets.remove(channel.id)
            raise
        return channel, secret

    async def find(
        self, project: str, user: str = "", *, with_servers: bool = True
    ) -> tuple[tuple[NoticeChannel, ChannelFigures], ...]:
        """The channels that are told of the project's jobs, oldest first; "-" means all there are.

        With a user only those of that user. Without the server's, only those that belong to the project.
        """
        figures = await self.store.figures()
        projects = ("", project) if with_servers else (project,)
        return tuple(
            (channel, figures.get(channel.id, ChannelFigures()))
            for channel in self.store.channels.values()
            if (project == EVERYWHERE or channel.project in projects) and user in ("", channel.user)
        )

    async def get(self, project: str, name: str, user: str = "") -> tuple[NoticeChannel, ChannelFigures]:
        channel = self._named(project, name, user)
        return channel, (await self.store.figures()).get(channel.id, ChannelFigures())

    async def remove(self, project: str, name: str, user: str = "") -> None:
        await self._remove(self._named(project, name, user))

    async def _remove(self, channel: NoticeChannel) -> None:
        await self.store.delete_channel(channel)
        await self.secrets.remove(channel.id)

    async def remove_all_of(self, user: str) -> None:
        """Those about the user's jobs, in all projects."""
        for channel in [other for other in self.store.channels.values() if other.user == user]:
            with contextlib.suppress(NotFound):  # somebody else removed it
                await self._remove(channel)

    async def test(self, project: str, name: str, user: str = "") -> CarrierAnswer:
        """Send one notice now; what the receiver answers. Where it takes it, those that wait follow."""
        channel = self._named(project, name, user)
        notice = check_notice(channel, random_source.token_hex(8), self.clock.now())
        answer = await self.deliver(channel, notice)
        if answer.delivery is Delivery.DELIVERED:
            self.resume(channel.id)
        return answer

    def _named(self, project: str, name: str, user: str) -> NoticeChannel:
        own = "" if project == EVERYWHERE else project
        for channel in self.store.channels.values():
            if (channel.project, channel.name, channel.user) == (own, name, user):
                return channel
        where = f"project {own}" if own else "the whole server"
        where += f" for jobs of {user}" if user else ""
        raise NotFound(f"There is no channel '{name}' of {where}.")


def shown_address(way: NoticeWay, address: str) -> str:
    """A mail address is shown; of a URL only its scheme and host, as the rest may open the receiver."""
    if way is NoticeWay.MAIL:
        return address
    parts = urlsplit(address)
    port = f":{parts.port}" if parts.port else ""
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    hidden = "/…" if parts.path.strip("/") or parts.query else ""
    return f"{parts.scheme}://{host}{port}{hidden}"
