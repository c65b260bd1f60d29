"""Four gloo ranks to their first all-reduce: four bare processes with the same environment as the floor."""

import os
import subprocess
import time
from pathlib import Path
from statistics import median

from tests.benchmarks.row import Row
from tests.live import PARENT, LiveServer, pool

TRAIN = Path(__file__).parents[2] / ".venv-train/bin/python"
RANKS = 4
ROUNDS = 3
CODE = """
import time, torch, torch.distributed as dist
dist.init_process_group("gloo")
x = torch.ones(1)
dist.all_reduce(x)
assert x.item() == dist.get_world_size()
print(time.time_ns(), flush=True)
dist.destroy_process_group()
"""


def all_reduce(*, warm: bool = False) -> Row:
    floors: list[float] = []
    ours: list[float] = []
    with LiveServer(*(("--warm", f"{TRAIN}=torch,torch.distributed") if warm else ())) as server:
        if warm:
            await_warmth(server)
        for number in range(ROUNDS):
            floors.append(_bare(29600 + number))
            began = time.time_ns()
            pools = [
                pool([str(TRAIN), "-c", CODE], machine="n1-standard-1"),
                pool([str(TRAIN), "-c", CODE], machine="n1-standard-1", replicas=RANKS - 1),
            ]
            name = server.submit(pools=pools)
            assert server.wait(name, 300)["state"] == "JOB_STATE_SUCCEEDED", server.lines(name)
            stamps = [int(x["text"]) for x in server.lines(name) if x["text"].isdigit()]
            ours.append((max(stamps) - began) / 1e9)
    return Row(
        what=f"{'warm ' if warm else ''}{RANKS}-rank gloo all-reduce, submit -> done",
        floor=f"{median(floors):.2f} s",
        ours=f"{median(ours):.2f} s",
        value=median(ours) / median(floors),
        goal=0.35 if warm else 1.05,
    )


def await_warmth(server: LiveServer) -> None:
    while True:
        found = server.get(f"{PARENT}/runtimes")["runtimes"]
        states = [one["warm"]["state"] for one in found if "warm" in one]
        if states == ["WARM"]:
            return
        assert "UNSAFE" not in states, found
        time.sleep(0.1)


def _bare(port: int) -> float:
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(RANKS)}
    began = time.time_ns()
    ranks = [
        subprocess.Popen(
            [TRAIN, "-c", CODE], env=os.environ | shared | {"RANK": str(rank)}, stdout=subprocess.PIPE
        )
        for rank in range(RANKS)
    ]
    stamps = [int(rank.communicate()[0]) for rank in ranks]
    return (max(stamps) - began) / 1e9
