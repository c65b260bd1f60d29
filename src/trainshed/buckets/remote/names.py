"""Which names of objects a remote store keeps apart: those a folder could have."""

from trainshed.core.bucket import check_object_name
from trainshed.core.errors import Invalid, Violation


def is_plain(name: str) -> bool:
    """Stores that keep folders, and the library that speaks to all of them, make one name of several else."""
    return (
        all(part not in ("", ".", "..") for part in name.split("/"))
        and "\\" not in name
        and not any(letter < " " or letter == "\x7f" for letter in name)
    )


def check_plain(name: str) -> str:
    check_object_name(name)
    if is_plain(name):
        return name
    sentence = (
        "In a bucket kept elsewhere, an object's name has no empty, '.' or '..' part between slashes, no "
        f"backslash and no control character: {name[:80]!r}."
    )
    raise Invalid((Violation("name", sentence),))
