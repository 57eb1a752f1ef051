"""The table, tested with moto's DynamoDB and with a table in memory: one writer wins, and no item is lost."""

from __future__ import annotations

import base64
import os
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import count
from threading import Barrier
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_functions import settings
from mcp_functions import store as tables
from mcp_functions.aws.errors import OUTAGE_CODES, THROTTLED_CODES, TRANSIENT_CODES, ClientError
from mcp_functions.dispatch.seal_factory import SealFactory
from mcp_functions.local.doubles import dynamodb as local
from mcp_functions.local.doubles.dynamodb import Moto
from mcp_functions.local.environment import TABLE
from mcp_functions.local.loopback import HttpRequest
from mcp_functions.protocol.errors import DeveloperError, InvalidRequestState, Misconfigured, TemporarilyUnavailable
from mcp_functions.seal.codec_adapter import CodecAdapter
from mcp_functions.seal.envelope import Envelope
from mcp_functions.seal.token_format import MAX_TOKEN_CHARS
from mcp_functions.store import Conflict, DynamoDbTable, ItemTooLarge, Key, SealedTable, UnreadableItem
from mcp_functions.store.dynamodb import MAX_BYTES
from mcp_functions.testing import deployed
from mcp_functions.testing.dynamodb import MemoryTable
from tests.support.strict_kms import SCOPE, Clock, StrictKms, make_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mcp_functions.seal.data_keys import Keyring
    from mcp_functions.store.dynamodb import Call
    from mcp_functions.testing.dynamodb import Fault

DAY = 86_400
KEY = Key("task", "update_work_item.0123456789", "principal-of-43-characters-as-base64url-has")
OTHER_PRINCIPALS_KEY = KEY._replace(principal="another-of-43-characters-as-base64url-hasit")
SERVICE = SCOPE.service


@cache
def moto_table() -> Moto:
    return Moto(local.table(TABLE))


class Backend:
    """A table and the clock of all its users. Each call of `open` acts as a new container."""

    def __init__(self, call: Call) -> None:
        self.call, self.clock, self.kms = call, Clock(), StrictKms()
        self.arn = self.kms.create_key()

    def open(self, *, scope: Any = SCOPE, max_age: int = DAY, keys: Keyring | None = None) -> SealedTable:  # noqa: ANN401
        keys = keys or make_keys(self.kms, self.arn, scope=scope, clock=self.clock)
        seal = Envelope(keys, label=tables.LABEL, max_chars=MAX_TOKEN_CHARS, max_age=max_age)
        return SealedTable(DynamoDbTable(TABLE, lambda: self.call), seal, SERVICE, max_age=max_age, now=self.clock)

    def soon(self, seconds: int = 3600) -> int:
        return int(self.clock()) + seconds

    def stored(self, key: Key = KEY) -> dict[str, Any]:
        named = {"S": f"{SERVICE}/{key.kind}/{key.principal}/{key.id}"}
        found = self.call("GetItem", {"TableName": TABLE, "Key": {"key": named}, "ConsistentRead": True})
        return dict(found["Item"])

    def put(self, item: Mapping[str, Any]) -> None:
        self.call("PutItem", {"TableName": TABLE, "Item": item})


@pytest.fixture(params=["moto", "memory_table"])
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    if request.param == "memory_table":
        yield Backend(MemoryTable())
        return
    asked = moto_table()
    yield Backend(asked)
    asked("DeleteTable", {"TableName": TABLE})
    asked("CreateTable", local.table(TABLE))


@pytest.fixture
def memory_table() -> MemoryTable:
    return MemoryTable()


@pytest.fixture
def memory_backend(memory_table: MemoryTable) -> Backend:
    return Backend(memory_table)


# Reading and writing items


def test_another_container_reads_an_item_as_it_was_written(backend: Backend) -> None:
    written = backend.open().create(KEY, {"status": "working"}, expires=backend.soon())
    assert (written.version, written.payload) == (1, {"status": "working"})
    assert backend.open().get(KEY) == written


