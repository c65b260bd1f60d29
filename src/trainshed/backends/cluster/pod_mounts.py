"""What a pod has beside its image: the volume for files, where it is seen, and variables that say so. Pure.

    /.trainshed/files        all of it, for the init (pod_files.h)
      code                   ... is /trainshed/code, the job's folder, where its program begins if it has one
      layer                  what is installed on top of the image: first on PYTHONPATH and PATH
      gcs                    ... is /gcs and /s3, the buckets
      report/report          where it may report its progress
      report/report.hypertune  ... by cloudml-hypertune
      tmp                    is TMPDIR, where the image has none

pod.py calls it. Paths that a program is told are those inside.
"""

from trainshed.backends.cluster.objects import Object
from trainshed.backends.cluster.pod_places import PodPlaces
from trainshed.core.jobs.launch import Launch
from trainshed.core.metrics import HYPERTUNE, REPORT, hypertune_file
from trainshed.core.view import ROOT, S3_ROOT

FILES_VOLUME: Object = {"name": "files", "emptyDir": {}}
_FILES = "/.trainshed/files"
_CODE = "/trainshed/code"
_START, _LAYER = "TRAINSHED_POD_FOLDER", "TRAINSHED_POD_LAYER"  # for the init; programs do not see them


def files_mounts(files: PodPlaces) -> list[Object]:
    """Without buckets /gcs is there, and read-only: what is written there must not seem to be stored."""
    mounts: list[Object] = [
        {"name": "files", "mountPath": _FILES},
        {"name": "files", "mountPath": ROOT, "subPath": "gcs", "readOnly": not files.gcs},
    ]
    if files.gcs:
        mounts.append({"name": "files", "mountPath": S3_ROOT, "subPath": "gcs"})
    if files.code:
        mounts.append({"name": "files", "mountPath": _CODE, "subPath": "code"})
    return mounts


def env_of(launch: Launch, files: PodPlaces) -> list[Object]:
    env: dict[str, str] = {}
    if files.code:
        env[_START] = f"{_CODE}/{launch.working_directory}".rstrip("/")
    if files.layer:
        env[_LAYER] = "1"
    if files.report:
        env[REPORT] = f"{_FILES}/report/report"
        if HYPERTUNE not in launch.env:
            env[HYPERTUNE] = hypertune_file(env[REPORT])
    return [{"name": name, "value": value.replace("$", "$$")} for name, value in env.items()]
