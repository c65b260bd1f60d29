"""From a bucket's row to obstore's handle for it. The only place here where a key's text is held."""

import json
from datetime import timedelta
from typing import Any, assert_never

from obstore.store import AzureStore, GCSStore, S3Store

from trainshed.buckets.remote.rows import Remote, StoreKind

Store = S3Store | GCSStore | AzureStore
TRIES = 4
_OPEN = {"disable_oauth": True, "client_email": "", "private_key": "", "private_key_id": ""}
PATIENCE = timedelta(seconds=20)  # for trying again; a transfer itself may take as long as it does


def connect(remote: Remote) -> Store:
    keys = {word: secret.reveal() for word, secret in remote.keys.items()}
    rest: dict[str, Any] = {
        "client_options": {
            "allow_http": remote.endpoint.startswith("http://"),
            "connect_timeout": timedelta(seconds=5),
            "timeout": timedelta(hours=1),
        },
        "retry_config": {"max_retries": TRIES, "retry_timeout": PATIENCE},
    }
    config: dict[str, Any]
    match remote.kind:
        case StoreKind.S3:
            config = {
                "endpoint": remote.endpoint,
                "region": remote.region or "us-east-1",
                "access_key_id": keys.get("access_key", ""),
                "secret_access_key": keys.get("secret_key", ""),
                "session_token": keys.get("session_token", ""),
            }
            return S3Store(remote.bucket, config=_given(config), **rest)
        case StoreKind.GOOGLE:
            account = keys.get("service_account", "")
            if remote.endpoint and not account:
                # One that is not Google's own, and has no keys: it is asked without any.
                account = json.dumps(_OPEN | {"gcs_base_url": remote.endpoint})
                config = {"service_account_key": account}
            else:
                config = {"service_account_key": account, "base_url": remote.endpoint}
            return GCSStore(remote.bucket, config=_given(config), **rest)
        case StoreKind.AZURE:
            config = {
                "account_name": remote.account,
                "account_key": keys.get("account_key", ""),
                "endpoint": remote.endpoint,
            }
            return AzureStore(remote.bucket, config=_given(config), **rest)
        case _ as never:
            assert_never(never)


def _given(config: dict[str, Any]) -> Any:
    return {word: value for word, value in config.items() if value}
