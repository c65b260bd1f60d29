"""Kubernetes' manifests as jobs and image caches: equal to what is expected, refused with every path."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from trainshed.core.errors import Invalid
from trainshed.core.supplies.image import refusal
from trainshed.data.catalogue import load_catalogue
from trainshed.dialects.kubernetes.cli.file import documents
from trainshed.dialects.kubernetes.job import convert
from trainshed.dialects.kubernetes.machine import amount
from trainshed.dialects.kubernetes.manifest import CacheManifest, JobManifest, parse_manifest
from trainshed.dialects.kubernetes.pod import References
from trainshed.wire.faults import Faults
from trainshed.wire.pool import Offer

PRINTED = Path(__file__).parents[3] / "acceptance" / "seed_003"
IMAGE = "registry-vpc.cn-zhangjiakou.aliyuncs.com/eci/tensorflow:1.0"
OFFER = Offer(catalogue=load_catalogue(), refuse_image=refusal)
FOREVER = {"retryExitCodes": ["1-255"], "maxReplicaRestarts": 1000, "maxJobRetries": 0, "maxBackoff": "300s"}

POD = """
apiVersion: v1
kind: Pod
metadata: {name: one}
spec:
  containers:
  - name: main
    image: digits:1
  restartPolicy: Never
"""
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: many, labels: {team: vision}}
spec:
  parallelism: 3
  completions: 3
  completionMode: Indexed
  backoffLimit: 2
  activeDeadlineSeconds: 3600
  template:
    metadata: {annotations: {k8s.aliyun.com/eci-spot-strategy: SpotAsPriceGo}}
    spec:
      terminationGracePeriodSeconds: 5
      containers:
      - name: main
        image: digits:1
        command: [python, train.py]
        args: [--epochs, $(EPOCHS), $$(EPOCHS), $(NONE)]
        env:
        - {name: EPOCHS, value: "5"}
        - {name: OUT, value: /out/$(EPOCHS)}
        - {name: ME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        resources:
          requests: {cpu: 1, memory: 1Gi}
          limits: {cpu: 1500m, memory: 3Gi, nvidia.com/gpu: 2, ephemeral-storage: 20Gi}
        volumeMounts:
        - {name: data, mountPath: /data, subPath: digits, readOnly: true}
        - {name: cache, mountPath: /cache/}
        - {name: shm, mountPath: /dev/shm}
      volumes:
      - {name: data, nfs: {server: 10.0.0.2, path: /exports}}
      - {name: cache, emptyDir: {}}
      - {name: shm, emptyDir: {medium: Memory}}
      nodeSelector: {cloud.google.com/gke-accelerator: nvidia-tesla-v100}
      restartPolicy: OnFailure
"""


def printed(name: str) -> dict[str, Any]:
    (document,) = documents(name, (PRINTED / name).read_text())
    return document.fields


def read(text: str, **changes: Any) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(text)
    found["spec"] |= changes
    return found


