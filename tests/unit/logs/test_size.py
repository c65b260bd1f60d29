"""How much a replica has printed: both streams, nothing where there is nothing."""

from pathlib import Path

from trainshed.core.names import ReplicaName
from trainshed.logs.size import printed


def test_both_streams_count_and_what_is_not_there_has_printed_nothing(tmp_path: Path) -> None:
    name = ReplicaName("job", 1, 0, 2)
    assert printed(tmp_path, name) == 0
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "1.0-2.out").write_bytes(b"12345")
    assert printed(tmp_path, name) == 5
    (folder / "1.0-2.err").write_bytes(b"678")
    (folder / "1.0-1.err").write_bytes(b"others")
    assert printed(tmp_path, name) == 8
