"""What can happen to a cluster and to the server that uses it, done on purpose and by chance.

`test_cluster.py` inflicts it. Faults that last (a cut cable, a node without power) are mended later by
themselves, while other faults happen. All that was done is written down, since it explains what follows.
"""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from scripts.cluster_parts.node import name_of
from tests.kubernetes.cluster import Cluster, wait_for
from tests.live import LiveServer

OURS = "labelSelector=trainshed.dev/home,trainshed.dev/job"
INIT = b"/.trainshed/bin/init"
COMPACT = """
import json, urllib.request
def ask(path, **body):
    address = "http://127.0.0.1:2379/v3/kv/" + path
    return json.load(urllib.request.urlopen(address, json.dumps(body).encode(), 20))
revision = ask("range", key="AA==")["header"]["revision"]
ask("compaction", revision=revision)
"""


@dataclass(slots=True)
class Harm:
    """One fault; of those that last, from when to when."""

    what: str
    target: str
    begun: float
    mended: float | None = None


@dataclass(slots=True)
class Faults:
    cluster: Cluster
    server: LiveServer
    rng: random.Random
    namespace: str
    done: list[Harm] = field(default_factory=list[Harm])
    _open: list[tuple[float, Harm, Callable[[], object]]] = field(default_factory=list[Any])

    def inflict(self, names: dict[str, int]) -> None:
        """One of those, by weight. What is due is mended first."""
        self.mend(time.monotonic())
        name = self.rng.choices(list(names), list(names.values()))[0]
        getattr(self, f"_{name}")()

    def mend(self, until: float) -> None:
        """What has lasted until that moment; the others later."""
        for row in [row for row in self._open if row[0] <= until]:
            _, harm, repair = row
            self._open.remove(row)
            repair()
            harm.mended = time.monotonic()

    def mend_all(self) -> None:
        self.mend(float("inf"))
        if self.server.process is None or self.server.process.poll() is not None:
            self.server.start()

    def struck(self, node: str, begun: float, until: float) -> bool:
        """Whether that node was harmed in that time, so that its programs may go on unseen or end."""
        return any(
            harm.target == node and harm.begun < until and (harm.mended or until) >= begun
            for harm in self.done
        )

    # Pods

    def _delete(self) -> None:
        self._remove_pod("delete", {"propagationPolicy": "Background"})

    def _delete_at_once(self) -> None:
        self._remove_pod("delete at once", {"gracePeriodSeconds": 0})

    def _remove_pod(self, word: str, options: dict[str, object]) -> None:
        for pod in self._some_pod():
            self._note(word, pod)
            self._ask("DELETE", f"/api/v1/namespaces/{self.namespace}/pods/{pod}", options)

    def _evict(self) -> None:
        for pod in self._some_pod():
            self._note("evict", pod)
            body = {"apiVersion": "policy/v1beta1", "kind": "Eviction", "metadata": {"name": pod}}
            self._ask("POST", f"/api/v1/namespaces/{self.namespace}/pods/{pod}/eviction", body)

    def _kill_program(self) -> None:
        self._kill_process("kill program", is_init=False)

    def _kill_init(self) -> None:
        self._kill_process("kill init", is_init=True)

    def _kill_process(self, word: str, *, is_init: bool) -> None:
        processes = [(pid, run) for pid, run, init in self._processes() if init is is_init]
        if processes:
            pid, run = self.rng.choice(processes)
            self._note(word, run)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _processes(self) -> list[tuple[int, str, bool]]:
        """The programs and inits in pods of this server: each names the server's namespace and its run."""
        found: list[tuple[int, str, bool]] = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            with contextlib.suppress(OSError):
                env = (entry / "environ").read_bytes().split(b"\0")
                if f"CHAOS={self.namespace}".encode() in env:
                    run = next(word for word in env if word.startswith(b"TRAINSHED_RUN="))
                    is_init = (entry / "cmdline").read_bytes().startswith(INIT)
                    found.append((int(entry.name), run.partition(b"=")[2].decode(), is_init))
        return found

    # Nodes

    def _cut(self) -> None:
        self._hurt_node("cut", "join")

    def _off(self) -> None:
        self._hurt_node("off", "on")

    def _hurt_node(self, harm: str, mend: str) -> None:
        """One node at a time: jobs must be able to go on somewhere."""
        if any(row.target in self._nodes() for _, row, _ in self._open):
            return
        node = self.rng.choice(self._nodes())
        self._note(harm, node)
        self.cluster.command("node", node, harm)
        self._later(lambda: self.cluster.command("node", node, mend), self.rng.choice((2.0, 8.0, 20.0)))

    def _nodes(self) -> list[str]:
        return [name_of(number) for number in self.cluster.place.numbers()]

    # The API server and ours

    def _stop_api(self) -> None:
        if any(row.what == "stop api" for _, row, _ in self._open):
            return
        self._note("stop api", "apiserver")
        self.cluster.command("apiserver", "stop")
        if self.rng.random() < 0.5:
            self._compact_now()  # so that watches cannot go on from where they were
        self._later(lambda: self.cluster.command("apiserver", "start"), self.rng.uniform(0, 12))

    def _compact(self) -> None:
        self._note("compact", "etcd")
        self._compact_now()

    def _compact_now(self) -> None:
        namespace = f"--net=/run/netns/{self.cluster.place.addresses.namespace}"
        words = ["nsenter", namespace, "--", sys.executable, "-c", COMPACT]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        # Nothing has changed since the last time: that is refused.
        assert done.returncode == 0 or "HTTP Error 400" in done.stderr, done.stderr

    def _kill_server(self) -> None:
        self._note("kill server", "server")
        self.server.kill()
        time.sleep(self.rng.choice((0.0, 0.0, 0.5, 3.0)))
        self.server.start(wait=False)
        time.sleep(self.rng.choice((0.0, 0.3, 2.0)))

    # Parts

    def _some_pod(self) -> list[str]:
        """The name of one of ours; none where there is none or nobody answers."""
        with contextlib.suppress(OSError):
            answer = self.cluster.api.get(f"/api/v1/namespaces/{self.namespace}/pods?{OURS}", timeout=5)
            names = [item["metadata"]["name"] for item in answer.body["items"]] if answer.ok else []
            return self.rng.sample(names, min(len(names), 1))
        return []

    def _ask(self, method: str, path: str, body: object) -> None:
        with contextlib.suppress(OSError):
            self.cluster.api.ask(method, path, body, timeout=5)

    def _note(self, what: str, target: str) -> None:
        self.done.append(Harm(what, target, time.monotonic()))

    def _later(self, repair: Callable[[], object], seconds: float) -> None:
        self._open.append((time.monotonic() + seconds, self.done[-1], repair))

    def told(self) -> str:
        return "\n".join(json.dumps(asdict(harm)) for harm in self.done)


def wait_until_whole(cluster: Cluster) -> None:
    """Until all nodes take pods again."""

    def look() -> bool:
        answer = cluster.api.get("/api/v1/nodes", timeout=5)
        rows = answer.body["items"] if answer.ok else []
        return bool(rows) and not any(row["spec"].get("taints") for row in rows)

    wait_for(look, "that all nodes take pods")
