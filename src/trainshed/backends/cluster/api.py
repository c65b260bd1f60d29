"""ClusterApi: the calls that the cluster backend makes to a Kubernetes API server, in plain JSON.

Everything else in this package calls it. It knows addresses, credentials and failures, and nothing of jobs.
lightkube reads the kubeconfig or the service account and signs the requests. Every call ends: with an answer,
or with an ApiFault that says whether the server refused (with its words) or cannot be reached.
"""

import asyncio
import json
import os
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import httpx2
from lightkube.config.client_adapter import AsyncClient as signed_client
from lightkube.config.client_adapter import ConnectionParams
from lightkube.config.kubeconfig import DEFAULT_KUBECONFIG, KubeConfig, SingleConfig
from lightkube.core.exceptions import ConfigError

from trainshed.backends.cluster.objects import Object, parts
from trainshed.core.errors import Unavailable

FORBIDDEN = 403
OPENED = "OPENED"  # the type of an event of ours: the watch has begun

_TIMEOUT = 20.0  # seconds for an answer
_MANY_TIMEOUT = 60.0  # seconds for an answer about many objects: the server has no more time itself
_JSON, _METADATA = "application/json", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_AT_ONCE = 32  # calls: more would wait for a connection, and some of them too long
_WATCHED = 60  # seconds after which a watch ends and the next begins
_MERGE = "application/merge-patch+json"
_ABSENT = 60.0  # seconds for which it counts that a kind is not served: somebody may install it
_GROUPS = {  # all others are in /api/v1
    "leases": "/apis/coordination.k8s.io/v1",
    "metrics": "/apis/metrics.k8s.io/v1beta1",
    "networkpolicies": "/apis/networking.k8s.io/v1",
}
# Kinds that not every cluster serves: their group, and the versions whose fields are known here.
_OPTIONAL = {
    "workloads": ("kueue.x-k8s.io", ("v1beta2", "v1beta1")),
    "localqueues": ("kueue.x-k8s.io", ("v1beta2", "v1beta1")),
    "podgroups": ("scheduling.k8s.io", ("v1beta1",)),
}
_NAMES = {"metrics": "nodes"}  # of kinds that another group calls the same
_NAMESPACES = {"leases": "kube-node-lease"}  # all others are in the namespace of the settings
_CLUSTER_WIDE = frozenset({"nodes", "metrics"})


