"""runtimes: list, build, follow, remove and prune the environments that jobs run in.

They are of the whole server, so that removing them is for those with a role everywhere.
"""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import cast

from trainshed.api.call import Call, Json, StreamAnswer
from trainshed.core.errors import Invalid, Violation
from trainshed.service.runtimes import RuntimeService
from trainshed.wire.runtime import render_runtime


@dataclass(slots=True)
class RuntimeHandlers:
    service: RuntimeService

    async def find(self, call: Call) -> Json:
        return {"runtimes": [render_runtime(item) for item in await self.service.all(call.principal)]}

    async def build(self, call: Call) -> Json:
        name, lines = call.body.get("name", ""), call.body.get("requirements", [])
        if not isinstance(name, str):
            raise Invalid((Violation("name", "must be a text."),))
        if not isinstance(lines, list) or not all(isinstance(x, str) for x in cast("list[object]", lines)):
            raise Invalid((Violation("requirements", "must be a list of texts."),))
        return render_runtime(self.service.build(name, tuple(cast("list[str]", lines)), call.path["project"]))

    async def follow(self, call: Call) -> StreamAnswer:
        updates = self.service.follow(call.path["runtime"], call.principal)
        first = await anext(updates)  # an unknown runtime is refused before the answer begins

        async def chunks() -> AsyncIterator[bytes]:
            yield _line(render_runtime(first))
            async for item in updates:
                yield _line(render_runtime(item))

        return StreamAnswer(chunks())

    async def remove(self, call: Call) -> Json:
        return render_runtime(await self.service.remove(call.path["runtime"], call.principal))

    async def prune(self, call: Call) -> Json:
        return {"removed": [render_runtime(item) for item in await self.service.prune()]}


def _line(body: Json) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode() + b"\n"
