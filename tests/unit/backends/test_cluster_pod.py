"""Pods as Kubernetes takes them: names, places, variables, secrets."""

import json
import re
from dataclasses import replace

import pytest

from trainshed.backends.cluster.pod import (
    FINALIZER,
    PodFrame,
    is_safe,
    node_affinity,
    pod_name,
    pod_variables,
    render_pod,
    render_policy,
    render_secret,
    render_service,
)
from trainshed.backends.cluster.pod_variables import NAMES, SEPARATOR, TEXT, TOKEN, CommonVariables
from trainshed.core.jobs.launch import Launch, RemoteRole
from trainshed.core.names import ReplicaName, RunKey
from trainshed.core.queue.fleet import Placement

FRAME = PodFrame(home="0a1b2c3d", init="trainshed-init-1", namespace="ml")
PLACE = Placement(pool=1, index=0, node="n1", host="workerpool1-0", cpus=1.5, memory=1 << 30)
LAUNCH = Launch(
    key=RunKey(ReplicaName("179", 2, 1, 0), 3),
    image="example/train:1",
    command=("python3",),
    args=("train.py",),
    placement=PLACE,
)


def container(launch: Launch) -> dict:
    return render_pod(launch, FRAME)["spec"]["containers"][0]


def env(launch: Launch) -> dict[str, object]:
    return {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in container(launch)["env"]}


def test_a_pod_is_named_after_its_run_and_kept_until_its_end_is_stored():
    pod = render_pod(LAUNCH, FRAME)
    assert pod["metadata"]["name"] == pod_name("0a1b2c3d", LAUNCH.key) == "ts-0a1b2c3d-179-2-workerpool1-0-3"
    assert pod["metadata"]["finalizers"] == [FINALIZER]
    assert pod["metadata"]["labels"]["trainshed.dev/job"] == "179"
    assert pod["spec"]["restartPolicy"] == "Never"


def test_two_servers_and_two_runs_never_share_the_name_of_a_pod():
    keys = [replace(LAUNCH.key, run=run) for run in (0, 1)]
    assert len({pod_name(home, key) for home in ("a", "b") for key in keys}) == 4


@pytest.mark.parametrize("job", ["Job", "a_b", "", "-a", "a" * 60, "a.b"])
def test_a_job_whose_id_kubernetes_would_refuse_is_not_safe(job: str):
    assert not is_safe(job)


@pytest.mark.parametrize(("cpus", "told"), [(2 / 3, "666m"), (0.57, "570m"), (1, "1000m"), (0.0001, "1m")])
def test_the_pods_of_a_gang_that_shares_a_node_ask_for_no_more_than_it_has(cpus: float, told: str):
    pod = render_pod(replace(LAUNCH, placement=replace(PLACE, cpus=cpus)), FRAME)
    assert pod["spec"]["containers"][0]["resources"]["limits"]["cpu"] == told


