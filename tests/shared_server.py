"""What makes a server as good as new for the next test: to start another takes longer than a short test."""

from urllib.parse import quote

from tests.live import JOBS, PARENT, LiveServer, until


def forget_jobs(server: LiveServer, place: str = JOBS) -> None:
    """All custom jobs of the tests' project, or of another place, end and are deleted."""
    jobs = [str(job["name"]) for job in server.get(place).get("customJobs", [])]
    for job in jobs:
        server.request("POST", f"/v1/{job}:cancel", {})  # refused where it is over
    for job in jobs:
        server.wait(job)
        server.request("DELETE", f"/v1/{job}")


def forget_runtimes(server: LiveServer) -> None:
    """All that were built are removed, also what a build for a cancelled job still makes."""
    place = f"{PARENT}/runtimes"
    until(lambda: all(one["state"] != "BUILDING" for one in server.get(place)["runtimes"]))
    server.post(f"{place}:prune")


def forget_bucket(server: LiveServer, bucket: str) -> None:
    """It goes with all of its objects, if it is there."""
    place, token = f"/storage/v1/b/{bucket}", ""
    while (answer := server.request("GET", f"{place}/o?pageToken={token}")).status == 200:
        for item in answer.json.get("items", []):
            server.request("DELETE", f"{place}/o/{quote(item['name'], safe='')}")
        if not (token := answer.json.get("nextPageToken", "")):
            break
    server.request("DELETE", place)
