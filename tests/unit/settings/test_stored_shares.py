"""The shares that the API sets: kept until there are none."""

from pathlib import Path

from trainshed.settings.stored_shares import StoredShares


def test_shares_of_the_root_alone_are_kept_and_an_empty_document_removes_them(tmp_path: Path):
    path = tmp_path / "shares.json"
    stored = StoredShares(path, {})
    checked = list[object]()
    stored.put({"share": {"root": {"budget": 100}}}, checked.append)
    for shares in (stored, StoredShares(path, {})):
        tree = shares()
        assert tree is not None
        assert tree.budgets == {"root": 100}
    stored.put({"share": {}}, checked.append)
    assert stored() is None and checked[-1] is None
    assert not path.exists()