def converted(document: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    faults = Faults("manifest")
    wanted = convert(document, OFFER.catalogue, faults)
    faults.settle()
    return wanted.body, wanted.notes


def refused(document: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(Invalid) as error:
        parse_manifest(document, OFFER)
    return {one.field: one.description for one in error.value.violations}


def job_of(document: dict[str, Any]) -> JobManifest:
    found = parse_manifest(document, OFFER)
    assert isinstance(found, JobManifest)
    return found


def test_the_printed_pod_is_a_job():
    assert converted(printed("gpu_pod.yaml")) == (
        {
            "displayName": "tensorflow",
            "jobSpec": {
                "workerPoolSpecs": [
                    {
                        "machineSpec": {
                            "machineType": "n1-standard-4",
                            "acceleratorType": "NVIDIA_TESLA_P4",
                            "acceleratorCount": 1,
                        },
                        "replicaCount": 1,
                        "containerSpec": {
                            "imageUri": IMAGE,
                            "command": [
                                "sh",
                                "-c",
                                "python models/tutorials/image/imagenet/classify_image.py",
                            ],
                        },
                        "nfsMounts": [
                            {
                                "server": "0912430d-1nsl.cn-zhangjiakou.extreme.nas.aliyuncs.com",
                                "path": "/share",
                                "mountPoint": "/tmp/imagenet",
                            }
                        ],
                    }
                ],
                "scheduling": {"restartRule": FOREVER},
            },
        },
        [],
    )
    found = job_of(printed("gpu_pod.yaml"))
    assert (found.manifest.kind, found.manifest.name, found.notes) == ("Pod", "tensorflow", ())
    (pool,) = found.draft.spec.pools
    assert pool.nfs[0].target == "/tmp/imagenet"


def test_the_instance_type_the_printed_comment_names_is_a_machine():
    document = printed("gpu_pod.yaml")
    document["metadata"]["annotations"] = {"k8s.aliyun.com/eci-instance-type": "ecs.gn5i-c2g1.large"}
    body, notes = converted(document)
    machine = {"machineType": "custom-2-8192", "acceleratorType": "NVIDIA_TESLA_P4", "acceleratorCount": 1}
    assert body["jobSpec"]["workerPoolSpecs"][0]["machineSpec"] == machine
    assert notes == []


def test_the_printed_image_cache_is_one():
    assert parse_manifest(printed("imagecache.yaml"), OFFER) == CacheManifest(
        name="tensorflow", images=(IMAGE,)
    )


def test_an_image_cache_says_its_size_and_how_long_it_stays():
    document = printed("imagecache.yaml")
    document["spec"] |= {"imageCacheSize": 25, "retentionDays": 7, "imagePullSecrets": ["default:acr"]}
    found = parse_manifest(document, OFFER)
    assert isinstance(found, CacheManifest)
    assert (found.room, found.retention_days) == (25, 7)
    assert found.notes == (
        "spec.imagePullSecrets is ignored: the server's own credentials for registries are used.",
    )
    document["spec"] = {"images": ["Not An Image"], "retentionDays": -1}
    assert refused(document).keys() == {"spec.images[0]", "spec.retentionDays"}


def test_everything_a_job_may_say_is_honoured():
    found = job_of(read(JOB))
    assert converted(read(JOB))[0] == {
        "displayName": "many",
        "labels": {"team": "vision"},
        "jobSpec": {
            "workerPoolSpecs": [
                {
                    "machineSpec": {
                        "machineType": "custom-1.5-3072",
                        "acceleratorType": "NVIDIA_TESLA_V100",
                        "acceleratorCount": 2,
                    },
                    "replicaCount": 3,
                    "containerSpec": {
                        "imageUri": "digits:1",
                        "command": ["python", "train.py"],
                        "args": ["--epochs", "5", "$(EPOCHS)", "$(NONE)"],
                        "env": [
                            {"name": "EPOCHS", "value": "5"},
                            {"name": "OUT", "value": "/out/5"},
                            {"name": "ME", "value": "many"},
                        ],
                    },
                    "diskSpec": {"bootDiskSizeGb": 20},
                    "nfsMounts": [
                        {
                            "server": "10.0.0.2",
                            "path": "/exports/digits",
                            "mountPoint": "/data",
                            "readOnly": True,
                        }
                    ],
                    "scratchDirs": ["/cache"],
                }
            ],
            "scheduling": {
                "restartRule": {**FOREVER, "maxReplicaRestarts": 2},
                "timeout": "3600s",
                "gracePeriod": "5s",
                "drainDuration": "86400s",
                "strategy": "SPOT",
            },
        },
    }
    assert found.manifest.is_indexed
    (pool,) = found.draft.spec.pools
    assert (pool.cpus, pool.memory, pool.scratch, pool.nfs[0].read_only) == (1.5, 3 << 30, ("/cache",), True)
    assert len(found.notes) == 1  # that the first replica speaks for all


@pytest.mark.parametrize(
    ("policy", "limit", "expected"),
    [
        ("Never", None, {"disableRetries": True}),
        ("OnFailure", None, {"restartRule": FOREVER}),
        (None, None, {"restartRule": FOREVER}),
    ],
)
def test_the_restart_policy_of_a_pod(policy: str | None, limit: None, expected: dict[str, Any]):
    assert converted(read(POD, restartPolicy=policy))[0]["jobSpec"]["scheduling"] == expected


@pytest.mark.parametrize(("limit", "restarts"), [(None, 6), (0, None), (4, 4)])
def test_the_backoff_limit_of_a_job(limit: int | None, restarts: int | None):
    scheduling = converted(read(JOB, backoffLimit=limit))[0]["jobSpec"]["scheduling"]
    assert scheduling.get("restartRule", {}).get("maxReplicaRestarts") == restarts
    assert scheduling.get("disableRetries", False) is (restarts is None)


def test_each_container_is_a_pool_and_that_is_said():
    containers = [{"name": "chief", "image": "a:1"}, {"name": "helper", "image": "b:1"}]
    body, notes = converted(read(POD, containers=containers))
    assert [pool["containerSpec"]["imageUri"] for pool in body["jobSpec"]["workerPoolSpecs"]] == [
        "a:1",
        "b:1",
    ]
    assert "chief" in notes[0]


def test_every_violation_is_told_with_its_path_in_the_manifest():
    document = read(
        POD,
        hostNetwork=True,
        hostPID=False,
        bogus=1,
        restartPolicy="Always",
        initContainers=[{"name": "x"}],
        activeDeadlineSeconds=0,
        volumes=[
            {"name": "host", "hostPath": {"path": "/"}},
            {"name": "both", "emptyDir": {}},
            {"name": "bad", "emptyDir": {}},
        ],
        containers=[
            {
                "image": "not an image",
                "comand": ["x"],
                "securityContext": {"privileged": True},
                "env": [
                    {"name": "A", "value": 1},
                    {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s"}}},
                ],
                "resources": {"limits": {"cpu": "lots", "nvidia.com/gpu": "0.5", "amd.com/gpu": 1}},
                "volumeMounts": [
                    {"name": "gone", "mountPath": "/x"},
                    {"name": "bad", "mountPath": "/proc/x"},
                    {"name": "both", "mountPath": "/ok"},
                ],
            },
            {"image": "b:1", "volumeMounts": [{"name": "both", "mountPath": "/y"}]},
        ],
    )
    document["metadata"] = {"name": "Not_So"}
    first = "spec.containers[0]"
    assert refused(document).keys() == {
        "metadata.name",
        "spec.hostNetwork",
        "spec.bogus",
        "spec.restartPolicy",
        "spec.initContainers",
        "spec.activeDeadlineSeconds",
        "spec.volumes[0].hostPath",
        f"{first}.image",
        f"{first}.comand",
        f"{first}.securityContext.privileged",
        f"{first}.env[0].value",
        f"{first}.env[1].valueFrom.secretKeyRef",
        f"{first}.resources.limits.cpu",
        f"{first}.resources.limits.nvidia.com/gpu",
        f"{first}.resources.limits.amd.com/gpu",
        f"{first}.volumeMounts[0].name",
        f"{first}.volumeMounts[1].mountPath",
        "spec.containers[1].volumeMounts[0].name",
    }
    assert "did you mean command?" in refused(document)[f"{first}.comand"]


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({}, "kind"),
        ({"kind": "Deployment"}, "kind"),
        ({"kind": ["Pod"]}, "kind"),
        ({"kind": "Pod", "apiVersion": "v2", "spec": []}, "apiVersion"),
        ({"kind": "Pod", "apiVersion": "v1", "spec": {"containers": "x"}}, "spec.containers"),
        ({"kind": "Pod", "apiVersion": "v1", "spec": {"containers": [3]}}, "spec.containers[0]"),
        ({"kind": "Job", "apiVersion": "batch/v1", "spec": {"template": 3}}, "spec.template"),
        (
            {"kind": "ImageCache", "apiVersion": "eci.alibabacloud.com/v1", "spec": {"images": 3}},
            "spec.images",
        ),
    ],
)
def test_a_document_of_any_shape_is_refused_and_breaks_nothing(document: dict[str, Any], field: str):
    assert field in refused(document)


@pytest.mark.parametrize(("value", "literal"), [(0, "0"), (False, "false")])
def test_a_variable_whose_value_is_no_text_is_refused(value: object, literal: str):
    container = {"name": "main", "image": "digits:1", "env": [{"name": "A", "value": value}]}
    told = refused(read(POD, containers=[container]))
    assert f'"{literal}"' in told["spec.containers[0].env[0].value"]


def test_a_number_that_is_0_asks_for_something():
    assert "spec.maxFailedIndexes" in refused(read(JOB, maxFailedIndexes=0))


def test_fewer_at_a_time_than_all_is_refused():
    assert "spec.parallelism" in refused(read(JOB, parallelism=1))
    assert converted(read(JOB, parallelism=8))[0]["jobSpec"]["workerPoolSpecs"][0]["replicaCount"] == 3


def test_what_is_ignored_is_said():
    document = read(POD, tolerations=[{"key": "a"}], nodeSelector={"disk": "ssd"})
    document["metadata"] |= {
        "namespace": "team",
        "labels": {"app.kubernetes.io/name": "x"},
        "annotations": {"k8s.aliyun.com/eci-ram-role": "r", "note": "mine"},
    }
    told = " ".join(job_of(document).notes)
    for word in ("tolerations", "nodeSelector.disk", "namespace", "app.kubernetes.io/name", "eci-ram-role"):
        assert word in told
    assert "note" not in told


def test_two_spellings_of_the_same_are_the_same_and_another_is_not():
    one, same, other = (
        read(POD),
        read(POD, tolerations=None, volumes=[]),
        read(POD, restartPolicy="OnFailure"),
    )
    same["status"] = {"phase": "Running"}
    same["metadata"]["uid"] = "1"
    assert job_of(one).manifest.digest == job_of(same).manifest.digest
    assert job_of(one).manifest.digest != job_of(other).manifest.digest


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("500m", 0.5),
        (2, 2),
        ("1.5", 1.5),
        ("4Gi", 4 << 30),
        ("1k", 1000),
        ("1e3", 1000),
        ("128974848", 128974848),
    ],
)
def test_amounts(said: object, meant: float):
    assert amount(said) == meant


