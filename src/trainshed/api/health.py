"""/healthz: whether the server runs, and its version. It needs no token."""

from dataclasses import dataclass

from trainshed.api.call import Call, Json

HEALTH = "/healthz"


@dataclass(slots=True)
class HealthHandlers:
    version: str
    provider: str = ""  # what people call the provider they may sign in with

    async def check(self, call: Call) -> Json:
        provider: Json = {"provider": self.provider} if self.provider else {}
        return {"status": "ok", "version": self.version, **provider}
