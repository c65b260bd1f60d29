"""A server in a pod speaks for its service account: namespace and token come from what is mounted."""

import os
import ssl
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from lightkube.config.kubeconfig import KubeConfig

from tests.kubernetes.cluster import Cluster, wait_for
from trainshed.backends.cluster.api import ApiFault, ClusterApi, find_config
from trainshed.core.errors import Unavailable

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]


@pytest.fixture
def account(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that Kubernetes mounts into every pod, and the variables that it sets."""
    (tmp_path / "ca.crt").write_text((cluster.place.certificates / "ca.crt").read_text())
    host, _, port = cluster.place.addresses.api.removeprefix("https://").partition(":")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
    monkeypatch.setenv("HOME", str(tmp_path))  # no kubeconfig there
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setattr(KubeConfig.from_env.__func__, "__defaults__", (str(tmp_path), "/none"))
    return tmp_path


def put(path: Path, text: str) -> None:
    """As the kubelet does: the file is another one from one moment to the next."""
    draft = path.with_suffix(".new")
    draft.write_text(text)
    os.replace(draft, path)


def new_token(cluster: Cluster, namespace: str, secret: str) -> str:
    """One that ends when the secret does."""
    base = f"/api/v1/namespaces/{namespace}"
    made = cluster.ask("POST", f"{base}/secrets", {"metadata": {"name": secret}})
    bound = {"kind": "Secret", "apiVersion": "v1", "name": secret, "uid": made["metadata"]["uid"]}
    spec = {
        "expirationSeconds": 600,
        "audiences": ["https://kubernetes.default.svc"],
        "boundObjectRef": bound,
    }
    answer = cluster.ask("POST", f"{base}/serviceaccounts/default/token", {"spec": spec})
    return str(answer["status"]["token"])


def knows(cluster: Cluster, token: str) -> bool:
    context = ssl.create_default_context(cafile=str(cluster.place.certificates / "ca.crt"))
    request = urllib.request.Request(f"{cluster.place.addresses.api}/apis")
    request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, context=context):
            return True
    except urllib.error.HTTPError as error:
        return error.code != 401


async def may_not_list(api: ClusterApi) -> bool:
    """Whether the API knows who asks: it says that this account may not, and not that it knows nobody."""
    with pytest.raises(ApiFault) as refused:
        await api.list("secrets")
    return refused.value.status == 403


async def test_a_token_that_was_renewed_is_read_again(cluster: Cluster, account: Path):
    with cluster.namespace() as namespace:
        first = new_token(cluster, namespace, "first")
        put(account / "namespace", namespace)
        put(account / "token", first)
        api = ClusterApi(find_config())
        try:
            assert api.namespace == namespace
            assert await may_not_list(api)
            put(account / "token", new_token(cluster, namespace, "second"))
            cluster.ask("DELETE", f"/api/v1/namespaces/{namespace}/secrets/first")
            wait_for(lambda: not knows(cluster, first), "that the first token is refused")
            assert await may_not_list(api)
        finally:
            await api.close()


def test_a_kubeconfig_that_somebody_names_wins_over_the_pods_own(
    cluster: Cluster, account: Path, monkeypatch: pytest.MonkeyPatch
):
    put(account / "namespace", "inside")
    put(account / "token", "any")
    assert find_config().namespace == "inside"
    monkeypatch.setenv("KUBECONFIG", str(cluster.place.kubeconfig))
    assert find_config().namespace == "default"
    monkeypatch.delenv("KUBECONFIG")
    assert find_config(str(cluster.place.kubeconfig)).namespace == "default"
    with pytest.raises(Unavailable, match="config not found"):  # a pod has no contexts
        find_config(context="lab")
