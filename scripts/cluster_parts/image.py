"""Images without a registry or an engine: one layer, packed as the archive that `docker save` would write."""

import hashlib
import io
import json
import subprocess
import sys
import tarfile
from pathlib import Path

from scripts.cluster_parts.place import ROOT, architecture

BASE = "localhost/python:3"  # the machine's Python, shell and core tools, as the tests of containers have it
BASE_PATH = "PATH=/usr/local/bin:/usr/bin:/bin"


def pack(layer: Path, archive: Path, name: str, config: dict[str, object]) -> None:
    """Writes an image whose only layer is this tar file."""
    with layer.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    described = {
        "architecture": architecture(),
        "os": "linux",
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        "history": [{"created": "1970-01-01T00:00:00Z"}],
    }
    text = json.dumps(described).encode()
    label = f"{hashlib.sha256(text).hexdigest()}.json"
    manifest = [{"Config": label, "RepoTags": [name], "Layers": ["layer.tar"]}]
    with tarfile.open(archive, "w") as tar:
        tar.add(layer, "layer.tar")
        for file, content in ((label, text), ("manifest.json", json.dumps(manifest).encode())):
            info = tarfile.TarInfo(file)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


def pack_base(folder: Path) -> Path:
    """The image of all tests of containers, made of this machine's files, in this folder."""
    layer, archive = folder / "base-layer.tar", folder / "base.tar"
    write_base(layer)
    pack(layer, archive, BASE, {"Env": [BASE_PATH]})
    layer.unlink()
    return archive


def write_base(layer: Path) -> None:
    """The layer of that image. Others are made of it by adding files."""
    with layer.open("wb") as output:
        script = ROOT / "scripts" / "base_image.py"
        subprocess.run([sys.executable, str(script)], stdout=output, check=True)


def pack_program(program: Path, archive: Path, name: str) -> None:
    """An image with one program in it, which runs first."""
    layer = archive.with_suffix(".layer")
    with tarfile.open(layer, "w") as tar:
        tar.add(program, program.name)
    pack(layer, archive, name, {"Entrypoint": [f"/{program.name}"]})
    layer.unlink()