@pytest.mark.parametrize("said", ["", "lots", "-1", "1 Gi", "1GiB", True, "1e", "1e400", "9" * 4400, "1e19"])
def test_what_is_no_amount(said: object):
    assert amount(said) is None


def test_references_to_variables_are_expanded_as_kubernetes_does():
    assert References({"A": "1"}).expand("$(A) $$(A) $A $(B) $$") == "1 $(A) $A $(B) $"


def test_references_that_double_one_another_are_refused_before_they_are_memory():
    env = [{"name": "A0", "value": "x" * 100}]
    env += [{"name": f"A{n}", "value": f"$(A{n - 1})$(A{n - 1})"} for n in range(1, 60)]
    container = {"name": "c", "image": "a:1", "env": env, "args": ["$(A59)"] * 10}
    assert "once each $(NAME)" in refused(read(POD, containers=[container]))["spec.containers[0]"]
    many = {
        "name": "c",
        "image": "a:1",
        "env": [{"name": "A", "value": "x" * 100_000}],
        "args": ["$(A)"] * 5000,
    }
    assert "once each $(NAME)" in refused(read(POD, containers=[many]))["spec.containers[0]"]


def test_two_volumes_at_one_path_are_refused():
    volumes = [{"name": "a", "emptyDir": {}}, {"name": "b", "nfs": {"server": "n", "path": "/x"}}]
    mounts = [{"name": "a", "mountPath": "/data"}, {"name": "b", "mountPath": "/data/"}]
    container = {"name": "c", "image": "a:1", "volumeMounts": mounts}
    assert refused(read(POD, volumes=volumes, containers=[container])).keys() == {
        "spec.containers[0].volumeMounts"
    }
    mounts[1]["mountPath"] = "/other"
    volumes[1]["nfs"] = {"server": "a,b", "path": "x"}
    assert refused(read(POD, volumes=volumes, containers=[container])).keys() == {
        "spec.volumes[1].nfs.server",
        "spec.volumes[1].nfs.path",
    }


