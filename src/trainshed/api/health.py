"""/healthz: whether the server runs, and its version. It needs no token."""

from dataclasses import dataclass

from trainshed.api.call import Call, Json


@dataclass(slots=True)
class HealthHandlers:
    version: str

    async def check(self, call: Call) -> Json:
        return {"status": "ok", "version": self.version}
