"""A real SeaweedFS for tests: set up as the server sets up its own, in the foreground of the test run."""

import os
import shutil
import subprocess
import time
from pathlib import Path
from unittest.mock import patch

import pytest

from trainshed.buckets.remote.probe import probe
from trainshed.buckets.remote.rows import Remote, StoreKind, literal
from trainshed.buckets.seaweed import Seaweed, command
from trainshed.buckets.seaweed_keys import REGION
from trainshed.core.errors import TrainshedError

ROOT = Path(__file__).parents[1]
PYTHON = ROOT / ".venv-s3" / "bin" / "python"  # with boto3 and the aws command


def weed_on_path() -> str:
    """A PATH on which `weed` is; the test is skipped where there is none."""
    path = f"{ROOT / '.venv-s3' / 'bin'}:{os.environ['PATH']}"
    if shutil.which("weed", path=path) is None:
        pytest.skip("SeaweedFS is not there; get it with: make s3")
    return path


class Weed:
    """With as many buckets as named; `remote` gives one of them under another name."""

    def __init__(self, home: Path, buckets: tuple[str, ...]) -> None:
        path = weed_on_path()
        self.seaweed = Seaweed(home, buckets)
        with patch.dict(os.environ, PATH=path):
            self.seaweed.prepare()
        self.log = (home / "weed.log").open("wb")
        program = shutil.which("weed", path=path)
        self.process = subprocess.Popen(
            command(str(program), home, self.seaweed.ports), stdout=self.log, stderr=self.log, cwd=home
        )
        until = time.monotonic() + 60
        while True:
            try:
                probe(self.remote(name) for name in buckets)
                break
            except TrainshedError:
                if self.process.poll() is not None or time.monotonic() > until:
                    self.close()
                    raise
                time.sleep(0.1)

    def remote(self, bucket: str, name: str = "", **changed: object) -> Remote:
        keys = self.seaweed.keys.own
        row: dict[str, object] = {
            "name": name or bucket,
            "kind": StoreKind.S3,
            "bucket": bucket,
            "endpoint": self.seaweed.ports.endpoint,
            "region": REGION,
            "keys": {"access_key": literal(keys.access), "secret_key": literal(keys.secret)},
        }
        return Remote(**(row | changed))  # pyright: ignore[reportArgumentType]

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.log.close()
        self.seaweed.claims.close()
