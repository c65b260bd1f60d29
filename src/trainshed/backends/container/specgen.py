"""The same container in Podman's own words, for what its version of Docker's cannot say: CDI devices. Pure.

It may assume a body as render.py makes it; what that never says is not looked for.
"""

from collections.abc import Mapping, Sequence
from typing import Any

CDI = "cdi"


def devices(body: Mapping[str, Any]) -> list[str]:
    """The CDI devices a body asks for, by their names."""
    requests: Sequence[Mapping[str, Any]] = body["HostConfig"].get("DeviceRequests") or ()
    return [str(name) for request in requests if request["Driver"] == CDI for name in request["DeviceIDs"]]


def spec(name: str, body: Mapping[str, Any]) -> dict[str, object]:
    host: Mapping[str, Any] = body["HostConfig"]
    mounts: Sequence[Mapping[str, Any]] = host["Mounts"]
    endpoints: Mapping[str, Mapping[str, Any]] = body["NetworkingConfig"]["EndpointsConfig"]
    made: dict[str, object] = {
        "name": name,
        "image": body["Image"],
        "entrypoint": body["Entrypoint"],
        "command": body["Cmd"],
        "env": dict(word.split("=", 1) for word in body["Env"]),
        "user": body["User"],
        "work_dir": body["WorkingDir"],
        "labels": body["Labels"],
        "mounts": [_bind(mount) for mount in mounts if mount["Type"] == "bind"],
        "volumes": [_volume(mount) for mount in mounts if mount["Type"] == "volume"],
        "netns": {"nsmode": "bridge"},
        "Networks": {net: _endpoint(one) for net, one in endpoints.items()},
        "hostadd": host["ExtraHosts"],
        "resource_limits": {
            "memory": {"limit": host["Memory"], "swap": host["MemorySwap"]},
            "cpu": {
                "quota": host["CpuQuota"],
                "period": host["CpuPeriod"],
                **({"shares": host["CpuShares"]} if "CpuShares" in host else {}),
            },
            "pids": {"limit": host["PidsLimit"]},
        },
        "shm_size": host["ShmSize"],
        "cap_drop": host["CapDrop"],
        "no_new_privileges": True,
        "restart_policy": "no",
        "log_configuration": {"driver": host["LogConfig"]["Type"]},
        "devices": [{"path": device} for device in devices(body)],
    }
    if "Hostname" in body:
        made["hostname"] = body["Hostname"]
    if "CgroupParent" in host:
        made["cgroup_parent"] = host["CgroupParent"]
    if "StorageOpt" in host:
        made["storage_opts"] = host["StorageOpt"]
    return made


def _bind(mount: Mapping[str, Any]) -> dict[str, object]:
    options = ["rbind", "ro" if mount["ReadOnly"] else "rw"]
    return {"type": "bind", "source": mount["Source"], "destination": mount["Target"], "options": options}


def _volume(mount: Mapping[str, Any]) -> dict[str, object]:
    return {"Name": mount["Source"], "Dest": mount["Target"], "Options": ["nocopy"]}


def _endpoint(endpoint: Mapping[str, Any]) -> dict[str, object]:
    address = endpoint.get("IPAMConfig", {}).get("IPv4Address")
    return {"static_ips": [address]} if address else {}
