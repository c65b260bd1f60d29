"""noticeChannels: create, list, get, delete, and test one. A channel is told when jobs end, fail or hang."""

from dataclasses import dataclass

from trainshed.api.call import Call, Json
from trainshed.core.errors import NotFound
from trainshed.core.notice import ChannelFigures
from trainshed.core.notice_port import Delivery
from trainshed.service.notices import ChannelRequest, NoticeService
from trainshed.wire.notice_channel import NAME, parse_channel, render_channel


@dataclass(slots=True)
class NoticeChannelHandlers:
    notices: NoticeService

    async def create(self, call: Call) -> Json:
        """The parameter channelId is its name. A name that exists is refused. "-" as project: of all."""
        name = call.query.get("channelId", "")
        asked = parse_channel(name, call.body)
        request = ChannelRequest(
            name=name,
            way=asked.chosen_way,
            address=getattr(asked, asked.chosen_way.value),
            on=asked.kinds,
            labels=dict(asked.labels),
            secret=asked.secret,
            owner=call.submitter(),
        )
        channel, secret = await self.notices.add(call.path["project"], request)
        return render_channel(channel, ChannelFigures(), secret)

    async def find(self, call: Call) -> Json:
        channels = await self.notices.find(call.path["project"])
        return {"noticeChannels": [render_channel(*channel) for channel in channels]}

    async def get(self, call: Call) -> Json:
        return render_channel(*await self.notices.get(*_place(call)))

    async def delete(self, call: Call) -> Json:
        await self.notices.remove(*_place(call))
        return {}

    async def test(self, call: Call) -> Json:
        answer = await self.notices.test(*_place(call))
        return {"delivered": answer.delivery is Delivery.DELIVERED, "answer": answer.words}


def _place(call: Call) -> tuple[str, str]:
    channel = call.path["channel"]
    if not NAME.fullmatch(channel):
        raise NotFound(f"There is no method or channel '{channel[:200]}'.")
    return call.path["project"], channel