def test_a_key_without_an_item_has_none(backend: Backend) -> None:
    assert backend.open().get(KEY) is None


def test_an_item_is_created_once(backend: Backend) -> None:
    backend.open().create(KEY, {"by": "one"}, expires=backend.soon())
    with pytest.raises(Conflict):
        backend.open().create(KEY, {"by": "two"}, expires=backend.soon())
    item = backend.open().get(KEY)
    assert item
    assert item.payload == {"by": "one"}


def test_one_of_two_writers_of_the_same_version_wins(backend: Backend) -> None:
    read = backend.open().create(KEY, {"by": "nobody"}, expires=backend.soon())
    won = backend.open().replace(read, {"by": "one"})
    assert (won.version, won.expires) == (2, read.expires)
    with pytest.raises(Conflict):
        backend.open().replace(read, {"by": "two"})
    assert backend.open().get(KEY) == won


def test_a_writer_may_change_when_an_item_expires(backend: Backend) -> None:
    table = backend.open()
    item = table.create(KEY, {}, expires=backend.soon(60))
    later = table.replace(item, {}, expires=backend.soon(120))
    backend.clock.advance(90)
    assert table.get(KEY) == later


def test_a_deleted_item_is_not_replaced(backend: Backend) -> None:
    table = backend.open()
    item = table.create(KEY, {}, expires=backend.soon())
    table.delete(item)
    with pytest.raises(Conflict):
        table.replace(item, {"back": True})
    assert table.get(KEY) is None


def test_only_the_version_that_was_read_is_deleted_and_a_second_deletion_does_nothing(backend: Backend) -> None:
    table = backend.open()
    first = table.create(KEY, {}, expires=backend.soon())
    second = table.replace(first, {})
    with pytest.raises(Conflict):
        table.delete(first)
    table.delete(second)
    table.delete(second)
    assert table.get(KEY) is None


def test_another_principals_item_is_another_item(backend: Backend) -> None:
    table = backend.open()
    table.create(KEY, {"whose": "mine"}, expires=backend.soon())
    assert table.get(OTHER_PRINCIPALS_KEY) is None
    assert table.get(KEY._replace(principal=None)) is None
    table.create(OTHER_PRINCIPALS_KEY, {"whose": "theirs"}, expires=backend.soon())
    item = table.get(KEY)
    assert item
    assert item.payload == {"whose": "mine"}


def test_an_expired_item_is_absent_though_the_table_still_holds_it(backend: Backend) -> None:
    table = backend.open()
    item = table.create(KEY, {"old": True}, expires=backend.soon(60))
    backend.clock.advance(59)
    assert table.get(KEY) == item
    backend.clock.advance(1)
    assert table.get(KEY) is None
    assert backend.stored()  # "within a few days of their expiration time"
    again = table.create(KEY, {"old": False}, expires=backend.soon(60))
    assert table.get(KEY) == again


@pytest.mark.parametrize("seconds", [0, -1, DAY + 1])
def test_an_item_that_expires_too_early_or_late_is_the_callers_error(memory_backend: Backend, seconds: int) -> None:
    with pytest.raises(DeveloperError, match=f"an item of kind 'task' may live 86400 s at most, and not {seconds} s"):
        memory_backend.open().create(KEY, {}, expires=memory_backend.soon(seconds))


def test_one_of_many_simultaneous_creations_succeeds(backend: Backend) -> None:
    everybody, ready = range(6), Barrier(6)
    opened = [backend.open() for _ in everybody]

    def create(number: int) -> bool:
        ready.wait()
        try:
            opened[number].create(KEY, {"by": number}, expires=backend.soon())
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(len(everybody)) as pool:
        won = list(pool.map(create, everybody))
    assert sum(won) == 1
    item = backend.open().get(KEY)
    assert item
    assert item.payload == {"by": won.index(True)}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(payload=st.dictionaries(st.text(), JSON, max_size=4), lone=st.sampled_from(["", "\ud800"]))
