"""AWS's services for one harness: KMS, DynamoDB, Lambda's endpoint, and S3 where a bucket is named."""

from __future__ import annotations

import contextlib
import os
import time
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Any

from mcp_functions.local import environment
from mcp_functions.local.doubles import dynamodb, keyfile, kms, s3
from mcp_functions.local.doubles.tablefile import StoredTable, TableFile
from mcp_functions.local.loopback import Loopback

if TYPE_CHECKING:
    from contextlib import ExitStack
    from pathlib import Path

Variables = dict[str, str | None]


def stored_tables(starting: ExitStack, state_dir: Path, own: list[dict[str, Any]]) -> dynamodb.DynamoDbApi:
    """Return DynamoDB with the toolkit's table, which a file in `state_dir` keeps, and with the author's tables."""
    file = starting.enter_context(TableFile(state_dir, now=time.time()))
    make = partial(dynamodb.Moto, dynamodb.table(environment.TABLE), *own)
    return dynamodb.DynamoDbApi(partial(StoredTable, file, environment.TABLE, make))


class Services:
    """KMS, DynamoDB, and S3 if the shell's MCP_BLOBS names a bucket."""

    def __init__(self, starting: ExitStack, state_dir: Path, own: list[dict[str, Any]]) -> None:
        """Start the endpoints.

        Args:
            starting: stops them when it is closed.
            state_dir: keeps the KMS key and the table between runs.
            own: the author's tables, as requests of CreateTable.
        """
        self._kms = starting.enter_context(Loopback(max_body=kms.MAX_REQUEST))
        kms_api = kms.KmsApi(keyfile.load(state_dir))
        self._kms.start(kms_api.answer)
        self.key_arn = kms_api.arn
        tables = stored_tables(starting, state_dir, own)
        self._dynamodb = starting.enter_context(Loopback(max_body=dynamodb.MAX_REQUEST))
        self._dynamodb.start(tables.answer)
        self._warm = [kms_api.warm, tables.warm]
        self._s3: Loopback | None = None
        bucket = os.environ.get("MCP_BLOBS")
        if bucket:
            objects = s3.S3Api(bucket, partial(s3.Moto, bucket))
            self._s3 = starting.enter_context(Loopback(max_body=s3.MAX_OBJECT))
            self._s3.start(objects.answer)
            self._warm.append(objects.warm)
        self.warming = Thread(target=self._import_moto, daemon=True)

    def endpoints(self, invoke: str) -> Variables:
        """Return the variables that send AWS clients here, and to the URL of Lambda's Invoke API."""
        s3_url = self._s3.url if self._s3 else None
        return environment.endpoints(kms=self._kms.url, invoke=invoke, dynamodb=self._dynamodb.url, s3=s3_url)

    def warm(self, starting: ExitStack) -> None:
        """Begin to import moto in the background."""
        self.warming.start()
        starting.callback(self.warming.join)

    def _import_moto(self) -> None:
        """Import moto before the first request, because the import takes longer than functions wait for AWS."""
        for warm in self._warm:
            with contextlib.suppress(Exception):  # the first request gets the same error
                warm()
