"""Faults of DynamoDB: no write is lost, and none is reported as done without proof."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions.aws.errors import OUTAGE_CODES, THROTTLED_CODES, TRANSIENT_CODES, ClientError
from mcp_functions.protocol.errors import Misconfigured, TemporarilyUnavailable
from mcp_functions.store import Conflict
from mcp_functions_harness.environment import TABLE
from mcp_functions_harness.testing.dynamodb import MemoryTable
from tests.store.backend import KEY, Backend, first

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mcp_functions.store.dynamodb import Call
    from mcp_functions_harness.testing.dynamodb import Fault


def test_a_stored_write_without_a_response_is_found_by_reading_back(
    memory_backend: Backend, memory_table: MemoryTable
) -> None:
    table = memory_backend.open()
    memory_table.weather = first("lost", of="PutItem")
    item = table.create(KEY, {"n": 1}, expires=memory_backend.soon())
    assert memory_backend.open().get(KEY) == item
    memory_table.weather = first("lost", of="PutItem")
    item = table.replace(item, {"n": 2})
    assert memory_backend.open().get(KEY) == item
    assert item.version == 2


@pytest.mark.parametrize("fault", ["unanswered", "throttled"])
def test_a_write_that_did_not_happen_asks_for_a_retry(
    memory_backend: Backend, memory_table: MemoryTable, fault: str
) -> None:
    table = memory_backend.open()
    memory_table.weather = first(fault, of="PutItem")
    with pytest.raises(TemporarilyUnavailable) as error:
        table.create(KEY, {"n": 1}, expires=memory_backend.soon())
    assert error.value.reason.startswith("table:")
    assert memory_table.items == {}
    item = table.create(KEY, {"n": 1}, expires=memory_backend.soon())
    memory_table.weather = first(fault, of="PutItem")
    with pytest.raises(TemporarilyUnavailable):
        table.replace(item, {"n": 2})
    assert table.get(KEY) == item


def test_a_write_with_an_unknown_outcome_asks_for_a_retry(memory_backend: Backend, memory_table: MemoryTable) -> None:
    faults: Iterator[Fault] = iter(["lost", "unanswered"])  # the write, and the reading back
    memory_table.weather = lambda _operation: next(faults, None)
    with pytest.raises(TemporarilyUnavailable) as error:
        memory_backend.open().create(KEY, {"n": 1}, expires=memory_backend.soon())
    assert error.value.reason == "table:ReadTimeoutError"
    item = memory_backend.open().get(KEY)
    assert item
    assert item.payload == {"n": 1}


def test_a_lost_write_that_another_replaced_is_a_conflict_or_unknown_but_never_a_success(
    memory_backend: Backend, memory_table: MemoryTable
) -> None:
    table, rival = memory_backend.open(), memory_backend.open()
    item = table.create(KEY, {"by": "nobody"}, expires=memory_backend.soon())

    def overtaken(operation: str) -> None:
        memory_table.weather = lambda _operation: None
        assert operation == "PutItem"
        rival.replace(item, {"by": "rival"})

    memory_table.weather = overtaken
    with pytest.raises(Conflict):
        table.replace(item, {"by": TABLE})
    found = table.get(KEY)
    assert found
    assert found.payload == {"by": "rival"}


def twice(call: Call) -> Call:
    """Repeat every write, as botocore does when it got no response to the first."""

    def repeated(operation: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        if operation != "GetItem":
            call(operation, request)
        return call(operation, request)

    return repeated


def test_a_write_that_the_client_repeats_is_one_write(backend: Backend) -> None:
    once = backend.call
    backend.call = twice(once)
    table = backend.open()
    item = table.create(KEY, {"n": 1}, expires=backend.soon())
    item = table.replace(item, {"n": 2})
    backend.call = once
    assert backend.open().get(KEY) == item
    backend.call = twice(once)
    backend.open().delete(item)
    assert backend.open().get(KEY) is None


def test_a_write_that_the_client_repeats_is_no_conflict_while_nobody_can_read_it_back(
    memory_backend: Backend, memory_table: MemoryTable
) -> None:
    memory_table.weather = lambda operation: "unanswered" if operation == "GetItem" else None
    memory_backend.call = twice(memory_table)
    with pytest.raises(TemporarilyUnavailable):
        memory_backend.open().create(KEY, {"n": 1}, expires=memory_backend.soon())


def test_a_lost_deletion_is_repeated(memory_backend: Backend, memory_table: MemoryTable) -> None:
    table = memory_backend.open()
    item = table.create(KEY, {}, expires=memory_backend.soon())
    memory_table.weather = first("lost", of="DeleteItem")
    with pytest.raises(TemporarilyUnavailable):
        table.delete(item)
    table.delete(item)
    assert memory_table.items == {}


def test_a_read_is_strongly_consistent(memory_backend: Backend, memory_table: MemoryTable) -> None:
    table = memory_backend.open()
    item = table.replace(table.create(KEY, {"n": 1}, expires=memory_backend.soon()), {"n": 2})
    stale = memory_table("GetItem", {"TableName": TABLE, "Key": {"key": memory_backend.stored()["key"]}})
    assert stale["Item"]["version"] == {"N": "1"}  # the double answers a read that is not consistent, too
    assert table.get(KEY) == item


def raising(code: str, status: int) -> Call:
    def call(_operation: str, _request: Mapping[str, Any]) -> Mapping[str, Any]:
        raise ClientError(code, status)

    return call


@pytest.mark.parametrize(
    ("code", "status", "error"),
    [
        *[(code, 400, TemporarilyUnavailable) for code in sorted(OUTAGE_CODES | THROTTLED_CODES | TRANSIENT_CODES)],
        ("SomethingNew", 503, TemporarilyUnavailable),
        ("ConnectTimeoutError", 0, TemporarilyUnavailable),
        ("AccessDeniedException", 400, Misconfigured),
        ("ResourceNotFoundException", 400, Misconfigured),
        ("ValidationException", 400, Misconfigured),
        ("NoCredentialsError", 400, Misconfigured),
    ],
)
def test_a_dynamodb_error_is_an_outage_or_a_misconfiguration_and_the_log_says_which(
    code: str, status: int, error: type[Misconfigured | TemporarilyUnavailable]
) -> None:
    backend = Backend(MemoryTable())
    item = backend.open().create(KEY, {}, expires=backend.soon())
    backend.call = raising(code, status)
    table = backend.open()
    asks: list[Callable[[], object]] = [
        lambda: table.get(KEY),
        lambda: table.create(KEY, {}, expires=backend.soon()),
        lambda: table.replace(item, {}),
        lambda: table.delete(item),
    ]
    for ask in asks:
        with pytest.raises(error) as error_info:
            ask()
        assert error_info.value.reason == f"table:{code}"


def test_an_outage_of_kms_is_an_outage_of_the_table(memory_backend: Backend, memory_table: MemoryTable) -> None:
    memory_backend.kms.weather = lambda _operation: TimeoutError()
    with pytest.raises(TemporarilyUnavailable):
        memory_backend.open().create(KEY, {}, expires=memory_backend.soon())
    assert memory_table.items == {}
