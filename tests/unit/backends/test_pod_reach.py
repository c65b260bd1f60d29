"""What a pod is given so that its programs reach the server: everything in it is said here."""

from collections.abc import Mapping
from typing import cast

from trainshed.backends.cluster.pod import NOWHERE, PodFrame, pod_variables, render_pod
from trainshed.backends.cluster.pod_reach import reached, render_roots
from trainshed.backends.machine.google_redirect import GoogleRedirect
from trainshed.backends.machine.loopback import LoopbackPort, Streams
from trainshed.core.google import HOSTS, GoogleAccess
from trainshed.core.jobs.launch import Launch
from trainshed.core.names import ReplicaName, RunKey
from trainshed.core.queue.fleet import Placement

TOKEN = "job.7.secret"
SERVER = "http://box:8080"


async def nobody(port: int, job: str) -> Streams | None:
    return None


def a_launch(env: Mapping[str, str]) -> Launch:
    return Launch(
        key=RunKey(ReplicaName("7", 1, 0, 0), 0),
        image="python:3",
        command=("true",),
        args=(),
        env=env,
        google=GoogleAccess(SERVER, TOKEN),
        placement=Placement(pool=0, index=0, node="n", host="workerpool0-0", cpus=1, memory=1 << 28),
    )


def a_loopback() -> LoopbackPort:
    redirect = GoogleRedirect()
    redirect.roots = "/h/roots.pem"
    return LoopbackPort(address=SERVER, beyond=frozenset({8333}), google=redirect, dial=nobody)


def rendered(launch: Launch, low_ports: bool = False) -> dict[str, object]:
    launch, reach = reached(launch, a_loopback(), "roots-1", low_ports=low_ports)
    frame = PodFrame(home="abcd", init="init", namespace="n", reach=reach)
    return cast("dict[str, object]", render_pod(launch, frame)["spec"])


def env_of(spec: Mapping[str, object]) -> dict[str, object]:
    [container] = cast("list[dict[str, list[dict[str, object]]]]", spec["containers"])
    return {str(row["name"]): row.get("value", row.get("valueFrom")) for row in container["env"]}


def test_addresses_are_those_inside_and_values_with_the_token_are_in_the_secret():
    launch = a_launch({"STORAGE_EMULATOR_HOST": f"{SERVER}/t/{TOKEN}", "API": f"{SERVER}/", "OWN": "1"})
    env = env_of(rendered(launch))
    assert (env["API"], env["OWN"]) == ("http://127.0.0.1:8080/", "1")
    assert "secretKeyRef" in cast("dict[str, object]", env["STORAGE_EMULATOR_HOST"])
    inside, reach = reached(launch, a_loopback(), "roots-1", low_ports=False)
    frame = PodFrame(home="abcd", init="init", namespace="n", reach=reach)
    values = pod_variables(inside, frame).kept().values()
    assert f"http://127.0.0.1:8080/t/{TOKEN}" in values
    assert TOKEN not in str(rendered(launch))


def test_what_makes_libraries_trust_the_server_gives_way_to_the_image_and_to_the_job():
    env = env_of(rendered(a_launch({"SSL_CERT_FILE": "/mine"})))
    assert env["SSL_CERT_FILE"] == "/mine" and "TRAINSHED_DEFAULT_SSL_CERT_FILE" not in env
    assert env["TRAINSHED_DEFAULT_CURL_CA_BUNDLE"] == "/.trainshed/roots.pem"


def test_a_pod_has_the_ports_googles_names_and_the_roots():
    spec = rendered(a_launch({}))
    [container] = cast("list[dict[str, list[str]]]", spec["containers"])
    assert container["command"][4:] == [
        *("--begin", "--tunnel", "8080", "--tunnel", "443", "--tunnel", "8333"),
    ]
    assert spec["hostAliases"] == [{"ip": "127.0.0.1", "hostnames": list(HOSTS)}]
    assert {"name": "roots", "configMap": {"name": "roots-1"}} in cast("list[object]", spec["volumes"])
    assert "securityContext" not in spec


def test_any_user_may_listen_at_googles_port_where_the_cluster_lets_pods_ask_for_it():
    sysctl = {"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}
    assert rendered(a_launch({}), low_ports=True)["securityContext"] == {"sysctls": [sysctl]}


def test_a_pod_of_a_server_that_answers_in_no_pods_has_nothing_of_it():
    launch = a_launch({"A": SERVER})
    assert reached(launch, LoopbackPort(), "", low_ports=True) == (launch, NOWHERE)


def test_the_roots_are_named_after_their_content():
    first, second = render_roots("abcd", "a"), render_roots("abcd", "b")
    assert first["metadata"]["name"] != second["metadata"]["name"] and first["data"] == {"roots.pem": "a"}