def test_every_json_value_is_read_as_it_was_written(payload: dict[str, Any], lone: str) -> None:
    backend = Backend(MemoryTable())
    kept = {**payload, "lone": lone}
    backend.open().create(KEY, kept, expires=backend.soon())
    item = backend.open().get(KEY)
    assert item
    assert item.payload == kept


@pytest.mark.parametrize("payload", [{"x": float("nan")}, {"x": b""}, {"x": object()}])
def test_a_value_that_is_not_json_is_the_callers_error(
    memory_backend: Backend,
    memory_table: MemoryTable,
    payload: Any,  # noqa: ANN401 - JSON and other values
) -> None:
    with pytest.raises(DeveloperError, match="an item of the table must be JSON"):
        memory_backend.open().create(KEY, payload, expires=memory_backend.soon())
    assert memory_table.calls == []


# Sizes


def test_an_item_of_dynamodbs_limit_is_stored_and_a_larger_one_is_refused_before_it_is_sent(
    backend: Backend,
) -> None:
    table = backend.open()
    largest = 299_310
    kept = table.create(KEY, {"x": "x" * largest}, expires=backend.soon())
    assert MAX_BYTES - 2 <= tables.dynamodb.row_of(backend.stored()).size <= MAX_BYTES
    assert backend.open().get(KEY) == kept
    with pytest.raises(ItemTooLarge) as error:
        table.replace(kept, {"x": "x" * (largest + 3)})
    assert error.value.reason.startswith(f"a payload of {largest + 11} bytes")
    assert error.value.status == 500
    with pytest.raises(ItemTooLarge):  # over what an envelope seals at all
        table.replace(kept, {"x": "x" * 4_000_000})
    assert backend.open().get(KEY) == kept


# Faults


def first(fault: str, *, of: str) -> Callable[[str], Any]:
    """Let the first call of an operation fail."""
    seen = count()
    return lambda operation: fault if operation == of and not next(seen) else None


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


# The seal


def test_the_table_shows_no_payload(backend: Backend) -> None:
    backend.open().create(KEY, {"answer": "a secret of the user"}, expires=backend.soon())
    stored = backend.stored()
    assert sorted(stored) == ["expires", "key", "nonce", "sealed", "version"]
    assert stored["sealed"]["S"].startswith("ks1.")
    assert "secret" not in str(stored)
    body = stored["sealed"]["S"][4:]
    assert b"secret" not in base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))


def test_an_item_is_sealed_as_the_specification_says(backend: Backend) -> None:
    backend.open().create(KEY, {"n": 1}, expires=backend.soon())
    stored = backend.stored()
    key = f"demo/update_work_item/task/{KEY.principal}/{KEY.id}".encode()
    about = struct.pack(">H", len(key)) + key + struct.pack(">QQ", 1, backend.soon())
    reader = Envelope(make_keys(backend.kms, backend.arn, clock=backend.clock), label=b"ks1/item")
    assert reader.unseal(stored["sealed"]["S"], about=about) == b'{"n":1}'


def unreadable(backend: Backend, key: Key = KEY, **options: Any) -> bool:  # noqa: ANN401 - of `open`
    with pytest.raises(UnreadableItem):
        backend.open(**options).get(key)
    return True


def test_an_item_opens_only_where_it_was_written(backend: Backend) -> None:
    backend.open().create(KEY, {"whose": "mine"}, expires=backend.soon())
    stored = backend.stored()
    backend.put(
        {**stored, "key": {"S": stored["key"]["S"].replace(str(KEY.principal), str(OTHER_PRINCIPALS_KEY.principal))}}
    )
    assert unreadable(backend, OTHER_PRINCIPALS_KEY)
    backend.put({**stored, "version": {"N": "2"}})
    assert unreadable(backend)
    backend.put({**stored, "expires": {"N": str(backend.soon(7200))}})
    assert unreadable(backend)
    backend.put({**stored, "sealed": {"S": stored["sealed"]["S"][:-1]}})
    assert unreadable(backend)
    backend.put({**stored, "nonce": {"S": "another"}})  # the payload is not bound to the nonce
    assert backend.open().get(KEY)


