"""The cluster backend keeps the promises of shells: by the addresses of pods and by the API server."""

from pathlib import Path

import pytest

from tests.contracts import shells as contract
from tests.contracts.backend_bench import Bench, benched, until
from tests.contracts.shells import MARKED, ShellsContract, all_of, sees
from tests.contracts.test_cluster_backend import ClusterBench, ClusterWorld, OnCluster
from tests.kubernetes.cluster import Cluster
from trainshed.backends.cluster import pod_connection

pytestmark = pytest.mark.cluster


class TestClusterShells(OnCluster, ShellsContract):
    async def test_a_shell_has_no_more_rights_than_the_program(self, opened):  # pyright: ignore
        terminal = await opened(("sh", "-c", "grep -E 'CapEff|NoNewPrivs' /proc/1/status /proc/self/status"))
        lines = [line.split(":", 1)[1].split() for line in (await all_of(terminal)).splitlines()]
        caps = [value for name, value in lines if name == "CapEff:"]
        assert len(caps) == 2 and caps[0] == caps[1]
        assert [value for name, value in lines if name == "NoNewPrivs:"] == ["1", "1"]

    async def test_the_token_of_the_init_is_not_in_a_shell(self, opened):  # pyright: ignore
        terminal = await opened(("sh", "-c", "env; tr '\\0' '\\n' </proc/1/environ; echo end"))
        words = await all_of(terminal)
        assert "TRAINSHED_RUN=" in words and "TRAINSHED_POD_TOKEN" not in words

    async def test_shells_of_a_server_that_is_gone_end(self, opened, bench: Bench):  # pyright: ignore
        terminal = await opened(
            ("sh", "-c", f"trap '' HUP TERM; : {MARKED}; echo began; sleep 500; sleep 500")
        )
        await sees(terminal, "began")
        terminal._task.cancel()
        await until(lambda: not [words for words in bench.world.leftovers(bench.job) if MARKED in words])
        assert await terminal.wait() > 128
        seen = await bench.see(bench.key())
        assert seen is not None and seen.alive


class TestShellsByTheApiServer:
    """The rest is the pod's, whatever leads there."""

    @pytest.fixture
    async def bench(self, tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(pod_connection, "_CONNECT", 0.0)  # seconds: no pod answers so soon
        # API server, kubelet and pod hold some megabytes each, which come before the key that ends the flood.
        monkeypatch.setattr(contract, "FLOOD", 64 << 20)
        async with benched(ClusterWorld(tmp_path / "home", cluster), tmp_path, ClusterBench) as bench:
            yield bench

    shells, opened = ShellsContract.shells, ShellsContract.opened
    test_bytes = ShellsContract.test_without_a_screen_bytes_pass_as_they_are
    test_sizes = ShellsContract.test_a_program_learns_the_size_of_its_screen_and_its_changes
    test_flood = ShellsContract.test_a_program_that_floods_waits_for_its_reader
    test_end = ShellsContract.test_hanging_up_ends_all_that_was_started_in_it
