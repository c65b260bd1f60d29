"""Credentials for a registry, as the nodes of the namespace have them, else as this server has them.

`registry.py` is given them. Pods of ours have the service account `default`, so its imagePullSecrets are what
nodes pull with. A server that may not read service accounts or secrets has only its own files.
"""

import asyncio
import base64
import binascii
import contextlib

from trainshed.backends.cluster.api import ApiFault, ClusterApi, part, parts
from trainshed.backends.machine.registry_auth import Credentials, RegistryAuth, credentials_in
from trainshed.core.image import Reference

_ACCOUNT = "default"
_FILE = ".dockerconfigjson"


class PullSecrets:
    def __init__(self, api: ClusterApi, auth: RegistryAuth) -> None:
        self._api, self._auth = api, auth

    async def credentials(self, reference: Reference) -> Credentials | None:
        with contextlib.suppress(ApiFault):
            account = await self._api.get("serviceaccounts", _ACCOUNT)
            for row in parts(account, "imagePullSecrets"):
                if (known := await self._in_secret(str(row.get("name")), reference)) is not None:
                    return known
        return await asyncio.to_thread(self._auth.credentials, reference)

    async def _in_secret(self, name: str, reference: Reference) -> Credentials | None:
        try:
            secret = await self._api.get("secrets", name)
            text = base64.b64decode(str(part(secret, "data").get(_FILE) or "")).decode()
        except (ApiFault, binascii.Error, ValueError):
            return None
        return credentials_in(text, reference)
