"""The chart with a database of PostgreSQL in the same cluster: both may be killed while jobs run."""

from collections.abc import Iterator

import pytest

from tests.contracts.postgres import HOW_TO_GET_IT, programs
from tests.kubernetes.cluster import Cluster, wait_for
from tests.kubernetes.installed_server import InstalledServer, installed
from tests.kubernetes.postgres_image import PASSWORD, pack_postgres

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.needs_postgres,
    pytest.mark.timeout(900),
    pytest.mark.skipif(programs() is None, reason=HOW_TO_GET_IT),
]

IMAGE = "localhost/postgres:test"
NAME = "database"
COUNTS = "import time\nfor number in range(90): print(number, flush=True); time.sleep(0.5)"


@pytest.fixture(scope="module")
def server(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[InstalledServer]:
    folder, tools = tmp_path_factory.mktemp("installed"), programs()
    assert tools is not None
    archive = folder / "postgres.tar"
    pack_postgres(tools, archive, IMAGE)
    cluster.command("load", str(archive))
    archive.unlink()
    with installed(cluster, folder, "token.secret=word", "database.secret=db") as server:
        add_database(server)
        server.wait_ready()
        yield server


def add_database(server: InstalledServer) -> None:
    path = f"/api/v1/namespaces/{server.namespace}"
    url = f"postgresql://postgres:{PASSWORD}@{NAME}/postgres"
    server.cluster.ask("POST", f"{path}/secrets", {"metadata": {"name": "db"}, "stringData": {"url": url}})
    container = {
        "name": NAME,
        "image": IMAGE,
        "imagePullPolicy": "Never",
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    spec = {"containers": [container], "volumes": [{"name": "data", "emptyDir": {}}]}
    spec |= {"securityContext": {"runAsUser": 65534, "fsGroup": 65534}}
    server.cluster.ask(
        "POST", f"{path}/pods", {"metadata": {"name": NAME, "labels": {"app": NAME}}, "spec": spec}
    )
    ports = {"selector": {"app": NAME}, "ports": [{"port": 5432}]}
    server.cluster.ask("POST", f"{path}/services", {"metadata": {"name": NAME}, "spec": ports})


def in_database(server: InstalledServer, *words: str) -> str:
    return server.kubectl("-n", server.namespace, "exec", NAME, "--", *words)


def test_a_job_goes_on_while_server_and_database_are_killed_and_each_line_comes_once(
    server: InstalledServer,
):
    job = server.submit(COUNTS)
    wait_for(lambda: "3" in server.lines(job), "that its program runs")
    in_database(server, "sh", "-c", "kill -QUIT 1")  # its way to end at once, without a checkpoint
    wait_for(lambda: "20" in server.lines(job), "that the server is there although the database was away")
    server.kill()
    server.cli("wait", job, "--timeout", "180")
    assert server.lines(job) == [str(number) for number in range(90)]
    pod = server.cluster.ask("GET", f"/api/v1/namespaces/{server.namespace}/pods/{NAME}")
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 1
    client = ["env", f"PGPASSWORD={PASSWORD}", "psql", "-h", "/data", "-U", "postgres", "-tA"]
    assert job in in_database(server, *client, "-c", "select * from jobs")
