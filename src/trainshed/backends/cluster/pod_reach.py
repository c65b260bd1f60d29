"""What a pod is given so that its programs reach the server: ports, names, certificates and variables. Pure.

`reach_gate.py` asks for each launch. The init passes on what connects to the loopback ports (pod_tunnel.h).
Google's names lead to one of them (decision 34); the server's roots come by a ConfigMap. What an image sets
itself wins over variables that only make libraries trust the server, so these go by another name to the init.
Values with the job's token are in the job's secret, not in the pod.
"""

import hashlib
from dataclasses import replace

from trainshed.backends.cluster.objects import Object
from trainshed.backends.cluster.pod import HOME, PodReach
from trainshed.backends.machine.loopback import INSIDE, LoopbackPort, with_inside_address
from trainshed.core.google import HOSTS, past_proxies
from trainshed.core.jobs.launch import Launch

ROOTS = "/.trainshed/roots.pem"
DEFAULT = "TRAINSHED_DEFAULT_"  # before the name of a variable that the image may set itself


def reached(
    launch: Launch, loopback: LoopbackPort, roots: str, *, low_ports: bool
) -> tuple[Launch, PodReach]:
    """The launch with its variables as they are inside, and what its pod needs for them.

    `roots` is the ConfigMap with the roots; `low_ports`: the cluster lets any user listen below 1024.
    """
    google = launch.google if loopback.named and roots else None
    env = with_inside_address(launch.env, loopback)
    weak: dict[str, str] = {}
    if google is not None:
        weak = with_inside_address(google.env(ROOTS), loopback)
        weak |= {"no_proxy": f"{INSIDE},{','.join(HOSTS)}", "NO_PROXY": f"{INSIDE},{','.join(HOSTS)}"}
        env |= past_proxies(env)
    env = {**{f"{DEFAULT}{name}": value for name, value in weak.items() if name not in env}, **env}
    shared = frozenset(name for name, value in env.items() if google is not None and google.token in value)
    reach = PodReach(
        ports=loopback.ports,
        hosts={} if google is None else dict.fromkeys(HOSTS, INSIDE),
        roots=roots if google is not None else "",
        low_ports=google is not None and low_ports,
        shared=shared - launch.secrets,
    )
    return replace(launch, env=env), reach


def render_roots(home: str, text: str) -> Object:
    """The ConfigMap of the roots, named after its content."""
    digest = hashlib.sha256(f"{home} {text}".encode()).hexdigest()[:16]
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"trainshed-roots-{digest}", "labels": {HOME: home}},
        "data": {"roots.pem": text},
    }


def unheard_note(port: int) -> str:
    return (
        f"Port {port} of the server is missing inside: the user of its image may not listen there, or "
        "somebody else does. At port 443 are Google's names; STORAGE_EMULATOR_HOST leads to the buckets "
        "all the same."
    )
