"""What the page of an address asks the server first. The server names it in the page.

So a browser asks while it reads the modules. lib/job-tabs.js asks the same: a question that differs here is
only asked twice.
"""

from urllib.parse import quote

_TAIL = 300  # as in lib/job-tabs.js
_POINTS = 720
_OF_TABS = {"logs": f":lines?line=-{_TAIL}&count={_TAIL}", "graphs": f":graphs?points={_POINTS}"}
_PARTS = 4  # jobs/PROJECT/LOCATION/ID, and perhaps a tab


def first_questions(address: str, *, has_query: bool) -> list[str]:
    """What the page at an address behind /console/ asks, as paths. A query may change what a tab asks."""
    list_name, *rest = [part for part in address.split("/") if part] or [""]
    if list_name != "jobs" or len(rest) + 1 < _PARTS or rest[0] == "-":
        return []
    project, location, job, *tabs = [quote(part, safe="") for part in rest]
    name = f"/v1/projects/{project}/locations/{location}/customJobs/{job}"
    of_tab = _OF_TABS.get(tabs[0]) if tabs and not has_query else None
    return [f"{name}?view=trainshed", f"{name}:status?view=trainshed", *([name + of_tab] if of_tab else [])]
