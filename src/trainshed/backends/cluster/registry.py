"""Asks a registry how an image is to be run: its entry point, user, working directory and variables.

`images.py` calls it for jobs that name no command: a pod begins with our init, so somebody has to know what
the image itself would begin. It reads two or three small documents and never a layer. Every address it is
sent to, by an image's name, a redirect or a token's realm, is judged before it is asked (registry_host.py).
Plain HTTP is spoken only to registries of this machine and of private networks that know no TLS, and no
credentials are sent that way except on this machine.
"""

import base64
import hashlib
import json
import platform
import ssl
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

import httpx2

from trainshed.backends.cluster.pod_template import ARCHITECTURES
from trainshed.backends.cluster.registry_token import Challenge, bearer_token, read_challenge
from trainshed.backends.machine.image_config import image_config
from trainshed.backends.machine.registry_auth import Credentials
from trainshed.backends.machine.registry_host import Resolve, host_of, inward_registry, resolve_host
from trainshed.core.supplies.image import HUB, ImageConfig, Reference
from trainshed.core.supplies.inward import inward, never_a_registry

_HUB_HOST = "registry-1.docker.io"
_INDEXES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
_MANIFESTS = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
_TIMEOUT = 15.0  # seconds for an answer
_MOST = 8 << 20  # bytes of a document
_MOST_HOPS = 5
_LOOPBACK = ("127.", "::1")


class RegistryFault(Exception):
    """A registry cannot be asked, or does not answer with an image. Its text is the end of a sentence."""

    def __init__(self, words: str, *, status: int = 0) -> None:
        super().__init__(words)
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryImage:
    """What a registry says of an image now."""

    reference: Reference  # by its digest: exactly this one
    config: ImageConfig


_Answer = TypeVar("_Answer")
FindCredentials = Callable[[Reference], Awaitable[Credentials | None]]


class RegistryClient:
    """`credentials` finds those for an image, if there are any."""

    def __init__(self, credentials: FindCredentials, resolve: Resolve = resolve_host) -> None:
        self._credentials, self._resolve = credentials, resolve

    async def read(self, reference: Reference, architectures: Collection[str] = ()) -> RegistryImage:
        """The image of that name for a node of one of these architectures. Raises RegistryFault."""
        return await self._asked(reference, lambda call: _read(call, reference, architectures))

    async def architectures(self, reference: Reference) -> frozenset[str]:
        """Those of the nodes that the image is for. Raises RegistryFault."""
        return await self._asked(reference, lambda call: _architectures(call, reference))

    async def _asked(
        self, reference: Reference, question: Callable[["RegistryCall"], Awaitable[_Answer]]
    ) -> _Answer:
        credentials = await self._credentials(reference)
        async with httpx2.AsyncClient(timeout=_TIMEOUT) as client:
            call = RegistryCall(client, reference, credentials, self._resolve)
            try:
                return await question(call)
            except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
                words = str(error) or type(error).__name__
                unreached = f"{reference.domain} cannot be reached from the server: {words}"
                raise RegistryFault(unreached) from error
            except (AttributeError, TypeError, ValueError) as error:
                raise RegistryFault("its documents are not those of an image") from error


async def _read(call: "RegistryCall", reference: Reference, architectures: Collection[str]) -> RegistryImage:
    path = f"/v2/{reference.path}"
    top = await call.get(f"{path}/manifests/{reference.digest or reference.tag}", (*_INDEXES, *_MANIFESTS))
    digest = _digest(top)
    if reference.digest.startswith("sha256:") and reference.digest != digest:
        raise RegistryFault(f"{reference.domain} answers with another image than {reference.digest}")
    manifest = _document(top)
    if rows := manifest.get("manifests"):
        chosen = _choose(cast("list[Mapping[str, Any]]", rows), architectures)
        manifest = _document(_checked(await call.get(f"{path}/manifests/{chosen}", _MANIFESTS), chosen))
    name, config = await _configuration(call, path, manifest)
    return RegistryImage(
        reference=replace(reference, tag="", digest=digest),
        config=image_config(
            name, config.get("config") or {}, architecture=str(config.get("architecture") or "")
        ),
    )


async def _architectures(call: "RegistryCall", reference: Reference) -> frozenset[str]:
    path = f"/v2/{reference.path}"
    accepted = (*_INDEXES, *_MANIFESTS)
    manifest = _document(await call.get(f"{path}/manifests/{reference.digest or reference.tag}", accepted))
    if rows := cast("list[Mapping[str, Any]]", manifest.get("manifests") or []):
        places: list[Mapping[str, Any]] = [row.get("platform") or {} for row in rows]
    else:
        places = [(await _configuration(call, path, manifest))[1]]
    return frozenset(str(place.get("architecture")) for place in places if place.get("os") == "linux")


async def _configuration(
    call: "RegistryCall", path: str, manifest: Mapping[str, Any]
) -> tuple[str, Mapping[str, Any]]:
    """The digest of an image's configuration, and what it says."""
    described: Mapping[str, Any] = manifest.get("config") or {}
    name = str(described.get("digest") or "")
    if not name:
        raise RegistryFault("its manifest is of a kind without a configuration")
    return name, _document(_checked(await call.get(f"{path}/blobs/{name}", ()), name))


def _choose(rows: list[Mapping[str, Any]], architectures: Collection[str]) -> str:
    """The digest of the manifest for these nodes."""
    machine = platform.machine()
    wanted = architectures or {ARCHITECTURES.get(machine, machine)}
    for row in rows:
        place: Mapping[str, Any] = row.get("platform") or {}
        if place.get("os") == "linux" and place.get("architecture") in wanted:
            return str(row.get("digest"))
    raise RegistryFault(f"there is none for Linux on {' or '.join(sorted(wanted))}")


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _checked(data: bytes, digest: str) -> bytes:
    if digest.startswith("sha256:") and _digest(data) != digest:
        raise RegistryFault("a document is not the one that was asked for")
    return data