def test_a_job_for_kueue_keeps_its_queue_and_may_be_written_suspended():
    document = yaml.safe_load(JOB)
    document["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "team-a"
    document["spec"]["suspend"] = True
    wanted = parse_manifest(document, OFFER)
    assert isinstance(wanted, JobManifest)
    assert wanted.draft.labels == {"team": "vision", "kueue.x-k8s.io/queue-name": "team-a"}
    assert "suspend is ignored: the job waits in its queue, and nobody has to resume it." in wanted.notes
    del document["metadata"]["labels"]["kueue.x-k8s.io/queue-name"]
    with pytest.raises(Invalid, match="suspend"):
        parse_manifest(document, OFFER)


def secret_pod(**container: Any) -> dict[str, Any]:
    return read(POD, containers=[{"name": "c", "image": "a:1", **container}])


def test_a_key_of_a_secret_is_the_projects_secret_of_both_names() -> None:
    source = {"secretKeyRef": {"name": "hub", "key": "token"}}
    env = [{"name": "HF_TOKEN", "valueFrom": source}, {"name": "PLAIN", "value": "x $$(HF_TOKEN)"}]
    body, _ = converted(secret_pod(env=env))
    [program] = [pool["containerSpec"] for pool in body["jobSpec"]["workerPoolSpecs"]]
    assert program["env"] == [
        {"name": "HF_TOKEN", "value": "secret://hub.token"},
        {"name": "PLAIN", "value": "x $(HF_TOKEN)"},
    ]


def test_a_named_secret_inside_another_text_is_refused() -> None:
    source = {"secretKeyRef": {"name": "hub", "key": "token"}}
    env = [{"name": "T", "valueFrom": source}, {"name": "URL", "value": "https://me:$(T)@hub"}]
    faults = refused(secret_pod(env=env, args=["--token=$(T)"]))
    assert faults.keys() == {"spec.containers[0].env[1].value", "spec.containers[0].args[0]"}
