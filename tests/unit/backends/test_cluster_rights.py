"""The table of rights is what the code calls and what deploy/ grants: nothing more, nothing less."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from trainshed.backends.cluster import rights
from trainshed.backends.cluster.pod import HOME, PORT
from trainshed.backends.cluster.rights import LEASES, QUEUE_RIGHTS, RIGHTS, Reach, Right

FOLDER = Path(rights.__file__).parent
RENDERED = Path(__file__).parents[3] / "deploy" / "trainshed.yaml"
# Run by administrators, with their own rights.
NOT_THE_SERVER = {"release.py", "checks.py"}
CALLS = {verb: verb for verb in ("get", "list", "create", "patch", "delete")} | {
    "delete_all": "deletecollection"
}
GROUPS = {
    "leases": "coordination.k8s.io",
    "metrics": "metrics.k8s.io",
    "networkpolicies": "networking.k8s.io",
    "podgroups": "scheduling.k8s.io",
    "localqueues": "kueue.x-k8s.io",
    "workloads": "kueue.x-k8s.io",
}
Grant = tuple[Reach, str, str, str]  # where, group, resource, verb


def called() -> set[Grant]:
    """What the modules of the backend call, read from their text."""
    grants: set[Grant] = set()
    for path in FOLDER.glob("*.py"):
        if path.name not in NOT_THE_SERVER:
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call):
                    grants |= set(grants_of(node))
    return grants


def grants_of(call: ast.Call) -> Iterator[Grant]:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    texts = [arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    if not texts:
        return
    everywhere = any(keyword.arg == "everywhere" for keyword in call.keywords)
    if name == "ObjectCache":
        for verb in ("list", "watch"):
            yield place(texts[0], everywhere), group(texts[0]), texts[0], verb
    elif name == "websocket":  # GET, which newer versions count as `create`
        yield from ((Reach.NAMESPACE, "", f"pods/{texts[0]}", verb) for verb in ("create", "get"))
    elif name == "make":
        yield Reach.NAMESPACE, group(texts[0]), texts[0], "create"
    elif name in CALLS and isinstance(call.func, ast.Attribute):
        of = call.func.value
        if (of.attr if isinstance(of, ast.Attribute) else getattr(of, "id", "")) in ("_api", "api"):
            resource = "nodes" if texts[0] == "metrics" else texts[0]
            yield place(texts[0], everywhere), group(texts[0]), resource, CALLS[name]


def place(kind: str, everywhere: bool) -> Reach:
    if kind == "leases":
        return Reach.NODE_LEASES
    return Reach.CLUSTER if everywhere or kind in ("nodes", "metrics") else Reach.NAMESPACE


def group(kind: str) -> str:
    return GROUPS.get(kind, "")


def in_table(rights: tuple[Right, ...] = RIGHTS) -> set[Grant]:
    return {(row.reach, row.group, row.resource, verb) for row in rights for verb in row.verbs}


def granted() -> set[Grant]:
    """What the rendered chart grants."""
    grants: set[Grant] = set()
    for item in filter(None, yaml.safe_load_all(RENDERED.read_text())):
        if item["kind"] in ("Role", "ClusterRole"):
            grants |= {(reach_of(item), *row) for rule in item["rules"] for row in rows(rule)}
    return grants


def reach_of(role: Any) -> Reach:
    if role["kind"] == "ClusterRole":
        return Reach.CLUSTER
    return Reach.NODE_LEASES if role["metadata"]["namespace"] == LEASES else Reach.NAMESPACE


def rows(rule: Any) -> Iterator[tuple[str, str, str]]:
    for api in rule["apiGroups"]:
        for resource in rule["resources"]:
            yield from ((api, resource, verb) for verb in rule["verbs"])


def test_every_call_of_the_api_has_a_right_and_every_right_a_call():
    # Watches begin with a list, so both stand for one cache.
    assert called() == in_table(RIGHTS + QUEUE_RIGHTS), (
        "change rights.py, deploy/helm and `make chart` together"
    )


def test_the_chart_grants_exactly_the_rights_of_the_table():
    assert granted() == in_table(), "change deploy/helm/trainshed/templates/rights.yaml, then `make chart`"


def test_the_policy_of_the_chart_lets_the_server_reach_the_init_of_pods():
    [policy] = [
        item
        for item in filter(None, yaml.safe_load_all(RENDERED.read_text()))
        if item["kind"] == "NetworkPolicy"
    ]
    to_pods = [rule for rule in policy["spec"]["egress"] if "to" in rule]
    assert [rule["ports"] for rule in to_pods] == [[{"port": PORT, "protocol": "TCP"}]]
    assert HOME in str(to_pods[0]["to"])
