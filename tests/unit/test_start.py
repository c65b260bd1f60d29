"""What a server that starts does not import: time that everybody would wait for, and nobody need."""

import json
import subprocess
import sys
from functools import cache

# A wrong setting ends it when all is imported that there is to import.
CODE = """import json, sys
from trainshed.server import main
assert main(["--no-such-setting", "x"]) == 1
print(json.dumps(sorted(sys.modules)))
"""


@cache
def imported() -> frozenset[str]:
    done = subprocess.run([sys.executable, "-P", "-c", CODE], capture_output=True, text=True, check=True)
    return frozenset(json.loads(done.stdout))


def test_of_containers_only_what_looks_for_an_engine_is_imported_at_the_start():
    found = imported()
    prefix = "trainshed.backends.container."
    own = {name.removeprefix(prefix) for name in found if name.startswith(prefix)}
    assert own == {"engine_finder"}
    assert "h11" not in found


def test_nothing_of_warm_starts_is_imported_where_nobody_asks_for_them():
    assert not [name for name in imported() if name.startswith("trainshed.backends.process.warm")]


def test_no_command_line_and_no_web_client_is_imported_by_the_server():
    assert not imported() & {"click", "urllib.request", "wsproto", "obstore", "yaml"}
