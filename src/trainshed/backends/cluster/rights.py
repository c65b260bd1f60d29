"""The rights that a server needs in a cluster, in one table. Pure.

The doctor asks the cluster for each of them, and deploy/helm grants exactly these. A call of the API that is
not in it, and a row that no call needs, fail a test: so neither the table nor the chart grows by itself.
"""

from dataclasses import dataclass
from enum import StrEnum

LEASES = "kube-node-lease"  # the namespace in which nodes renew their leases


class Reach(StrEnum):
    """Where a right counts."""

    NAMESPACE = "the namespace of jobs"
    NODE_LEASES = f"namespace {LEASES}"
    CLUSTER = "the whole cluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """Verbs on one resource. A server does without it where `without` says how."""

    resource: str  # with its subresource: pods/portforward
    verbs: tuple[str, ...]
    reach: Reach = Reach.NAMESPACE
    group: str = ""
    without: str = ""  # what is worse then; empty: nothing works

    @property
    def is_optional(self) -> bool:
        return bool(self.without)


RIGHTS = (
    Right(resource="pods", verbs=("create", "delete", "deletecollection", "get", "list", "patch", "watch")),
    Right(resource="services", verbs=("create", "delete")),
    Right(resource="secrets", verbs=("create", "delete", "get", "patch")),
    Right(resource="configmaps", verbs=("create",)),
    Right(
        resource="serviceaccounts",
        verbs=("get",),
        without="what a private image runs by itself is asked with the server's own credentials only",
    ),
    Right(resource="events", verbs=("list", "watch"), without="it says less about why a pod does not start"),
    Right(
        resource="networkpolicies",
        verbs=("create", "delete"),
        group="networking.k8s.io",
        without="jobs that ask for an isolated network do not start",
    ),
    Right(
        resource="podgroups",
        verbs=("create", "delete"),
        group="scheduling.k8s.io",
        without="Kubernetes places the replicas of a job one by one",
    ),
    Right(resource="nodes", verbs=("list", "watch"), reach=Reach.CLUSTER),
    Right(
        resource="pods/portforward",
        verbs=("create", "get"),  # a WebSocket counts as `get`, and for newer versions as `create`
        without="a server that pods' addresses do not lead to cannot run jobs",
    ),
    Right(
        resource="pods",
        verbs=("list", "watch"),
        reach=Reach.CLUSTER,
        without="what pods of others take is not known, so jobs wait for Kubernetes instead of in the queue",
    ),
    Right(
        resource="leases",
        verbs=("list", "watch"),
        reach=Reach.NODE_LEASES,
        group="coordination.k8s.io",
        without="a lost node is noticed after 40 seconds instead of 15",
    ),
    Right(
        resource="nodes",
        verbs=("list",),
        reach=Reach.CLUSTER,
        group="metrics.k8s.io",
        without="what nodes do is not shown",
    ),
)
# Needed only where jobs wait in queues of Kueue.
QUEUE_RIGHTS = (
    Right(
        resource="localqueues",
        verbs=("get",),
        group="kueue.x-k8s.io",
        without="a queue that is not there is noticed later",
    ),
    Right(
        resource="workloads",
        verbs=("delete", "list", "watch"),
        group="kueue.x-k8s.io",
        without="it does not say why Kueue lets a job wait, and frees the quota of an attempt late",
    ),
)
