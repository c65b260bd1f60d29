"""The cluster backend keeps the promises of stacks, on a real Kubernetes."""

import pytest

from tests.contracts.backend_bench import Bench
from tests.contracts.stacks import StacksContract
from tests.contracts.test_cluster_backend import OnCluster
from tests.contracts.test_container_stats import ASLEEP, python
from trainshed.backends.machine import spy
from trainshed.core.stats_port import Stacks

pytestmark = pytest.mark.cluster

FAMILY = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', sys.argv[1]])\n"


class TestClusterStacks(OnCluster, StacksContract):
    async def test_a_python_program_is_shown_by_its_stack(self, bench: Bench, stacks: Stacks):
        if spy.find_spy() is None:
            pytest.skip("needs py-spy")
        key = await bench.begin(("python3", "-c", FAMILY, ASLEEP))
        for _ in range(2):
            dump = (await stacks.stacks([key]))[key]
            assert dump.fault == ""
            first, second = dump.processes
            assert first.command.startswith("python3 -c") and first.threads[0].is_main
            assert [frame.name for frame in first.threads[0].frames][-2:] == ["run", "<module>"]
            assert [frame.name for frame in second.threads[0].frames] == ["inner", "<module>"]

    async def test_without_py_spy_processes_are_shown_and_it_is_told_what_is_missing(
        self, bench: Bench, stacks: Stacks, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(spy, "find_spy", lambda: None)
        key = await bench.begin(python(ASLEEP))
        dump = (await stacks.stacks([key]))[key]
        (process,) = dump.processes
        assert process.state.startswith("sleeps") and process.threads == ()
        assert "py-spy is not installed" in dump.fault
