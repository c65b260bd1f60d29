"""Is the server up, and which one is it: the only method that asks for no token."""

from dataclasses import dataclass

from trainshed.api.call import Call, Json


@dataclass(slots=True)
class HealthHandlers:
    version: str

    async def check(self, call: Call) -> Json:
        return {"status": "ok", "version": self.version}
