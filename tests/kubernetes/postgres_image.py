"""An image of PostgreSQL without a registry: this machine's programs, for tests of the chart in a cluster.

Its first process keeps the database in /data, with a superuser `postgres` whose password is PASSWORD.
"""

import subprocess
import tarfile
import tempfile
from pathlib import Path

from scripts.base_image import libraries, placed
from scripts.cluster_parts.image import BASE_PATH, pack, write_base

PASSWORD = "a-word"
ZONES = Path("/usr/share/zoneinfo")
START = f"""
set -e
cd /data
if [ ! -e made ]; then
    rm -rf db
    echo {PASSWORD} > word
    initdb -D db -U postgres -A scram-sha-256 --pwfile word --no-sync --no-locale -E UTF8
    echo "host all all all scram-sha-256" >> db/pg_hba.conf
    touch made
fi
exec postgres -D db -h "*" -k /data
"""


def pack_postgres(programs: Path, archive: Path, name: str) -> None:
    """Write the image as an archive that `scripts/cluster load` takes. `programs` is the folder of initdb."""
    asked = [programs / "pg_config", "--sharedir", "--pkglibdir"]
    told = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()
    folders = [programs, *map(Path, told), ZONES]
    with tempfile.TemporaryDirectory(prefix="postgres-", dir=archive.parent) as folder:
        layer = Path(folder, "layer.tar")
        write_base(layer)
        with tarfile.open(layer, "a") as tar:
            for path in map(str, folders):
                tar.add(path, placed(path))
            linked = [str(programs / "initdb"), str(programs / "postgres"), str(programs / "psql")]
            for library in set(libraries(linked)):
                tar.add(library, placed(library))
        env = [f"{BASE_PATH}:{programs}"]
        pack(layer, archive, name, {"Env": env, "User": "nobody", "Cmd": ["sh", "-c", START]})
