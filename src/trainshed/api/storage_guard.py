"""What a job may ask of the storage API: objects of its project's buckets, and a list of these buckets.

Every handler of that API is called through here, those inside of a batch too. Who came with the server's own
token may do everything, and passes.
"""

from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import unquote

from trainshed.api.call import Call, Handler, Reply
from trainshed.core.errors import Forbidden


def guarded(handler: Handler, *, makes: bool = False, lists: bool = False) -> Handler:
    """The handler for those who may use it. It `makes`, changes or removes buckets, or `lists` them."""

    async def answered(call: Call) -> Reply:
        right = call.right
        if right is None:
            return await handler(call)
        if makes:
            raise Forbidden(
                f"Job {right.job} may read and write objects, not make, change or remove buckets."
            )
        await right.check(_buckets(call))
        if lists:
            project = right.project_of(call.query.get("project", ""))
            call = replace(call, query={**call.query, "project": project})
        return await handler(call)

    return answered


def _buckets(call: Call) -> Iterator[str]:
    """Every bucket the call names."""
    for key in ("bucket", "target"):
        if key in call.path:
            yield call.path[key]
    if source := call.headers.get("x-goog-copy-source", ""):
        yield unquote(source).lstrip("/").partition("/")[0]
