"""Looks for the places a job is to use, before it is submitted: hours later its program would not find them.

Asked is the server, for what its buckets hold. Only imported where a job has such places (docs/adr/0014).
"""

from urllib.parse import quote, urlencode

from trainshed.cli import words
from trainshed.cli.places import variables
from trainshed.cli.trouble import EarlyError
from trainshed.client.errors import ApiError

TYPE_CHECKING = False  # the module typing takes longer to import than a job takes to submit
if TYPE_CHECKING:
    from trainshed.cli.submit_options import SubmitWords
    from trainshed.client import Client, Json

_PATTERN = "*?["
_PAGES = 10  # of names that are held against a pattern


def seek(client: "Client", options: "SubmitWords") -> None:
    """Raises Trouble that names every place which is not there, and what may have been meant."""
    missing: list[str] = []
    data = tuple(variables(options.data).values())
    for place in dict.fromkeys((*filter(None, (options.output, options.job_dir)), *data)):
        bucket, name = split(place)
        if not bucket:
            continue
        fault = _fault(client, place, bucket)
        if fault == "" and place in data and not _is_there(client, bucket, name):
            fault = f"there is nothing at {place}; {_meant(client, place, bucket, name)}"
        missing += [fault] if fault else []
    if missing:
        raise EarlyError("nothing was submitted", list(dict.fromkeys(missing)))


def split(place: str) -> tuple[str, str]:
    """Bucket and name of a place that this server can be asked about; of others, nothing."""
    scheme, _, rest = place.partition("://")
    bucket, _, name = rest.partition("/")
    return (bucket, name) if scheme in ("gs", "s3") else ("", "")


def listed(client: "Client", bucket: str, **asked: str) -> "Json":
    """One page: names and sizes of objects, and prefixes."""
    query = urlencode({**asked, "fields": "items(name,size),prefixes,nextPageToken"})
    return client.ask("GET", f"/storage/v1/b/{quote(bucket, safe='')}/o?{query}")


def _fault(client: "Client", place: str, bucket: str) -> str | None:
    """Why no job of the project could use the bucket; empty where one can, None where we cannot know."""
    scheme = place.partition("://")[0]
    if bucket in _buckets(client, bucket):
        return ""
    try:
        listed(client, bucket, maxResults="1")
    except ApiError as error:
        if error.code != 404:
            raise
        if scheme == "s3":
            return None  # of a store that this server was not told of, but perhaps the program
        from difflib import get_close_matches

        near = get_close_matches(bucket, _buckets(client), 1)
        hint = f"did you mean gs://{near[0]}?" if near else f"trainshed storage buckets create gs://{bucket}"
        return f"there is no bucket gs://{bucket}; {hint}"
    whose = f"belongs to another project than {client.project}"
    return f"bucket {scheme}://{bucket} {whose}: its jobs may not use it"


def _buckets(client: "Client", prefix: str = "") -> list[str]:
    """Those that jobs of the project may use."""
    query = urlencode({"project": client.project, "prefix": prefix})
    return [str(part["name"]) for part in words.parts(client.ask("GET", f"/storage/v1/b?{query}"), "items")]


def _is_there(client: "Client", bucket: str, name: str) -> bool:
    """An object of that name, or something below it; or something that may fit a pattern."""
    if not name:
        return True
    if any(letter in name for letter in _PATTERN):
        return _first(client, bucket, name) == name or _fits(client, bucket, name)
    # Of all that begin with a name, the name itself comes first.
    return _first(client, bucket, name) == name or bool(_first(client, bucket, f"{name.rstrip('/')}/"))


def _fits(client: "Client", bucket: str, pattern: str) -> bool:
    """Whether an object, or a folder of one, fits; or may, behind more names than are looked at."""
    from fnmatch import fnmatchcase

    prefix = pattern[: min(pattern.index(letter) for letter in _PATTERN if letter in pattern)]
    whole = pattern.rstrip("/").replace("**/", "*")
    asked = {"prefix": prefix}
    for _ in range(_PAGES):
        page = listed(client, bucket, **asked)
        names = [str(part["name"]) for part in words.parts(page, "items")]
        if any(fnmatchcase(name, whole) or fnmatchcase(name, f"{whole}/*") for name in names):
            return True
        if not (more := page.get("nextPageToken")):
            return False
        asked["pageToken"] = str(more)
    return True


def _first(client: "Client", bucket: str, prefix: str) -> str:
    objects = words.parts(listed(client, bucket, prefix=prefix, maxResults="1"), "items")
    return str(objects[0]["name"]) if objects else ""


def _meant(client: "Client", place: str, bucket: str, name: str) -> str:
    """What is most like it in the deepest of its folders that is there."""
    from difflib import get_close_matches

    root = f"{place.partition('://')[0]}://{bucket}"
    parts = name.rstrip("/").split("/")
    for depth in range(len(parts) - 1, -1, -1):
        folder = "".join(f"{part}/" for part in parts[:depth])
        page = listed(client, bucket, prefix=folder, delimiter="/")
        names = (str(item["name"]) for item in words.parts(page, "items"))
        there = {
            item.removeprefix(folder).rstrip("/"): item for item in (*names, *words.parts(page, "prefixes"))
        }
        if there:
            near = get_close_matches(parts[depth], list(there), 1, 0.4)
            return f"did you mean {root}/{there[near[0]]}?" if near else f"there is {root}/{folder}"
    return "the bucket is empty"