def test_an_item_that_does_not_open_is_unreadable_and_not_absent(
    backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    backend.open().create(KEY, {}, expires=backend.soon())
    risen = SCOPE._replace(generation="2")
    assert unreadable(backend, scope=risen)
    assert caplog.messages == ["an item does not open: wrapped_key"]
    with pytest.raises(Conflict):
        backend.open(scope=risen).create(KEY, {}, expires=backend.soon())


def test_a_state_does_not_open_as_an_item_nor_an_item_as_a_state(memory_backend: Backend) -> None:
    keys = make_keys(memory_backend.kms, memory_backend.arn, clock=memory_backend.clock)
    memory_backend.open(keys=keys).create(KEY, {}, expires=memory_backend.soon())
    states, stored = Envelope(keys), memory_backend.stored()
    with pytest.raises(InvalidRequestState):
        states.unseal(stored["sealed"]["S"])
    memory_backend.put({**stored, "sealed": {"S": states.seal(b"{}")}})
    assert unreadable(memory_backend, keys=keys)


def test_a_damaged_item_spends_no_unwrap_of_the_other_items(memory_backend: Backend) -> None:
    memory_backend.open().create(KEY, {}, expires=memory_backend.soon())
    memory_backend.open().create(OTHER_PRINCIPALS_KEY, {}, expires=memory_backend.soon())
    memory_backend.put({**memory_backend.stored(), "version": {"N": "9"}})
    reader = memory_backend.open()
    for _ in range(10):
        with pytest.raises((UnreadableItem, TemporarilyUnavailable)):
            reader.get(KEY)
    assert reader.get(OTHER_PRINCIPALS_KEY)


class Reversing:
    """A custom seal that knows nothing of keys and versions."""

    def seal(self, payload: bytes, /) -> str:
        return base64.b64encode(payload[::-1]).decode()

    def unseal(self, token: str, /) -> bytes:
        return base64.b64decode(token)[::-1]


def test_a_custom_seal_is_bound_to_its_item_too(memory_backend: Backend) -> None:
    table = SealedTable(
        DynamoDbTable(TABLE, lambda: memory_backend.call),
        CodecAdapter(Reversing(), tables.LABEL),
        SERVICE,
        max_age=DAY,
        now=memory_backend.clock,
    )
    item = table.create(KEY, {"n": 1}, expires=memory_backend.soon())
    assert table.get(KEY) == item
    stored = memory_backend.stored()
    for change in ({"version": {"N": "2"}}, {"sealed": {"S": "!"}}, {"sealed": {"S": ""}}):
        memory_backend.put({**stored, **change})
        with pytest.raises(UnreadableItem):
            table.get(KEY)


# The double refuses the requests that AWS refuses


@pytest.mark.parametrize(
    ("operation", "change", "code"),
    [
        ("PutItem", {"TableName": "another"}, "ResourceNotFoundException"),
        ("PutItem", {"Item": {"sealed": {"S": "no key"}}}, "ValidationException"),
        ("PutItem", {"Item": {"key": {"S": ""}}}, "ValidationException"),
        ("PutItem", {"Item": {"key": {"S": "x" * 2049}}}, "ValidationException"),
        ("PutItem", {"Item": {"key": {"S": "k"}, "sealed": {"S": "x" * 400 * 1024}}}, "ValidationException"),
        ("PutItem", {"ConditionExpression": "#n = :v", "ExpressionAttributeNames": {"#n": "n", "#o": "o"}}, "V"),
        ("GetItem", {"Key": {"key": {"S": "k"}, "more": {"S": "k"}}}, "ValidationException"),
        ("Scan", {}, "ValidationException"),
    ],
)
def test_the_test_table_refuses_what_dynamodb_refuses(operation: str, change: dict[str, Any], code: str) -> None:
    asked = {"TableName": TABLE, "Item": {"key": {"S": "k"}}, "Key": {"key": {"S": "k"}}}
    of = {"PutItem": {"TableName", "Item"}, "GetItem": {"TableName", "Key"}, "Scan": {"TableName"}}[operation]
    values = {"ExpressionAttributeValues": {":v": {"N": "1"}}} if "ConditionExpression" in change else {}
    request = {name: value for name, value in asked.items() if name in of} | change | values
    with pytest.raises(ClientError) as error:
        MemoryTable()(operation, request)
    assert error.value.code.startswith(code)


def test_the_test_table_deletes_expired_items_only_on_request(
    memory_backend: Backend, memory_table: MemoryTable
) -> None:
    memory_backend.open().create(KEY, {}, expires=memory_backend.soon(60))
    memory_table.expire(memory_backend.clock() + 60)
    assert memory_table.items
    memory_table.expire(memory_backend.clock() + 61)
    assert memory_table.items == {}


def test_ids_may_hold_any_text(backend: Backend) -> None:
    table = backend.open()
    odd = Key("task", f"é/ # \u202e{uuid4()}", None)
    item = table.create(odd, {}, expires=backend.soon())
    assert table.get(odd) == item


# The table as a function reaches it: through boto3, over HTTP


def test_a_function_reaches_the_table_of_its_deployment_and_of_no_other() -> None:
    memory = MemoryTable()
    with deployed(memory):
        item = _table_of_deployment().create(KEY, {"n": 1}, expires=int(time.time()) + 60)
        assert _table_of_deployment().get(KEY) == item
        with pytest.raises(Conflict):
            _table_of_deployment().create(KEY, {"n": 2}, expires=int(time.time()) + 60)
        memory.weather = first("lost", of="PutItem")
        item = _table_of_deployment().replace(item, {"n": 3})
        assert _table_of_deployment().get(KEY) == item
        assert memory.calls.count("PutItem") == 4  # botocore repeated the request and met its own write
        _table_of_deployment().delete(item)
    with deployed():
        assert _table_of_deployment().get(KEY) is None


def test_a_table_that_does_not_answer_is_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:9")
    with pytest.raises(TemporarilyUnavailable) as error:
        _table_of_deployment().get(KEY)
    assert error.value.reason == "table:EndpointConnectionError"


def test_the_store_works_with_the_table_of_moto() -> None:
    with deployed(Moto(local.table(TABLE))):
        item = _table_of_deployment().create(KEY, {"n": 1}, expires=int(time.time()) + 60)
        assert _table_of_deployment().get(KEY) == item
        with pytest.raises(Conflict):
            _table_of_deployment().create(KEY, {"n": 2}, expires=int(time.time()) + 60)
        _table_of_deployment().delete(_table_of_deployment().replace(item, {}))
        assert _table_of_deployment().get(KEY) is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"authorization": ""}, "MissingAuthenticationTokenException"),
        ({"body": b"{"}, "SerializationException"),
        ({"body": b"[]"}, "SerializationException"),
        ({"x-amz-target": "DynamoDB_20120810.Scan"}, "ValidationException"),
    ],
)
def test_a_malformed_request_is_refused(change: dict[str, Any], message: str) -> None:
    headers = {"authorization": "AWS4-HMAC-SHA256", "x-amz-target": "DynamoDB_20120810.GetItem"} | change
    body = headers.pop("body", b"{}")
    request = HttpRequest("POST", "/", tuple(headers.items()), body, "HTTP/1.1", "127.0.0.1", 1)
    answer = local.DynamoDbApi(MemoryTable()).answer(request)
    assert (answer.status, message in answer.body.decode()) == (400, True)


def _table_of_deployment() -> tables.SealedTable:
    """Connect to a table as a new container does at its first event."""
    return SealFactory(settings.Settings(os.environ), "local/asking", now=time.time).table(DAY)
