"""Where no address of a pod leads there, as on a laptop, the channel goes through the API server."""

from pathlib import Path

import pytest

from tests.contracts.backend_bench import Bench, benched
from tests.contracts.test_cluster_backend import ClusterBench, ClusterWorld
from tests.contracts.test_cluster_views import PodWorld
from tests.contracts.test_pod_tunnel import ECHOES, Echoes, echoes
from tests.kubernetes.cluster import Cluster
from trainshed.backends.cluster import pod_connection
from trainshed.backends.cluster.api import ClusterApi, find_config
from trainshed.backends.cluster.backend import ClusterBackend
from trainshed.backends.machine.loopback import LoopbackPort
from trainshed.backends.machine.run_storage import RunStorage
from trainshed.core.jobs.replica import Exit, Sight
from trainshed.core.ports import Backend

__all__ = ["echoes"]
pytestmark = pytest.mark.cluster
PORT = 8080


class TunnelWorld(ClusterWorld):
    """Programs reach a server of echoes at a port of their pod."""

    echoes: Echoes

    async def backend(self) -> Backend:
        api = ClusterApi(find_config(str(self.cluster.place.kubeconfig)))
        loopback = LoopbackPort(address=f"http://127.0.0.1:{PORT}", dial=self.echoes.dial)
        self.backend_now = ClusterBackend(
            self.home, api, storage=RunStorage(files=self.files), loopback=loopback
        )
        await self.backend_now.start()
        return self.backend_now


@pytest.fixture
async def bench(tmp_path: Path, cluster: Cluster, echoes: Echoes, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pod_connection, "_CONNECT", 0.0)  # seconds: no pod answers so soon
    world = TunnelWorld(tmp_path / "home", cluster)
    world.echoes = echoes
    async with benched(world, tmp_path, ClusterBench) as bench:
        yield bench


async def test_programs_reach_the_server_through_the_api_server(bench: Bench, echoes: Echoes):
    seen = await bench.run(("python3", "-c", ECHOES, str(PORT), "12"))
    assert seen.exit == Exit(code=0), bench.err()
    assert echoes.came == [(PORT, bench.job)] * 12


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


async def test_files_go_and_come_through_the_api_server(
    tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(pod_connection, "_CONNECT", 0.0)
    one = PodWorld(tmp_path, cluster)
    await one.buckets.start()
    await one.start()
    try:
        content = bytes(range(256)) * 100_000
        await one.bucket("mine")
        await one.put("mine", "in", content)
        await one.run("open(root + '/mine/out', 'wb').write(open(root + '/mine/in', 'rb').read() * 2)")
        file = (await one.written())["mine", "out"]
        assert Path(file.path).read_bytes() == content * 2
    finally:
        await one.close()
