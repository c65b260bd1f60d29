"""Replicas of a JobSet find each other by the JobSet's names, from their first line, on a real cluster."""

from pathlib import Path
from textwrap import indent

import pytest

from tests.acceptance.test_training_operators import DRIVER, JOB_SET, WORKER
from tests.kubernetes.cluster import Cluster
from tests.live import LiveServer

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(600)]

FIRST = """
import socket
own = socket.gethostname()
print("found", len({socket.gethostbyname(name) for name in (own, "pair-driver-0-0.meeting", "localhost")}))
"""


def test_a_job_set_meets_by_its_own_names_in_pods(server: LiveServer, cluster: Cluster, tmp_path: Path):
    words = {
        "image": cluster.image,
        "driver": indent(DRIVER, " " * 16),
        "worker": indent(FIRST + WORKER, " " * 16),
        "address": "pair-driver-0-0.meeting",
    }
    file = tmp_path / "set.yaml"
    file.write_text(JOB_SET.format(**words))
    applied = server.cli("apply", "-f", str(file))
    assert applied.returncode == 0, applied.stderr
    waited = server.cli("wait", "pair")
    printed = server.cli("logs", "pair").stdout
    assert waited.returncode == 0, (waited.stdout, waited.stderr, printed)
    assert "met 0.0 0.1 1.0 1.1" in printed and printed.count("found 3") == 4
    events = server.cli("events", "pair").stdout
    assert "not found by" not in events
