"""`python -m trainshed.assembly.doctor`: looks for all that a server with these settings needs.

`trainshed doctor` starts it, and reads a line of JSON for each finding. It takes the settings of
`trainshed up`, and starts no server. Nothing of Kubernetes is imported where no cluster is asked for.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import AsyncGenerator, Sequence
from dataclasses import asdict
from pathlib import Path

from trainshed.assembly.machine_checks import check_keeping, check_machine
from trainshed.assembly.pod_template import find_pod_template
from trainshed.core.checkup import Finding, Grade
from trainshed.core.errors import TrainshedError
from trainshed.settings.table import Settings, SettingsError

_TIMEOUT = 10.0  # seconds


async def findings(settings: Settings, asked: argparse.Namespace) -> AsyncGenerator[Finding]:
    with tempfile.TemporaryDirectory(prefix="trainshed-doctor-") as folder:
        async for finding in check_keeping(settings):
            yield finding
        checks = (
            _cluster(settings, Path(folder), asked)
            if settings.kubernetes
            else check_machine(settings, Path(folder))
        )
        async for finding in checks:
            yield finding
        for host in asked.registry:
            yield await asyncio.to_thread(_registry, host)


async def _cluster(settings: Settings, folder: Path, asked: argparse.Namespace) -> AsyncGenerator[Finding]:
    try:
        from trainshed.backends.cluster.api import ClusterApi, find_config
        from trainshed.backends.cluster.checks import check_cluster
    except ImportError as error:
        remedy = "pip install 'trainshed[kubernetes]'"
        sentence = f"{error.name} is missing"
        yield Finding(what="client", grade=Grade.MISSING, sentence=sentence, remedy=remedy)
        return
    try:
        config = find_config(str(settings.kubeconfig or ""), settings.context)
    except TrainshedError as error:
        remedy = "name one with --kubeconfig and --context; see: kubectl config get-contexts"
        yield Finding(what="API", grade=Grade.MISSING, sentence=error.message, remedy=remedy)
        return
    api = ClusterApi(config, settings.namespace)
    try:
        async for finding in check_cluster(
            api,
            folder,
            image=asked.image,
            storage_class=asked.storage_class,
            template=find_pod_template(settings.pod_template),
            queue=settings.kueue_queue,
        ):
            yield finding
    finally:
        await api.close()


def _registry(host: str) -> Finding:
    """From this machine; nodes may have another way."""
    address = host if "://" in host else f"https://{host}"
    try:
        with urllib.request.urlopen(f"{address.rstrip('/')}/v2/", timeout=_TIMEOUT):
            pass
    except urllib.error.HTTPError as error:
        if error.code not in (401, 403):  # it wants credentials, so it is there
            sentence = f"{host} answers with status {error.code}: it is no registry"
            return Finding(
                what="registry", grade=Grade.MISSING, sentence=sentence, remedy="check its name and port"
            )
    except (OSError, ValueError) as error:
        sentence = f"{host} cannot be reached from here: {error}"
        remedy = f"check its name and the network; without TLS, name it http://{host}"
        return Finding(what="registry", grade=Grade.MISSING, sentence=sentence, remedy=remedy)
    return Finding(what="registry", grade=Grade.OK, sentence=f"{host} answers")


async def _print(settings: Settings, asked: argparse.Namespace) -> None:
    async for finding in findings(settings, asked):
        print(json.dumps(asdict(finding)), flush=True)


def main(args: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="trainshed doctor", allow_abbrev=False)
    parser.add_argument("--image", default="")
    parser.add_argument("--storage-class", default="")
    parser.add_argument("--registry", action="append", default=[])
    asked, others = parser.parse_known_args(args)
    try:
        asyncio.run(_print(Settings.from_args(others), asked))
    except (SettingsError, TrainshedError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