def _document(data: bytes) -> dict[str, Any]:
    try:
        document: object = json.loads(data)
    except ValueError as error:
        raise RegistryFault("it answers with something else than JSON") from error
    if not isinstance(document, dict):
        raise RegistryFault("it answers with something else than an object")
    return cast("dict[str, Any]", document)


class RegistryCall:
    """Requests to the registry of one image, with whatever it wants to be shown."""

    def __init__(
        self,
        client: httpx2.AsyncClient,
        reference: Reference,
        credentials: Credentials | None,
        resolve: Resolve,
    ) -> None:
        self._client, self._credentials, self._resolve = client, credentials, resolve
        self._domain = reference.domain
        self._host = _HUB_HOST if reference.domain == HUB else reference.domain
        self._scheme = "https"
        self._shown: dict[str, str] = {}  # the header of authorization, once the registry has asked for it

    async def get(self, path: str, accept: tuple[str, ...]) -> bytes:
        status, data, challenge = await self._ask(path, accept)
        if status == 401 and challenge is not None and not self._shown:
            self._shown = await self._answer(challenge)
            status, data, challenge = await self._ask(path, accept)
        if status >= 400:
            raise _refusal(status, data)
        return data

    async def _ask(self, path: str, accept: tuple[str, ...]) -> tuple[int, bytes, Challenge | None]:
        try:
            return await self._follow(f"{self._scheme}://{self._host}{path}", accept)
        except (httpx2.ConnectError, httpx2.RemoteProtocolError, httpx2.ReadError) as error:
            if self._scheme == "http" or not await self._may_be_plain(error):
                raise
            self._scheme = "http"
            return await self._follow(f"{self._scheme}://{self._host}{path}", accept)

    async def _follow(self, url: str, accept: tuple[str, ...]) -> tuple[int, bytes, Challenge | None]:
        headers = {**({"Accept": ", ".join(accept)} if accept else {}), **self._shown}
        for _ in range(_MOST_HOPS):
            await self.judge(url)
            async with self._client.stream("GET", url, headers=headers) as answer:
                if answer.status_code in (301, 302, 303, 307, 308) and "location" in answer.headers:
                    url, before = str(answer.url.join(answer.headers["location"])), answer.url.host
                    if urlsplit(url).hostname != before:  # a store of blobs, which is no part of it
                        headers.pop("Authorization", None)
                    continue
                challenge = read_challenge(answer.headers.get("www-authenticate", ""))
                return answer.status_code, await bounded(answer), challenge
        raise RegistryFault(f"it sends on more than {_MOST_HOPS} times")

    async def _answer(self, challenge: Challenge) -> dict[str, str]:
        """The header by which the registry lets us in."""
        host = host_of(self._domain)
        on_this_machine = all(item.startswith(_LOOPBACK) for item in await self._resolve(host) or ("-",))
        known = self._credentials if self._scheme == "https" or on_this_machine else None
        if challenge.is_basic:
            if known is None or not known.user:
                plain = " over plain HTTP, and none are sent that way" if self._scheme == "http" else ""
                raise RegistryFault(f"{self._domain} wants credentials{plain}", status=401)
            word = base64.b64encode(f"{known.user}:{known.password}".encode()).decode()
            return {"Authorization": f"Basic {word}"}
        await self.judge(challenge.realm)
        if urlsplit(challenge.realm).scheme != "https" and not on_this_machine:
            known = None
        if token := await bearer_token(self._client, challenge, known):
            return {"Authorization": f"Bearer {token}"}
        raise RegistryFault(f"{self._domain} gives no access to it", status=401)

    async def judge(self, url: str) -> None:
        """RegistryFault for an address at which no registry can be."""
        place = urlsplit(url)
        if place.scheme not in ("http", "https") or not place.hostname:
            raise RegistryFault(f"it sends on to '{url[:100]}'")
        if self._domain == HUB and place.hostname == _HUB_HOST:
            return
        if place.hostname == host_of(self._domain):
            has_credentials = self._credentials is not None
            why = await inward_registry(self._domain, has_credentials=has_credentials, resolve=self._resolve)
        else:  # nobody here has chosen it, so it is not this machine
            why = never_a_registry(await self._resolve(place.hostname), is_own_name=False)
            why = f"it sends on to {place.hostname}, which leads to {why}" if why else ""
        if why:
            raise RegistryFault(why)

    async def _may_be_plain(self, error: Exception) -> bool:
        """Whether it failed because nobody speaks TLS there, in a network that is not everybody's."""
        if _is_of_certificate(error):
            return False
        addresses = await self._resolve(host_of(self._domain))
        return bool(addresses) and all(inward([item]) for item in addresses)


def _is_of_certificate(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError) or "certificate" in str(error).lower():
            return True
        error = error.__cause__ or error.__context__
    return False


async def bounded(answer: httpx2.Response) -> bytes:
    data = bytearray()
    async for piece in answer.aiter_bytes():
        data += piece
        if len(data) > _MOST:
            raise RegistryFault(f"it answers with more than {_MOST >> 20} MiB")
    return bytes(data)


def _refusal(status: int, data: bytes) -> RegistryFault:
    """With the registry's own words, as far as they are in the form that registries use."""
    try:
        errors = json.loads(data)["errors"]
        words = "; ".join(str(error.get("message") or error["code"]) for error in errors)
    except (ValueError, KeyError, TypeError, AttributeError):
        words = ""
    known = {401: "it wants other credentials", 403: "it gives no access", 404: "there is no such image"}
    words = words or known.get(status, f"it answers with status {status}")
    return RegistryFault(words[:500], status=status)
