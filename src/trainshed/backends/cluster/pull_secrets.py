"""Credentials for a registry, as the nodes of the namespace have them, else as this server has them.

`registry.py` is given them. Nodes pull with the imagePullSecrets of a pod's template and with those of its
service account, so these are looked at. A server that may not read service accounts or secrets has only its
own files.
"""

import asyncio
import base64
import binascii
import contextlib

from trainshed.backends.cluster.api import ApiFault, ClusterApi
from trainshed.backends.cluster.objects import part, parts
from trainshed.backends.cluster.pod_template import NOTHING_MORE, PodTemplate
from trainshed.backends.machine.registry_auth import Credentials, RegistryAuth, credentials_in
from trainshed.core.supplies.image import Reference

_FILE = ".dockerconfigjson"


class PullSecrets:
    def __init__(self, api: ClusterApi, auth: RegistryAuth, template: PodTemplate = NOTHING_MORE) -> None:
        self._api, self._auth, self._template = api, auth, template

    async def credentials(self, reference: Reference) -> Credentials | None:
        with contextlib.suppress(ApiFault):
            account = await self._api.get("serviceaccounts", self._template.account)
            further = [str(row.get("name")) for row in parts(account, "imagePullSecrets")]
            for name in (*self._template.pull_secrets, *further):
                if (known := await self._in_secret(name, reference)) is not None:
                    return known
        return await asyncio.to_thread(self._auth.credentials, reference)

    async def _in_secret(self, name: str, reference: Reference) -> Credentials | None:
        try:
            secret = await self._api.get("secrets", name)
            text = base64.b64decode(str(part(secret, "data").get(_FILE) or "")).decode()
        except (ApiFault, binascii.Error, ValueError):
            return None
        return credentials_in(text, reference)
