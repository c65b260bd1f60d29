"""Secrets of jobs in a cluster, on a server that speaks TLS: programs have the values, pods show none."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.test_gcs_paths import BUCKET, make_bucket
from tests.acceptance.test_secrets import VALUE, files_with_value
from tests.containers.test_reach import ASK
from tests.kubernetes.cluster import Cluster, wait_for
from tests.kubernetes.test_jobs import is_gone, lines, objects, submit
from tests.live import FINAL, LiveServer

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(600)]

VARIABLES = [
    {"name": "HF_TOKEN", "value": "secret://hf"},
    {"name": "KEY", "value": "secret-file://key.json"},
    {"name": "PASSWORD", "value": VALUE, "secret": True},
]
READS = """
import os, sys, time
texts = [os.environ["HF_TOKEN"], os.environ["PASSWORD"], open(os.environ["KEY"]).read()]
print("lengths", *map(len, texts), flush=True)
"""
PUTS = f"{ASK}\nask('/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name=here', b'x')\n"
NEWER = f"{VALUE}-and-more"


@pytest.fixture(scope="module")
def server(cluster: Cluster) -> Iterator[LiveServer]:
    flags = ("--kubernetes", "--kubeconfig", str(cluster.place.kubeconfig))
    with LiveServer(*flags, "--tls") as server:
        make_bucket(server)
        yield server
        assert VALUE not in server.said() and "Traceback" not in server.said(), server.said()


def keep(server: LiveServer, folder: Path, name: str, value: str = VALUE) -> None:
    file = folder / "value"
    file.write_text(value)
    done = server.cli("secrets", "set", name, "--from-file", str(file))
    file.unlink()
    assert done.returncode == 0, done.stderr


def pods_of(cluster: Cluster, job: str) -> str:
    selector = f"?labelSelector=trainshed.dev/job%3D{job.rpartition('/')[2]}"
    return json.dumps(cluster.ask("GET", f"/api/v1/namespaces/default/pods{selector}"))


def test_programs_have_the_values_of_secrets_and_reach_a_server_that_speaks_tls(
    server: LiveServer, cluster: Cluster, tmp_path: Path
):
    for name in ("hf", "key.json"):
        keep(server, tmp_path, name)
    job = submit(server, f"{READS}{PUTS}time.sleep(600)", 1, 1, env=VARIABLES)
    said = f"lengths {' '.join([str(len(VALUE))] * 3)}"
    wait_for(lambda: lines(server, job) == [said] * 2, "that both replicas have read them")
    assert VALUE not in pods_of(cluster, job)
    assert files_with_value(server.home) == []
    wait_for(lambda: server.get(f"/storage/v1/b/{BUCKET}/o").get("items"), "what the programs put")
    server.cancel(job)
    is_gone(cluster, job)


def test_a_replica_that_starts_again_has_the_new_value_of_a_secret(
    server: LiveServer, cluster: Cluster, tmp_path: Path
):
    for name in ("hf", "key.json"):
        keep(server, tmp_path, name)
    job = submit(server, f"{READS}time.sleep(0 if len(texts[0]) == {len(NEWER)} else 600)", env=VARIABLES)
    wait_for(lambda: lines(server, job), "that it has read them")
    for name in ("hf", "key.json"):
        keep(server, tmp_path, name, NEWER)
    [name] = [name for name in objects(cluster, job) if "workerpool" in name]
    cluster.ask("DELETE", f"/api/v1/namespaces/default/pods/{name}")
    assert server.wait(job, 180)["state"] == FINAL[0]
    assert lines(server, job)[-1] == f"lengths {len(NEWER)} {len(VALUE)} {len(NEWER)}"
    is_gone(cluster, job)
