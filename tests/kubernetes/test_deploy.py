"""The chart of deploy/ on a real cluster: a server in a pod, with exactly the rights that it needs."""

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests.kubernetes.cluster import Cluster, wait_for
from tests.kubernetes.installed_server import TOKEN, InstalledServer, installed
from trainshed.backends.cluster.rights import RIGHTS

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(900)]

UNSERVED = ("metrics.k8s.io", "scheduling.k8s.io")  # whose kinds the cluster of tests does not have
SERVED = [right for right in RIGHTS if right.group not in UNSERVED]
COUNTS = "import time\nfor number in range(60): print(number, flush=True); time.sleep(0.5)"


@pytest.fixture(scope="module")
def server(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[InstalledServer]:
    with installed(cluster, tmp_path_factory.mktemp("installed"), "token.secret=word") as server:
        server.wait_ready()
        yield server


def test_a_job_goes_on_while_the_pod_of_its_server_is_killed_and_each_line_comes_once(
    server: InstalledServer,
):
    job = server.submit(COUNTS)
    wait_for(lambda: "5" in server.lines(job), "that its program runs")
    server.kill()
    server.cli("wait", job, "--timeout", "180")
    assert server.lines(job) == [str(number) for number in range(60)]
    path = f"/api/v1/namespaces/{server.jobs}/pods"
    wait_for(lambda: not server.cluster.ask("GET", path)["items"], "that no pod of the job is left")


def test_the_token_is_that_of_the_secret_and_only_the_server_can_read_it(server: InstalledServer):
    inside = ["-n", server.namespace, "exec", "deployment/trainshed", "-c", "server", "--"]
    assert server.kubectl(*inside, "cat", "/var/lib/trainshed/home/token") == TOKEN
    modes = server.kubectl(*inside, "stat", "-c", "%a %u", "/var/lib/trainshed/home", "/proc/1")
    assert [line.split()[1] for line in modes.splitlines()] == ["10001", "10001"]
    assert modes.startswith("700 ")
    refused = server.kubectl(*inside, "sh", "-c", "touch /opt/x; echo $?", check=False)
    assert refused.strip() == "1"  # the root of its files is read-only


def examined(server: InstalledServer, *words: str) -> dict[str, Any]:
    """What the doctor says inside the server's pod."""
    answer: dict[str, Any] = json.loads(server.cli("doctor", "--json", *words, check=False))
    assert answer["fit"] is not any(row["grade"] == "missing" for row in answer["findings"])
    return answer


def lacking(answer: dict[str, Any]) -> list[tuple[str, str]]:
    rows = [row for row in answer["findings"] if row["what"].startswith("right ")]
    assert len(rows) == len(SERVED)
    return [(row["what"].removeprefix("right "), row["grade"]) for row in rows if row["grade"] != "ok"]


def test_the_doctor_finds_all_well_in_the_pod_of_the_server(server: InstalledServer):
    answer = examined(server, "--image", server.cluster.image)
    assert answer["fit"], answer
    assert [row for row in answer["findings"] if row["grade"] != "ok"] == []
    assert {"home", "version", "namespace", "nodes", "DNS", "init", "reach", "image"} <= {
        row["what"] for row in answer["findings"]
    }


def test_the_doctor_finds_each_right_whose_rule_is_removed(server: InstalledServer):
    optional = {(row.resource, row.verbs): row.is_optional for row in RIGHTS}
    for path, role in server.rights():
        for rule in (rule for rule in role["rules"] if rule["apiGroups"][0] not in UNSERVED):
            rest = [other for other in role["rules"] if other is not rule]
            server.cluster.ask("PUT", path, {**role, "rules": rest})
            try:
                answer = examined(server)
            finally:
                server.cluster.ask("PUT", path, role)
            [resource] = rule["resources"]
            grade = "warning" if optional[resource, tuple(rule["verbs"])] else "missing"
            assert (resource, grade) in lacking(answer), (rule, answer)
            # A right in the whole cluster counts in the namespace too.
            assert {name for name, _ in lacking(answer)} == {resource}
    assert lacking(examined(server)) == []


def test_the_commands_that_the_doctor_names_mend_all_rights(server: InstalledServer):
    roles = list(server.rights())
    for path, role in roles:
        server.cluster.ask("PUT", path, {**role, "rules": []})
    commands: list[str] = []
    try:
        answer = examined(server)
        assert len(lacking(answer)) == len(SERVED) and not answer["fit"]
        commands = [row["remedy"] for row in answer["findings"] if row["what"].startswith("right ")]
        for command in commands:
            run(server, command)
        assert lacking(examined(server)) == []
    finally:
        for path, role in roles:
            server.cluster.ask("PUT", path, role)
        for made in (part for command in commands for part in command.split(" && ")):
            before, _, after = made.partition(" create ")
            run(server, f"{before} delete --ignore-not-found {' '.join(after.split()[:2])}")


def run(server: InstalledServer, command: str) -> None:
    """As somebody types it, who has kubectl and is an administrator."""
    place = server.cluster.place
    env = {**place.programs.environment(), "KUBECONFIG": str(place.kubeconfig)}
    done = subprocess.run(["/bin/sh", "-ec", command], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stderr}"
