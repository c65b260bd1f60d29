"""Runs the real google-cloud-aiplatform for the tests: one interpreter, since importing it takes seconds.

Reads one call per line, `{"call": "jobs.submit", "reach": …, "args": …}`,
and answers with one line of JSON: what the function returned, or the exception it raised, taken apart.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

import importlib
import json
import os
import sys
import traceback
from typing import Any

answers = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)  # whatever the SDK prints must not be taken for an answer

import google.auth.credentials  # noqa: E402
import google.oauth2.credentials  # noqa: E402
from google.api_core.exceptions import GoogleAPICallError  # noqa: E402
from google.cloud import aiplatform  # noqa: E402
from google.cloud.aiplatform import jobs as sdk_jobs  # noqa: E402

# run() looks at the job every five seconds; nothing else about it is changed.
sdk_jobs._JOB_WAIT_TIME = 0.3
sdk_jobs._LOG_WAIT_TIME = 5


def credentials(token: str | None) -> Any:
    if token:
        return google.oauth2.credentials.Credentials(token)
    return google.auth.credentials.AnonymousCredentials()


def connect(reach: dict[str, Any]) -> None:
    """As the documentation says: nothing but endpoint, transport and credentials."""
    aiplatform.init(
        project=reach["project"],
        location="us-central1",
        api_endpoint=reach["url"],
        api_transport="rest",
        credentials=credentials(reach["token"]),
        staging_bucket="gs://staging",
    )


def taken_apart(error: BaseException) -> dict[str, Any]:
    told: dict[str, Any] = {
        "type": type(error).__name__,
        "classes": [cls.__name__ for cls in type(error).__mro__],
        "text": str(error),
        "trace": traceback.format_exc(),
    }
    if isinstance(error, GoogleAPICallError):
        # Over REST the details stay the JSON they came as.
        told |= {"code": int(error.code or 0), "message": error.message, "details": list(error.details or [])}
    return told


def answer(line: str) -> dict[str, Any]:
    ask = json.loads(line)
    try:
        connect(ask["reach"])
        module, _, function = ask["call"].partition(".")
        return {"value": getattr(importlib.import_module(module), function)(ask["reach"], **ask["args"])}
    except Exception as error:
        return {"error": taken_apart(error)}


def main() -> None:
    answers.write(json.dumps({"value": aiplatform.__version__}) + "\n")
    for line in sys.stdin:
        answers.write(json.dumps(answer(line)) + "\n")


if __name__ == "__main__":
    sys.modules["session"] = sys.modules["__main__"]
    main()
