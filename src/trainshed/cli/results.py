"""What a job has left at the place its results go to. Asked when it is over, and whenever it is shown."""

from trainshed.cli import words
from trainshed.cli.seek import listed, split
from trainshed.client.errors import ApiError, ClientError

TYPE_CHECKING = False  # the module typing takes longer to import than a job takes to submit
if TYPE_CHECKING:
    from trainshed.client import Client, Json

MOST_PAGES = 10  # of a thousand objects each, looked at to tell what is there


def output_of(job: "Json") -> str:
    return str(words.part(words.part(job, "jobSpec"), "baseOutputDirectory").get("outputUriPrefix") or "")


def results(client: "Client", job: "Json") -> str:
    """Where results went, and what is there now."""
    place = output_of(job)
    bucket, name = split(place)
    if not bucket:
        return place
    prefix, page, count, size = f"{name.rstrip('/')}/" if name else "", "", 0, 0
    try:
        for _ in range(MOST_PAGES):
            answer = listed(client, bucket, prefix=prefix, pageToken=page)
            items: list[Json] = words.parts(answer, "items")
            count, size = count + len(items), size + sum(int(item.get("size") or 0) for item in items)
            page = str(answer.get("nextPageToken") or "")
            if not page:
                break
    except ApiError as error:
        if error.code != 404 or not place.startswith("gs://"):
            return place  # s3:// may be a store that only the program knows
        return f"{place} (there is no such bucket: trainshed storage buckets create gs://{bucket})"
    except ClientError:
        return place  # where they went is known all the same
    if not count:
        return f"{place} (nothing is there)"
    summary = f"{count:,} object{'' if count == 1 else 's'}, {words.size(size)}"
    return f"{place} ({'more than ' if page else ''}{summary})"
