"""Stand-ins for what Powertools calls: X-Ray, a table of idempotency records, Secrets Manager."""

from __future__ import annotations

from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger, Tracer
from aws_lambda_powertools.utilities import idempotency
from aws_lambda_powertools.utilities.idempotency.exceptions import (
    IdempotencyItemAlreadyExistsError,
    IdempotencyItemNotFoundError,
)
from aws_lambda_powertools.utilities.idempotency.persistence.base import BasePersistenceLayer
from aws_lambda_powertools.utilities.parameters import base

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest
    from aws_lambda_powertools.utilities.idempotency.persistence.datarecord import DataRecord

_services = count()


def logger(**options: Any) -> Logger:  # noqa: ANN401 - what Logger takes
    """Make a Logger that no other test has: of one service there is one, with the stream that it got first."""
    return Logger(service=f"orders-{next(_services)}", **options)


class Trace:
    """X-Ray, as far as Powertools asks for it: names of segments, and what they were given."""

    def __init__(self) -> None:
        self.segments: list[str] = []
        self.metadata: dict[str, object] = {}

    @contextmanager
    def in_subsegment(self, name: str, **_options: object) -> Iterator[Trace]:
        self.segments.append(name)
        yield self

    def put_annotation(self, key: str, value: object) -> None:
        assert key in {"ColdStart", "Service"}, value

    def put_metadata(self, key: str, value: object, namespace: str) -> None:
        assert namespace
        self.metadata[key] = value

    def patch_all(self) -> None:
        pass


def traced(monkeypatch: pytest.MonkeyPatch) -> Trace:
    """Put a trace where `Tracer()` finds X-Ray's SDK, which is an extra of Powertools'."""
    trace = Trace()
    monkeypatch.setenv("LAMBDA_TASK_ROOT", "/var/task")  # elsewhere it is switched off
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "shop")
    monkeypatch.setattr(Tracer, "_patch_xray_provider", lambda _self: trace)
    monkeypatch.setattr(Tracer, "_config", dict(Tracer._default_config))  # noqa: SLF001 - it is shared by all
    return trace


class Store(BasePersistenceLayer):
    """A table of idempotency records, in memory."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.records: dict[str, DataRecord] = {}
        self.reads = 0

    def _get_record(self, idempotency_key: str) -> DataRecord:
        if idempotency_key not in self.records:
            raise IdempotencyItemNotFoundError
        self.reads += 1
        return self.records[idempotency_key]

    def _put_record(self, data_record: DataRecord) -> None:
        if data_record.idempotency_key in self.records:
            raise IdempotencyItemAlreadyExistsError
        self.records[data_record.idempotency_key] = data_record

    def _update_record(self, data_record: DataRecord) -> None:
        self.records[data_record.idempotency_key] = data_record

    def _delete_record(self, data_record: DataRecord) -> None:
        del self.records[data_record.idempotency_key]


def stored(monkeypatch: pytest.MonkeyPatch) -> Store:
    """Put a store where a function asks for a DynamoDB table."""
    store = Store()
    monkeypatch.setattr(idempotency, "DynamoDBPersistenceLayer", lambda **_options: store)
    return store


def secrets(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> list[str]:
    """Put one secret into Secrets Manager; return the names that are asked for, as they are."""
    asked: list[str] = []

    class Provider(base.BaseProvider):
        def _get(self, name: str, **_options: Any) -> str:  # noqa: ANN401 - as its base has it
            asked.append(name)
            return known[name]

        def _get_multiple(self, path: str, **_options: Any) -> dict[str, str]:  # noqa: ANN401 - likewise
            raise LookupError(path)

    known = {name: value}
    monkeypatch.setitem(base.DEFAULT_PROVIDERS, "secrets", Provider())  # type: ignore[attr-defined, no-untyped-call]
    return asked
