"""Checks each call against the permission of its row. Every `Route` sends its calls through here.

It finds the buckets that the call names, and their projects; `core.permission.allowed` decides.
"""

from collections.abc import Iterator
from urllib.parse import unquote

from trainshed.api.call import Call, Handler, Method, Reply
from trainshed.core.errors import Forbidden
from trainshed.core.permission import Permission, PrincipalKind, Resource, allowed
from trainshed.core.role import EVERYWHERE


def permitted(method: Method) -> Handler:
    """Its handler, which raises Forbidden with the reason for callers without the permission."""

    async def answered(call: Call) -> Reply:
        await _check(call, method)
        return await method.handler(call)

    return answered


async def _check(call: Call, method: Method) -> None:
    permission = method.permission
    require(call, permission, _project(call, method))
    if call.principal.kind is PrincipalKind.OWNER:
        return  # the owner may use every bucket: spare the lookup
    for name in _buckets(call):
        bucket = await call.look(name)
        require(call, permission, Resource(bucket.project, bucket=name))


def _project(call: Call, method: Method) -> Resource | None:
    """The project that the call names; None where it names none."""
    permission, of_account = method.permission, call.principal.kind is PrincipalKind.ACCOUNT
    if method.of_server:
        return Resource(EVERYWHERE)
    if of_account and "project" in call.path:
        return Resource(call.path["project"])
    if permission is Permission.BUCKETS_LIST or (of_account and permission is Permission.BUCKETS_WRITE):
        return Resource(call.query.get("project", ""))
    return None


def require(call: Call, permission: Permission, resource: Resource | None) -> None:
    """For handlers too, of calls that name projects in their bodies."""
    decision = allowed(call.principal, permission, resource)
    if not decision:
        raise Forbidden(decision.reason)


def _buckets(call: Call) -> Iterator[str]:
    """Every bucket the call names."""
    for key in ("bucket", "target"):
        if key in call.path:
            yield call.path[key]
    if source := call.headers.get("x-goog-copy-source", ""):
        yield unquote(source).lstrip("/").partition("/")[0]