def test_a_pod_goes_to_the_node_of_its_placement_or_anywhere():
    affinity = render_pod(LAUNCH, FRAME)["spec"]["affinity"]["nodeAffinity"]
    [term] = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchFields"][0]["values"] == ["n1"]
    assert "affinity" not in render_pod(LAUNCH, FRAME, anywhere=True)["spec"]
    of_its_type = node_affinity([{"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}])
    frame = replace(FRAME, elsewhere=of_its_type)
    assert render_pod(LAUNCH, frame, anywhere=True)["spec"]["affinity"] == of_its_type


def test_a_pod_asks_for_what_its_replica_was_given():
    resources = container(replace(LAUNCH, placement=replace(PLACE, gpus=("0", "1"))))["resources"]
    assert resources["limits"] == {"cpu": "1500m", "memory": str(1 << 30), "nvidia.com/gpu": "2"}
    assert resources["requests"] == resources["limits"]


def test_kubernetes_finds_no_variables_of_its_own_in_commands_and_values():
    launch = replace(LAUNCH, command=("sh", "-c", "kill $$; echo $(HOME)"), env={"A": "$(B) $$"})
    assert container(launch)["args"][:3] == ["sh", "-c", "kill $$$$; echo $$(HOME)"]
    assert env(launch)["A"] == "$$(B) $$$$"


def test_values_of_secrets_are_in_the_secret_and_not_in_the_pod():
    launch = replace(LAUNCH, env={"KEY": "s3cret", "OPEN": "yes"}, secrets=frozenset({"KEY"}))
    assert "s3cret" not in str(render_pod(launch, FRAME))
    [(key, value)] = pod_variables(launch, FRAME).kept().items()
    reference = {"secretKeyRef": {"name": "ts-0a1b2c3d-179", "key": key}}
    assert value == "s3cret" and env(launch)["KEY"] == reference
    assert render_secret("0a1b2c3d", "179", {key: value})["stringData"] == {key: "s3cret"}
    assert env(launch)[TOKEN] == {"secretKeyRef": {"name": "ts-0a1b2c3d-179", "key": "token"}}


def test_a_secret_that_is_a_file_is_a_volume_of_the_secret_and_the_variable_has_its_path():
    files = {"key.json": "s3cret"}
    launch = replace(LAUNCH, env={"KEY": "secret-file://key.json", "OPEN": "yes"}, secret_files=files)
    assert pod_variables(launch, FRAME).kept() == {"file.key.json": "s3cret"}
    pod = render_pod(launch, FRAME)
    assert "s3cret" not in json.dumps(pod)
    shown = env(launch)
    assert (shown["KEY"], shown["TRAINSHED_SECRETS"]) == ("/trainshed/secrets/key.json", "/trainshed/secrets")
    items = [{"key": "file.key.json", "path": "key.json"}]
    source = {"secretName": "ts-0a1b2c3d-179", "defaultMode": 0o444, "items": items}
    assert {"name": "secrets", "secret": source} in pod["spec"]["volumes"]
    mount = {"name": "secrets", "mountPath": "/trainshed/secrets", "readOnly": True}
    assert mount in container(launch)["volumeMounts"]
    assert "secrets" not in [volume["name"] for volume in render_pod(LAUNCH, FRAME)["spec"]["volumes"]]


def test_the_replicas_of_a_large_gang_have_the_path_of_a_secret_in_common():
    peers = tuple(f"workerpool1-{index}" for index in range(80))
    env_here = {"KEY": "secret-file://key.json"}
    launch = replace(LAUNCH, env=env_here, peers=peers, secret_files={"key.json": "s3cret"})
    assert CommonVariables().see(launch, frozenset())["KEY"] == "/trainshed/secrets/key.json"


def test_the_pods_of_a_gang_wait_for_each_others_names():
    launch = replace(LAUNCH, peers=("workerpool0-0", "workerpool1-0"))
    domain = "ts-0a1b2c3d-179.ml.svc.cluster.local"
    assert env(launch)[NAMES] == f"workerpool0-0.{domain} workerpool1-0.{domain}"
    assert render_pod(launch, FRAME)["spec"]["dnsConfig"] == {"searches": [domain]}
    assert NAMES not in env(LAUNCH)
    assert render_service("0a1b2c3d", "179")["spec"]["publishNotReadyAddresses"] is True


def test_the_addresses_of_a_large_gang_are_once_in_its_secret_and_not_in_each_pod():
    peers = tuple(f"workerpool1-{number}" for number in range(1000))
    cluster = {"cluster": {"worker": [f"{peer}:2222" for peer in peers]}}
    tasks = [{**cluster, "task": {"type": "worker", "index": number}, "job": "$(A)"} for number in range(2)]
    values = {"CLUSTER_SPEC": json.dumps(cluster | {"environment": "cloud"})}
    launches = [replace(LAUNCH, peers=peers, env={**values, "TF_CONFIG": json.dumps(task)}) for task in tasks]
    assert len(str(render_pod(launches[0], FRAME))) < 5000
    kept = [pod_variables(launch, FRAME).kept() for launch in launches]
    assert kept[0] == kept[1] and len(kept[0]) == 2  # the names, and the addresses of both variables
    for launch in launches:
        shown = env(launch)
        for variable in ("TF_CONFIG", "CLUSTER_SPEC"):
            assert expanded(str(shown[variable]), shown, kept[0]) == launch.env[variable]
        assert kept[0][str(key_of(shown[NAMES]))].startswith("workerpool1-0.ts-0a1b2c3d-179.ml.svc")


def test_what_all_replicas_of_a_large_pool_have_is_once_in_the_secret_and_their_own_is_in_their_pods():
    peers, common = tuple(f"workerpool1-{number}" for number in range(100)), CommonVariables()
    base = {"LR": "1", "NVIDIA_DRIVER_CAPABILITIES": "all", "KEY": "s3cret"}
    frames = []
    for number in range(3):
        key = RunKey(ReplicaName("179", 2, 1, number), 0)
        env_here = {**base, "RANK": str(number), **({"ODD": "1"} if number != 1 else {})}
        launch = replace(LAUNCH, key=key, peers=peers, env=env_here, secrets=frozenset({"KEY"}))
        frames.append((launch, replace(FRAME, common=common.see(launch, frozenset()))))
    for launch, frame in frames:
        [place] = render_pod(launch, frame)["spec"]["containers"]
        shown = {row["name"]: row.get("value") for row in place["env"]}
        kept = pod_variables(launch, frame).kept()
        texts = [text for text in kept.values() if "LR=1" in text.split(SEPARATOR)]
        given = dict(row.split("=", 1) for row in texts[0].split(SEPARATOR))
        assert {**given, **{name: value for name, value in shown.items() if value}}.items() >= {
            **{name: value for name, value in launch.env.items() if name != "KEY"},
            "TRAINSHED_RUN": str(launch.key),
        }.items()
        assert not given.keys() & shown.keys() and "s3cret" not in texts[0]
        assert shown["NVIDIA_DRIVER_CAPABILITIES"] == "all"  # its container's runtime reads it
    assert dict(frames[1][1].common) == dict(frames[2][1].common) == {"PYTHONUNBUFFERED": "1", "LR": "1"}
    common.forget("179")
    assert common.see(replace(LAUNCH, peers=peers[:3]), frozenset()) == {}


def key_of(source: object) -> object:
    return source["secretKeyRef"]["key"] if isinstance(source, dict) else None


def expanded(value: str, shown: dict[str, object], secret: dict[str, str]) -> str:
    """As Kubernetes does it."""
    texts = {name: secret[str(key_of(source))] for name, source in shown.items() if name.startswith(TEXT)}
    pattern = re.compile(r"\$\$|\$\((\w+)\)")
    return pattern.sub(lambda found: texts[found[1]] if found[1] else "$", value)


def test_what_a_program_writes_to_a_place_without_buckets_does_not_seem_stored():
    mounts = {mount["mountPath"]: mount for mount in container(LAUNCH)["volumeMounts"]}
    assert mounts["/gcs"]["readOnly"] is True


def test_the_pods_of_an_isolated_job_reach_each_other_and_names_and_only_their_inits_are_reached():
    policy = render_policy("abcd", "7")
    peers = {"podSelector": {"matchLabels": {"trainshed.dev/home": "abcd", "trainshed.dev/job": "7"}}}
    names = [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]
    assert policy["spec"] == {
        **peers,
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"from": [peers]}, {"ports": [{"protocol": "TCP", "port": 45990}]}],
        "egress": [{"to": [peers]}, {"ports": names}],
    }


def test_a_pod_whose_programs_start_others_elsewhere_has_the_init_by_its_other_name():
    role = RemoteRole(serves=True, servers="", rows="", list_place="/etc/list")
    plain, both = (render_pod(launch, FRAME)["spec"] for launch in (LAUNCH, replace(LAUNCH, remote=role)))
    assert "items" not in plain["volumes"][0]["configMap"]
    assert both["volumes"][0]["configMap"]["items"] == [
        {"key": "init", "path": "init"},
        {"key": "init", "path": "remote"},
    ]


def test_what_goes_before_the_command_goes_before_it():
    assert container(replace(LAUNCH, before=("/x/remote", "--serve")))["args"] == [
        *("/x/remote", "--serve", "python3", "train.py")
    ]