class ApiFault(Exception):
    """The API server refused, or cannot be reached (status 0)."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status, self.reason, self.message = status, reason, message

    @property
    def is_missing(self) -> bool:
        return self.status == 404

    @property
    def is_there_already(self) -> bool:
        return self.status == 409 and self.reason == "AlreadyExists"

    @property
    def is_expired(self) -> bool:
        """The history that a watch wanted to go on from is gone."""
        return self.status == 410

    @property
    def passing(self) -> bool:
        """It may go well later, with nothing changed."""
        return self.status in (0, 408, 429) or self.status >= 500

    def as_unavailable(self, what: str) -> Unavailable:
        return Unavailable(f"{what}: {self.message}")


def find_config(path: str = "", context: str = "") -> SingleConfig:
    """The credentials in that kubeconfig or in $KUBECONFIG; else the pod's own; else of ~/.kube/config.

    A pod has no contexts: one that is named is looked for in a file. The namespace is that of the context or
    of the pod. A pod's token is read again as soon as the API refuses it, since Kubernetes renews it.
    """
    path = path or os.environ.get("KUBECONFIG", "") or (DEFAULT_KUBECONFIG if context else "")
    try:
        config = (KubeConfig.from_file(path) if path else KubeConfig.from_env()).get(context or None)
    except (ConfigError, OSError, KeyError, ValueError) as error:
        raise Unavailable(f"There is no Kubernetes configuration that can be used: {error}.") from error
    if config is None:
        raise Unavailable("The Kubernetes configuration names no current context. Name one with --context.")
    if config.user is not None and config.user.exec is not None:
        # The answer of a plugin is the same in v1, which lightkube does not know yet.
        config.user.exec.apiVersion = config.user.exec.apiVersion.replace(".io/v1", ".io/v1beta1").replace(
            "v1beta1beta1", "v1beta1"
        )
    return config


class ClusterApi:
    def __init__(self, config: SingleConfig, namespace: str = "") -> None:
        self.namespace = namespace or config.namespace
        timeout = httpx2.Timeout(_TIMEOUT)
        self._client = signed_client(config, ConnectionParams(timeout=timeout, trust_env=False))
        self._calls = asyncio.Semaphore(_AT_ONCE)
        self._served: dict[str, str] = {}  # where optional kinds are
        self._absent: dict[str, float] = {}  # when the cluster was last asked for those that it lacks

    async def version(self) -> tuple[int, int]:
        """As (1, 20)."""
        answer = await self._call("GET", "/version")
        digits = [re.sub(r"\D.*", "", str(answer.get(part) or "")) for part in ("major", "minor")]
        return int(digits[0] or 0), int(digits[1] or 0)

    async def serves(self, kind: str) -> bool:
        """Whether the cluster has this optional kind. It is asked once, and later only for what it lacked."""
        now = time.monotonic()
        if kind in self._served or now < self._absent.get(kind, float("-inf")) + _ABSENT:
            return kind in self._served
        group, versions = _OPTIONAL[kind]
        for version in versions:
            try:
                answer = await self._call("GET", f"/apis/{group}/{version}")
            except ApiFault as fault:
                if fault.passing:
                    raise
                continue
            if any(row.get("name") == kind for row in parts(answer, "resources")):
                self._served[kind] = f"/apis/{group}/{version}"
                return True
        self._absent[kind] = now
        return False

    async def close(self) -> None:
        await self._client.aclose()

    async def get(self, kind: str, name: str) -> Object:
        return await self._call("GET", self.path(kind, name))

    async def list(
        self, kind: str, labels: str = "", *, fields: str = "", everywhere: bool = False
    ) -> Object:
        params = _selected(labels, fields)
        return await self._call("GET", self.path(kind, everywhere=everywhere), params=params)

    async def create(self, kind: str, body: Mapping[str, Any]) -> Object:
        return await self._call("POST", self.path(kind), body=body)

    async def make(self, kind: str, body: Mapping[str, Any]) -> Object | None:
        """Create it; None where it is there already."""
        try:
            return await self.create(kind, body)
        except ApiFault as fault:
            if not fault.is_there_already:
                raise
            return None

    async def patch(self, kind: str, name: str, body: Mapping[str, Any]) -> Object:
        """What it answers is no more than the metadata."""
        path = self.path(kind, name)
        return await self._call("PATCH", path, body=body, content=_MERGE, accept=_METADATA)

    async def delete(self, kind: str, name: str, *, grace: int | None = None, version: str = "") -> None:
        """Deleting what is not there is no fault. With a version: only if it has not changed since."""
        body: Object = {"propagationPolicy": "Background"}
        if version:
            body["preconditions"] = {"resourceVersion": version}
        if grace is not None:
            body["gracePeriodSeconds"] = grace
        try:
            await self._call("DELETE", self.path(kind, name), body=body)
        except ApiFault as fault:
            if not fault.is_missing:
                raise

    async def ask(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Object:
        """Any other call, by its path."""
        return await self._call(method, path, params=params, body=body)

    async def delete_all(self, kind: str, labels: str) -> None:
        """All with these labels. The server takes one after the other; what it has done stays done."""
        body: Object = {"propagationPolicy": "Background", "gracePeriodSeconds": 0}
        params = {"labelSelector": labels}
        await self._call(
            "DELETE", self.path(kind), params=params, body=body, accept=_METADATA_LIST, seconds=_MANY_TIMEOUT
        )

    async def watch(
        self, kind: str, since: str, labels: str = "", *, fields: str = "", everywhere: bool = False
    ) -> AsyncGenerator[Object]:
        """First OPENED, then the events after that version. Ends by itself; ApiFault where it breaks."""
        params = {
            "watch": "1",
            "resourceVersion": since,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(_WATCHED),
            **_selected(labels, fields),
        }
        timeout = httpx2.Timeout(_TIMEOUT, read=_WATCHED + _TIMEOUT)
        path = self.path(kind, everywhere=everywhere)
        try:
            async with self._client.stream("GET", path, params=params, timeout=timeout) as answer:
                if answer.status_code >= 400:
                    raise _fault(answer.status_code, await answer.aread())
                yield {"type": OPENED}
                async for line in _lines(answer.aiter_bytes()):
                    yield _event(json.loads(line))
        except (httpx2.HTTPError, ConfigError, OSError, ValueError) as error:
            raise _unreachable(error) from error

    def websocket(self, name: str, call: str, params: Mapping[str, Any]) -> AbstractAsyncContextManager[Any]:
        """A session of `portforward` or `exec` with a pod, in the protocol that all versions know."""
        path = f"{self.path('pods', name)}/{call}"
        return self._client.websocket(
            path, subprotocols=["v4.channel.k8s.io"], params=dict(params), timeout=_TIMEOUT
        )

    def path(self, kind: str, name: str = "", *, everywhere: bool = False) -> str:
        base = self._served.get(kind) or _GROUPS.get(kind, "/api/v1")
        if kind not in _CLUSTER_WIDE and not everywhere:
            base += f"/namespaces/{_NAMESPACES.get(kind, self.namespace)}"
        base += f"/{_NAMES.get(kind, kind)}"
        return f"{base}/{name}" if name else base

    async def _call(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        content: str = _JSON,
        accept: str = _JSON,
        seconds: float = _TIMEOUT,
    ) -> Object:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": content, "Accept": accept}
        try:
            async with self._calls:
                answer = await self._client.request(
                    method, path, params=params, content=data, headers=headers, timeout=seconds
                )
        except (httpx2.HTTPError, ConfigError, OSError) as error:
            raise _unreachable(error) from error
        if answer.status_code >= 400:
            raise _fault(answer.status_code, answer.content)
        try:
            return answer.json()
        except ValueError as error:
            raise _unreachable(error) from error


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """As the client would do it for text, at half the cost: much of what a large cluster says comes here."""
    begun: list[bytes] = []
    async for piece in pieces:
        first, *others = piece.split(b"\n")
        begun.append(first)
        if others:
            for line in (b"".join(begun), *others[:-1]):
                if line:
                    yield line
            begun = [others[-1]]
    if line := b"".join(begun):
        yield line


def _selected(labels: str, fields: str) -> dict[str, str]:
    chosen = {"labelSelector": labels, "fieldSelector": fields}
    return {name: text for name, text in chosen.items() if text}


def _fault(status: int, content: bytes) -> ApiFault:
    try:
        answer: Object = json.loads(content)
        words = str(answer.get("message") or content.decode())
        return ApiFault(status, str(answer.get("reason") or ""), words)
    except (ValueError, AttributeError):
        text = content.decode(errors="replace").strip()[:300]
        return ApiFault(status, "", text or f"it answers with status {status}")


def _event(event: Object) -> Object:
    if event.get("type") == "ERROR":
        status: Object = event.get("object") or {}
        raise ApiFault(int(status.get("code") or 500), str(status.get("reason")), str(status.get("message")))
    return event


def _unreachable(error: BaseException) -> ApiFault:
    words = str(error) or type(error).__name__
    return ApiFault(0, "", f"the Kubernetes API cannot be reached ({words})")
