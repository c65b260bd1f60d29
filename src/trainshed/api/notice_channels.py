"""noticeChannels: create, list, get, delete, and test one. A channel is told when jobs end, fail or hang.

ownNoticeChannels are the same for the caller's own jobs. Whoever lacks `notices.write` may only have mail
sent to their own account there: the server sends to whatever address a channel names.
"""

from dataclasses import dataclass

from trainshed.api.call import Call, Json
from trainshed.core.accounts.permission import Permission
from trainshed.core.errors import Invalid, NotFound, Violation
from trainshed.core.notice import ChannelFigures
from trainshed.core.notice_port import Delivery
from trainshed.service.notices import ChannelRequest, NoticeService
from trainshed.wire.notice_channel import NAME, parse_channel, render_channel

_NO_NAME = "is needed: nobody knows whose jobs are meant. The command line sends the name of LOGNAME."


@dataclass(slots=True)
class NoticeChannelHandlers:
    notices: NoticeService
    is_own: bool = False  # about the caller's own jobs

    async def create(self, call: Call) -> Json:
        """The parameter channelId is its name. A name that exists is refused. "-" as project: of all."""
        name, own = call.query.get("channelId", ""), self._user(call) if self.is_own else ""
        asked = parse_channel(name, call.body, own if self.is_own and not _may_write(call) else None)
        request = ChannelRequest(
            name=name,
            way=asked.chosen_way,
            address=getattr(asked, asked.chosen_way.value),
            on=asked.kinds,
            labels=dict(asked.labels),
            secret=asked.secret,
            owner=call.submitter(),
            user=own or asked.user,
        )
        channel, secret = await self.notices.add(call.path["project"], request)
        return render_channel(channel, ChannelFigures(), secret)

    async def find(self, call: Call) -> Json:
        """Channels of the whole server only for those who may write them: others' addresses are in them."""
        channels = await self.notices.find(
            call.path["project"], self._user(call), with_servers=_may_write(call)
        )
        return {"noticeChannels": [render_channel(*channel) for channel in channels]}

    async def get(self, call: Call) -> Json:
        return render_channel(*await self.notices.get(*self._place(call)))

    async def delete(self, call: Call) -> Json:
        await self.notices.remove(*self._place(call))
        return {}

    async def test(self, call: Call) -> Json:
        answer = await self.notices.test(*self._place(call))
        return {"delivered": answer.delivery is Delivery.DELIVERED, "answer": answer.words}

    def _place(self, call: Call) -> tuple[str, str, str]:
        channel = call.path["channel"]
        if not NAME.fullmatch(channel):
            raise NotFound(f"There is no method or channel '{channel[:200]}'.")
        return call.path["project"], channel, self._user(call)

    def _user(self, call: Call) -> str:
        """Whose jobs it is about: the caller's, or those of the parameter `user`; empty: everybody's."""
        if not self.is_own:
            return call.query.get("user", "")
        if not (user := call.submitter()):
            raise Invalid((Violation("X-Trainshed-User", _NO_NAME),))
        return user


def _may_write(call: Call) -> bool:
    return Permission.NOTICES_WRITE in call.principal.rights
