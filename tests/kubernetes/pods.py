"""Pods as the tests of this folder make them, and what became of them."""

from typing import Any

from tests.kubernetes.cluster import Cluster, wait_for

ENDED = ("Succeeded", "Failed")


def make(cluster: Cluster, namespace: str, name: str, words: list[str], **spec: Any) -> None:
    """One container with the image of all tests; `limits` are the container's, all else the pod's."""
    container: dict[str, Any] = {"name": "main", "image": cluster.image, "imagePullPolicy": "IfNotPresent"}
    container |= {
        "command": words,
        "resources": {"limits": spec.pop("limits", {})},
        **spec.pop("container", {}),
    }
    pod = {
        "metadata": {"name": name, "labels": {"app": "test"}},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
            **spec,
        },
    }
    cluster.ask("POST", f"/api/v1/namespaces/{namespace}/pods", pod)


def on(node: str) -> dict[str, str]:
    return {"kubernetes.io/hostname": node}


def get(cluster: Cluster, namespace: str, name: str) -> Any:
    return cluster.ask("GET", f"/api/v1/namespaces/{namespace}/pods/{name}")


def wait_until(cluster: Cluster, namespace: str, name: str, *phases: str) -> Any:
    def look() -> Any:
        pod = get(cluster, namespace, name)
        return pod if pod["status"].get("phase") in phases else None

    return wait_for(look, f"the pod {name} is {' or '.join(phases)}")


def end_of(cluster: Cluster, namespace: str, name: str) -> Any:
    """How its container ended: exitCode and reason."""
    pod = wait_until(cluster, namespace, name, *ENDED)
    return pod["status"]["containerStatuses"][0]["state"]["terminated"]


def log_of(cluster: Cluster, namespace: str, name: str) -> str:
    answer = cluster.api.get(f"/api/v1/namespaces/{namespace}/pods/{name}/log")
    assert answer.ok, answer.text
    return answer.text
