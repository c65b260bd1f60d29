"""Where no address of a pod leads there, as on a laptop, the channel goes through the API server."""

from pathlib import Path

import pytest

from tests.cluster import Cluster
from tests.contracts.backend_bench import Bench, benched
from tests.contracts.test_cluster_backend import ClusterBench, ClusterWorld
from trainshed.backends.cluster import channel
from trainshed.core.replica import Exit, Sight

pytestmark = pytest.mark.cluster


@pytest.fixture
async def bench(tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(channel, "_CONNECT", 0.0)  # seconds: no pod answers so soon
    async with benched(ClusterWorld(tmp_path / "home", cluster), tmp_path, ClusterBench) as bench:
        yield bench


async def test_output_and_end_come_through_the_api_server(bench: Bench):
    text = "".join(f"{number}\n" for number in range(20_000))
    seen = await bench.run(("sh", "-c", f"printf '%s' '{text}'; echo wrong >&2; exit 3"))
    assert seen.exit == Exit(code=3)
    assert bench.out() == text and bench.err() == "wrong\n"


async def test_orders_go_through_the_api_server(bench: Bench):
    key = await bench.begin(bench.programs.stubborn())
    await bench.backend.stop(key, force=False)
    await bench.renew()
    await bench.backend.stop(key, force=True)
    seen = await bench.ended(key)
    assert seen.sight is Sight.ENDED and seen.exit == Exit(signal=9)
