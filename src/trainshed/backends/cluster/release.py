"""`python -m trainshed.backends.cluster.release`: frees every pod that a server of ours keeps in a cluster.

`trainshed kube release` becomes this program. It needs no server and no home: for the day on which somebody
removes those first. A pod keeps our finalizer until its end is stored; without a server that never happens,
and neither the pod nor its namespace can be deleted.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from trainshed.backends.cluster import pod as pods
from trainshed.backends.cluster.api import ApiFault, ClusterApi, find_config
from trainshed.backends.cluster.grouping import MANAGED, grouping_of
from trainshed.backends.cluster.objects import Object, part, parts
from trainshed.core.errors import TrainshedError

_KINDS = ("pods", "services", "secrets", "configmaps", "networkpolicies", "podgroups")
_FINALIZERS = {pods.FINALIZER, MANAGED}
_GRACE = 30  # seconds for programs to end: without a server nobody takes their output


@dataclass(frozen=True, slots=True, order=True)
class Released:
    namespace: str
    kind: str
    name: str


async def release(api: ClusterApi, *, everywhere: bool, delete: bool) -> list[Released]:
    """Take our finalizer and Kueue's from all pods; with `delete`, remove all objects of ours too.

    Kueue's goes too since it waits for replacements of pods that nobody makes any more. Pods are deleted
    before what Kueue made of them: after that Kueue deletes them too, with a grace in which they wait for a
    server, and before Kubernetes 1.22 nodes keep to the grace that they were told first.
    """
    released: list[Released] = []
    for kind in _KINDS if delete else ("pods",):
        if kind == "podgroups" and not await api.serves(kind):
            continue
        items = parts(await api.list(kind, pods.HOME, everywhere=everywhere), "items")
        for item in items if delete else ():
            api.namespace, name = _place(item)
            await api.delete(kind, name, grace=_GRACE)
            released.append(Released(api.namespace, kind, name))
        if kind == "pods" and delete:
            released += await _delete_workloads(api, items)
        for item in items:
            finalizers = [str(word) for word in part(item, "metadata").get("finalizers") or ()]
            others = [word for word in finalizers if word not in _FINALIZERS]
            if others == finalizers:
                continue
            api.namespace, name = _place(item)
            await _set_finalizers(api, kind, name, others)
            if not delete:
                released.append(Released(api.namespace, kind, name))
    return sorted(released)


def _place(item: Object) -> tuple[str, str]:
    """The namespace and the name."""
    meta = part(item, "metadata")
    return str(meta["namespace"]), str(meta["name"])


async def _set_finalizers(api: ClusterApi, kind: str, name: str, finalizers: Sequence[str]) -> None:
    """Who else takes them may have been faster: then the object is gone."""
    try:
        await api.patch(kind, name, {"metadata": {"finalizers": list(finalizers) or None}})
    except ApiFault as fault:
        if not fault.is_missing:
            raise


async def _delete_workloads(api: ClusterApi, items: Sequence[Object]) -> list[Released]:
    """What Kueue made of these pods."""
    groups = [(_place(item)[0], grouping_of(item)) for item in items]
    queued = {(namespace, group.name) for namespace, group in groups if group.queue}
    if not queued or not await api.serves("workloads"):
        return []
    for api.namespace, name in sorted(queued):
        await api.delete("workloads", name)
    return [Released(namespace, "workloads", name) for namespace, name in queued]


def main() -> int:
    parser = argparse.ArgumentParser(prog="trainshed kube release")
    parser.add_argument("--kubeconfig", default="")
    parser.add_argument("--context", default="")
    parser.add_argument("--namespace", default="")
    parser.add_argument("--delete", action="store_true")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    try:
        released = asyncio.run(_released(args))
    except (TrainshedError, ApiFault) as error:
        print(f"error: {error.message}", file=sys.stderr)
        return 1
    verb = "deleted" if args.delete else "released"
    if args.json:
        rows = [{"namespace": row.namespace, "kind": row.kind, "name": row.name} for row in released]
        print(json.dumps({verb: rows}))
    else:
        for row in released:
            print(f"{verb} {row.kind}/{row.name} in namespace {row.namespace}")
        print(
            f"{len(released)} objects {verb}" if released else "nothing of trainshed is kept in this cluster"
        )
    return 0


async def _released(args: argparse.Namespace) -> list[Released]:
    api = ClusterApi(find_config(args.kubeconfig, args.context), args.namespace)
    try:
        return await release(api, everywhere=not args.namespace, delete=args.delete)
    finally:
        await api.close()


if __name__ == "__main__":
    sys.exit(main())
