"""shares: how the machines are divided among projects, and what each share uses. Our own methods."""

from dataclasses import dataclass

from trainshed.api.call import Call, Json, Method, row
from trainshed.core.accounts.permission import Permission
from trainshed.service.shares import ShareService
from trainshed.wire.share import render_share


@dataclass(slots=True)
class ShareHandlers:
    shares: ShareService

    async def find(self, call: Call) -> Json:
        return {"shares": [render_share(item) for item in await self.shares.rows()]}

    async def set(self, call: Call) -> Json:
        """The body has what the file has: {"share": {NAME: {…}}}; an empty one removes all shares."""
        self.shares.set(call.body)
        return await self.find(call)


def share_methods(shares: ShareHandlers) -> tuple[Method, ...]:
    return (
        row("GET", "/v1/shares", shares.find, Permission.SERVER_READ, of_server=True),
        row("PUT", "/v1/shares", shares.set, Permission.SHARES_WRITE),
    )
