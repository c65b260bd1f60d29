"""The generated client below the SDK, and its protocol buffers as a strict reader of what we answer."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

import json
import urllib.request
from typing import Any

import session
from google.api_core.client_options import ClientOptions
from google.cloud import aiplatform_v1, aiplatform_v1beta1
from google.longrunning import operations_pb2
from google.protobuf import json_format

Reach = dict[str, Any]


def client(reach: Reach, package: Any = aiplatform_v1) -> Any:
    return package.JobServiceClient(
        transport="rest",
        client_options=ClientOptions(api_endpoint=reach["url"]),
        credentials=session.credentials(reach["token"]),
    )


def parent(reach: Reach) -> str:
    return f"projects/{reach['project']}/locations/us-central1"


def pages(reach: Reach, filter: str, page_size: int) -> dict[str, Any]:
    """Page by page by the token, and all at once by the pager: both must give the same."""
    api, sizes, by_token, token = client(reach), list[int](), list[str](), ""
    while True:
        request = {"parent": parent(reach), "filter": filter, "page_size": page_size, "page_token": token}
        page = next(iter(api.list_custom_jobs(request=request).pages))
        sizes.append(len(page.custom_jobs))
        by_token += [job.name for job in page.custom_jobs]
        token = page.next_page_token
        if not token:
            break
    request = {"parent": parent(reach), "filter": filter, "page_size": page_size}
    return {
        "sizes": sizes,
        "by_token": by_token,
        "by_pager": [job.name for job in api.list_custom_jobs(request=request)],
    }


def borrowed_token(reach: Reach, filter: str, other: str) -> None:
    api = client(reach)
    first = api.list_custom_jobs(request={"parent": parent(reach), "filter": filter, "page_size": 1})
    token = next(iter(first.pages)).next_page_token
    api.list_custom_jobs(request={"parent": parent(reach), "filter": other, "page_token": token})


def masked(reach: Reach, filter: str, mask: list[str]) -> list[Any]:
    request = {"parent": parent(reach), "filter": filter, "read_mask": {"paths": mask}}
    return [
        json_format.MessageToDict(type(job).pb(job))
        for job in client(reach).list_custom_jobs(request=request)
    ]


def beta(reach: Reach, name: str) -> str:
    return client(reach, aiplatform_v1beta1).get_custom_job(name=name).display_name


def create(reach: Reach, body: dict[str, Any]) -> Any:
    """A job in the API's own JSON, made by the generated client, as it is answered."""
    job = aiplatform_v1.CustomJob()
    json_format.ParseDict(body, type(job).pb(job))
    created = client(reach).create_custom_job(parent=parent(reach), custom_job=job)
    return json_format.MessageToDict(type(created).pb(created))


def raw(reach: Reach, path: str, verb: str = "GET") -> bytes:
    request = urllib.request.Request(reach["url"] + path, method=verb)
    if reach["token"]:
        request.add_header("Authorization", f"Bearer {reach['token']}")
    with urllib.request.urlopen(request, timeout=60) as reply:
        return reply.read()


def strict_job(reach: Reach, name: str) -> list[Any]:
    """Every field we tell is a field Google's message has: nothing unknown is let pass."""
    found: list[Any] = []
    for package, version in ((aiplatform_v1, "v1"), (aiplatform_v1beta1, "v1beta1")):
        for query in ("", "?%24alt=json%3Benum-encoding%3Dint"):
            text = raw(reach, f"/{version}/{name}{query}")
            message = json_format.Parse(text, package.CustomJob.pb()(), ignore_unknown_fields=False)
            found.append(
                {
                    "sent": json.loads(text),
                    "read": json_format.MessageToDict(message, use_integers_for_enums=bool(query)),
                }
            )
    return found


def strict_list(reach: Reach, filter: str) -> int:
    from urllib.parse import quote

    text = raw(reach, f"/v1/{parent(reach)}/customJobs?pageSize=2&filter={quote(filter)}")
    page = json_format.Parse(text, aiplatform_v1.ListCustomJobsResponse.pb()(), ignore_unknown_fields=False)
    return len(page.custom_jobs)


def strict_operation(reach: Reach, name: str) -> Any:
    text = raw(reach, f"/v1/{name}", "DELETE")
    operation = json_format.Parse(text, operations_pb2.Operation(), ignore_unknown_fields=False)
    metadata = aiplatform_v1.DeleteOperationMetadata.pb()()
    assert operation.metadata.Unpack(metadata)
    return {"name": operation.name, "done": operation.done, "response": operation.response.type_url}
