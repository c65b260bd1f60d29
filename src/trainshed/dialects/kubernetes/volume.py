"""Converts the volumes of a Pod to NFS mounts and scratch folders of pools. For `job.py`. Pure."""

import posixpath
from collections.abc import Mapping
from typing import Any

from trainshed.core.jobs.nfs import folder_fault
from trainshed.dialects.kubernetes.shape import part, parts, text
from trainshed.wire.faults import Faults
from trainshed.wire.scalars import shown

SHM = "/dev/shm"


class PodVolumes:
    """The volumes that a Pod declares. Each container mounts them on its own."""

    def __init__(self, pod: Mapping[str, Any], inside: str, faults: Faults) -> None:
        self._faults = faults
        self._declared: dict[str, tuple[Mapping[str, Any], str]] = {}
        self.origins: dict[str, str] = {}  # field of a pool to its path in the manifest
        self._scratch: dict[str, str] = {}  # emptyDir to the container that mounts it
        for at, volume in enumerate(parts(pod, "volumes")):
            name, path = text(volume, "name"), f"{inside}.volumes[{at}]"
            if not name:
                faults.add(f"{path}.name", "is required.")
            elif name in self._declared:
                faults.add(f"{path}.name", f"is given twice: {shown(name)}.")
            elif len(volume) == 1:
                faults.add(path, "is nothing: say nfs or emptyDir.")
            self._declared[name] = volume, path

    def of(self, container: Mapping[str, Any], path: str, pool: str) -> dict[str, Any]:
        """The mount fields of the container's pool. `pool` is the pool's path."""
        mounts: list[dict[str, Any]] = []
        scratch: list[str] = []
        for at, mount in enumerate(parts(container, "volumeMounts")):
            where = f"{path}.volumeMounts[{at}]"
            name, target = text(mount, "name"), text(mount, "mountPath").strip()
            if name not in self._declared:
                self._faults.add(f"{where}.name", f"names no volume: {shown(name)}.")
                continue
            volume, source = self._declared[name]
            target = posixpath.normpath(target) if target.startswith("/") else target
            if not target.startswith("/") or target == "/":
                self._faults.add(f"{where}.mountPath", f"must be the path of a folder, not {shown(target)}.")
            elif target != SHM and (sentence := folder_fault(target)):
                self._faults.add(f"{where}.mountPath", sentence)
            elif "nfs" in volume:
                self.origins[f"{pool}.nfs_mounts[{len(mounts)}]"] = f"{source}.nfs"
                mounts.append(_nfs(part(volume, "nfs"), mount, target))
            elif "emptyDir" in volume and self._has(name, mount, path, where) and target != SHM:
                scratch.append(target)
        fields: dict[str, Any] = {"nfsMounts": mounts} if mounts else {}
        return fields | ({"scratchDirs": scratch} if scratch else {})

    def _has(self, name: str, mount: Mapping[str, Any], path: str, where: str) -> bool:
        """Whether this container may mount the emptyDir: no other container may share it."""
        if self._scratch.setdefault(name, path) != path:
            sentence = f"cannot be shared: {self._scratch[name]} has it, and each container runs by itself."
            self._faults.add(f"{where}.name", sentence)
            return False
        if text(mount, "subPath"):
            self._faults.add(f"{where}.subPath", "cannot be had: an emptyDir is mounted whole.")
            return False
        return True


def _nfs(source: Mapping[str, Any], mount: Mapping[str, Any], target: str) -> dict[str, Any]:
    below = text(mount, "subPath").strip("/")
    folder = text(source, "path").rstrip("/")
    spec = {"server": text(source, "server"), "path": f"{folder}/{below}" if below else folder or "/"}
    spec["mountPoint"] = target
    return spec | ({"readOnly": True} if mount.get("readOnly") or source.get("readOnly") else {})
