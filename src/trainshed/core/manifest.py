"""The Kubernetes manifest that a job was applied as. Pure.

`service/manifests.py`, `wire/manifest.py` and `core/cluster_env.py` use it. Kind and name identify a job: one
job of a name at a time. `extras["manifest"]` keeps them with the hash of the manifest, so that the same
manifest, applied again, is recognised.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from trainshed.core.job import MANIFEST, Job

# Stored as an idempotency key. Clients send theirs in a header, which cannot have a line break.
_KEY = "manifests\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesManifest:
    kind: str  # Pod, Job
    name: str
    digest: str
    is_indexed: bool = False  # replicas get their number as JOB_COMPLETION_INDEX

    def extra(self) -> dict[str, object]:
        """The entry for `Job.extras`."""
        kept: dict[str, object] = {"kind": self.kind, "name": self.name, "digest": self.digest}
        return {MANIFEST: kept | ({"indexed": True} if self.is_indexed else {})}

    def key(self, location: str, before: str) -> str:
        """The key of the job that follows `before` under this name; empty `before`: of the first job."""
        return f"{_KEY}{location}\n{self.kind}\n{self.name}\n{before}"


def manifest_of(job: Job) -> KubernetesManifest | None:
    """The manifest that was applied; None for any other job."""
    kept = job.extras.get(MANIFEST)
    if not isinstance(kept, Mapping):
        return None
    entry = cast("Mapping[str, object]", kept)
    return KubernetesManifest(
        kind=str(entry["kind"]),
        name=str(entry["name"]),
        digest=str(entry["digest"]),
        is_indexed=bool(entry.get("indexed")),
    )


def digest_of(document: Mapping[str, object]) -> str:
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
