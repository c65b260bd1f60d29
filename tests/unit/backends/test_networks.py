"""Networks of jobs, where the engine is busy with those of others."""

from pathlib import Path
from typing import Any, cast

from trainshed.backends.container.engine import Engine
from trainshed.backends.container.engine_errors import fault_of
from trainshed.backends.container.network import Networks


class BusyEngine:
    """Says what Podman says where an interface goes while it looks at all of them."""

    def __init__(self, times: int) -> None:
        self.left, self.made = times, list[str]()

    async def ask(self, verb: str, path: str, query: object = None, body: Any = None) -> Any:
        if verb == "GET":
            return []
        if self.left:
            self.left -= 1
            raise fault_of(verb, path, 500, b"route ip+net: no such network interface")
        self.made.append(path)
        return {}


async def test_an_interface_that_goes_while_a_network_is_made_is_no_reason_to_give_up(tmp_path: Path):
    engine = BusyEngine(times=3)
    networks = Networks(cast(Engine, engine), "home", "10.210.0.0/24", tmp_path, podman=False)
    net = await networks.make("job", 2)
    assert str(net.subnet) == "10.210.0.0/27"
    assert len(engine.made) == 1
