"""A job that was applied as a Kubernetes manifest: what it is called there. Pure.

Its kind and name are its identity: one of a name at a time. `extras["manifest"]` keeps them, with the hash of
what was asked for, so that the same manifest applied again is known to be the same.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from trainshed.core.job import MANIFEST, Job

# Kept where idempotency keys are, which come in a header: no header can hold this one's line break.
_KEY = "manifests\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesManifest:
    kind: str  # Pod, Job
    name: str
    digest: str
    is_indexed: bool = False  # replicas are told their number as JOB_COMPLETION_INDEX

    def extra(self) -> dict[str, object]:
        """As it is kept in `Job.extras`."""
        kept: dict[str, object] = {"kind": self.kind, "name": self.name, "digest": self.digest}
        return {MANIFEST: kept | ({"indexed": True} if self.is_indexed else {})}

    def key(self, location: str, before: str) -> str:
        """By which a job is the one that follows the given one under its name, or the first."""
        return f"{_KEY}{location}\n{self.kind}\n{self.name}\n{before}"


def manifest_of(job: Job) -> KubernetesManifest | None:
    """What was applied; None where the job came by another way."""
    kept = job.extras.get(MANIFEST)
    if not isinstance(kept, Mapping):
        return None
    said = cast("Mapping[str, object]", kept)
    return KubernetesManifest(
        kind=str(said["kind"]),
        name=str(said["name"]),
        digest=str(said["digest"]),
        is_indexed=bool(said.get("indexed")),
    )


def digest_of(document: Mapping[str, object]) -> str:
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
