"""Secrets of a project by name: create, add a version, list, get, delete; and a new key.

The paths are those of Secret Manager. There is no method that gives a value.
"""

from dataclasses import dataclass

from trainshed.api.call import Call, Json
from trainshed.service.named_secrets import NamedSecretService
from trainshed.wire.named_secret import parse_value, render_secret, render_version


@dataclass(slots=True)
class NamedSecretHandlers:
    secrets: NamedSecretService

    async def find(self, call: Call) -> Json:
        secrets = await self.secrets.all(call.path["project"])
        return {"secrets": [render_secret(secret) for secret in secrets], "totalSize": len(secrets)}

    async def create(self, call: Call) -> Json:
        """The parameter secretId is its name. What the body says of replication has no meaning here."""
        name = call.query.get("secretId", "")
        return render_secret(await self.secrets.create(call.path["project"], name, call.submitter()))

    async def get(self, call: Call) -> Json:
        return render_secret(await self.secrets.get(call.path["project"], call.path["secret"]))

    async def add_version(self, call: Call) -> Json:
        value = parse_value(call.body)
        place = call.path["project"], call.path["secret"]
        return render_version(await self.secrets.add_version(*place, value, call.submitter()))

    async def delete(self, call: Call) -> Json:
        await self.secrets.delete(call.path["project"], call.path["secret"])
        return {}

    async def rotate_key(self, call: Call) -> Json:
        return {"resealed": await self.secrets.rotate_key()}
