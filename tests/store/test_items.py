"""Items of a table: one writer wins, and an item opens only where it was written."""

from __future__ import annotations

import base64
import struct
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_functions import store as tables
from mcp_functions.protocol.errors import DeveloperError, InvalidRequestState, TemporarilyUnavailable
from mcp_functions.seal.codec_adapter import CodecAdapter
from mcp_functions.seal.envelope import Envelope
from mcp_functions.store import Conflict, DynamoDbTable, ItemTooLarge, Key, SealedTable, UnreadableItem
from mcp_functions.store.dynamodb import MAX_BYTES
from mcp_functions_harness.environment import TABLE
from mcp_functions_harness.testing.dynamodb import MemoryTable
from tests.store.backend import DAY, KEY, OTHER_PRINCIPALS_KEY, SERVICE, Backend
from tests.support.strict_kms import SCOPE, make_keys


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


def test_ids_may_hold_any_text(backend: Backend) -> None:
    table = backend.open()
    odd = Key("task", f"é/ # \u202e{uuid4()}", None)
    item = table.create(odd, {}, expires=backend.soon())
    assert table.get(odd) == item


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
