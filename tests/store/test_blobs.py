"""Payloads larger than an item are stored in S3: tested over HTTP with boto3, and with a bucket in memory."""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions import Elicit, Step, serve, tool
from mcp_functions import store as tables
from mcp_functions.protocol.errors import DeveloperError, Misconfigured, TemporarilyUnavailable
from mcp_functions.seal.codec_adapter import CodecAdapter
from mcp_functions.seal.envelope import Envelope
from mcp_functions.seal.token_format import MAX_TOKEN_CHARS
from mcp_functions.store import (
    BLOB_LABEL,
    BlobStore,
    Conflict,
    DynamoDbTable,
    ItemTooLarge,
    Key,
    ObjectNotFound,
    SealedTable,
    UnreadableItem,
)
from mcp_functions.store.blobs import S3, s3_client
from mcp_functions_harness.doubles import s3 as local
from mcp_functions_harness.environment import CREDENTIALS, TABLE, applied, endpoints
from mcp_functions_harness.loopback import Loopback
from mcp_functions_harness.testing import WITH_TASKS, Conversation, MemoryBucket, MemoryTable, deployed
from tests.support.strict_kms import SCOPE, Clock, StrictKms, make_keys
from tests.tasks.deployment import TransparentSeal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcp_functions.store import Bucket

BUCKET, DAY = "blobs", 86_400
PAGES = 48  # of 7000 characters: more than an item holds
KEY = Key("task", "update_work_item.0123456789", "principal-of-43-characters-as-base64url-has")
SERVICE = SCOPE.service
LARGE = {"x": "x" * 300_000}
SMALL = {"x": "small"}


class Backend:
    """A table and a bucket. Each call of `open` acts as a new container."""

    def __init__(self, bucket: Bucket) -> None:
        self.table, self.bucket, self.clock, self.kms = MemoryTable(), bucket, Clock(), StrictKms()
        self.arn = self.kms.create_key()

    def open(self, *, codec: Any = None, blobs: bool = True) -> SealedTable:  # noqa: ANN401 - an own codec
        keys = make_keys(self.kms, self.arn, scope=SCOPE, clock=self.clock)
        items, objects = (
            CodecAdapter(codec, label) if codec else Envelope(keys, label=label, max_chars=MAX_TOKEN_CHARS, max_age=DAY)
            for label in (tables.LABEL, BLOB_LABEL)
        )
        return SealedTable(
            DynamoDbTable(TABLE, lambda: self.table),
            items,
            SERVICE,
            max_age=DAY,
            blobs=BlobStore(self.bucket, objects, SERVICE) if blobs else None,
            now=self.clock,
        )

    def soon(self) -> int:
        return int(self.clock()) + 3600


@pytest.fixture(scope="module")
def over_http() -> Iterator[MemoryBucket]:
    kept = MemoryBucket()
    with ExitStack() as stack:
        door = stack.enter_context(Loopback(max_body=local.MAX_OBJECT))
        door.start(local.S3Api(BUCKET, kept).answer)
        at = endpoints(kms="http://127.0.0.1:1", invoke="http://127.0.0.1:1", own=door.url)
        stack.enter_context(applied(CREDENTIALS | at))
        yield kept


@pytest.fixture(params=["over_http", "memory_bucket"])
def backend(request: pytest.FixtureRequest) -> Backend:
    if request.param == "memory_bucket":
        return Backend(MemoryBucket())
    request.getfixturevalue("over_http")
    return Backend(S3(BUCKET))


@pytest.fixture
def memory_bucket() -> MemoryBucket:
    return MemoryBucket()


@pytest.fixture
def memory_backend(memory_bucket: MemoryBucket) -> Backend:
    return Backend(memory_bucket)


def blob_of(backend: Backend) -> str:
    item = backend.open().get(KEY)
    assert item
    assert item.blob
    return item.blob


# ---- Reading and writing objects


def test_another_container_reads_a_payload_larger_than_an_item(backend: Backend) -> None:
    written = backend.open().create(KEY, LARGE, expires=backend.soon())
    assert backend.open().get(KEY) == written
    assert written.payload == LARGE
    assert written.blob
    (item,) = backend.table.items.values()
    assert len(item["sealed"]["S"]) < 2000


def test_a_small_payload_stays_in_the_item(memory_backend: Backend, memory_bucket: MemoryBucket) -> None:
    kept = memory_backend.open().create(KEY, SMALL, expires=memory_backend.soon())
    memory_backend.open().replace(kept, SMALL)
    assert memory_bucket.calls == []
    assert kept.blob is None


def test_an_item_that_grows_and_shrinks_leaves_no_object_behind(backend: Backend) -> None:
    table = backend.open()
    item, seen = table.create(KEY, SMALL, expires=backend.soon()), list[str]()
    for payload in (LARGE, {"y": "y" * 310_000}, SMALL):
        item = table.replace(item, payload)
        assert backend.open().get(KEY) == item
        seen += [item.blob] if item.blob else []
    assert len(set(seen)) == 2
    for blob in seen:
        with pytest.raises(ObjectNotFound):
            backend.bucket.get(blob)


def test_deleting_an_item_removes_its_object(backend: Backend) -> None:
    table = backend.open()
    item = table.create(KEY, LARGE, expires=backend.soon())
    assert item.blob
    table.delete(item)
    assert table.get(KEY) is None
    with pytest.raises(ObjectNotFound):
        backend.bucket.get(item.blob)


def test_an_object_has_the_functions_prefix_and_a_random_name(backend: Backend) -> None:
    first = backend.open().create(KEY, LARGE, expires=backend.soon()).blob or ""
    second = backend.open().create(KEY._replace(id="another.01"), LARGE, expires=backend.soon()).blob or ""
    for blob in (first, second):
        prefix, _, name = blob.rpartition("/")
        assert prefix == SERVICE
        assert len(base64.urlsafe_b64decode(name + "=")) == 32
        assert KEY.id not in blob
        assert str(KEY.principal) not in blob
    assert first != second


def test_the_bucket_shows_no_payload(backend: Backend) -> None:
    secret = {"answer": "a secret of the user " * 20_000}
    backend.open().create(KEY, secret, expires=backend.soon())
    body = backend.bucket.get(blob_of(backend))
    assert body.startswith(b"ks1.")
    raw = base64.urlsafe_b64decode(body[4:] + b"=" * (-len(body[4:]) % 4))
    assert b"secret" not in raw


def test_the_bucket_stores_megabytes_and_refuses_more_than_the_seal_allows(
    backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    table = backend.open()
    kept = table.create(KEY, {"x": "x" * 3_100_000}, expires=backend.soon())
    assert backend.open().get(KEY) == kept
    with pytest.raises(ItemTooLarge) as error:
        table.replace(kept, {"x": "x" * 3_200_000})
    assert "more than an object can hold" in error.value.reason
    assert caplog.messages == []  # larger than any state that a client carries
    assert backend.open().get(KEY) == kept


def test_without_a_bucket_a_large_payload_is_refused_and_the_reason_names_the_parameter(
    memory_backend: Backend,
) -> None:
    with pytest.raises(ItemTooLarge) as error:
        memory_backend.open(blobs=False).create(KEY, LARGE, expires=memory_backend.soon())
    assert "BlobBucket" in error.value.reason


def test_a_worker_reads_its_own_write_without_a_request_to_s3(
    memory_backend: Backend, memory_bucket: MemoryBucket
) -> None:
    table = memory_backend.open()
    item = table.create(KEY, LARGE, expires=memory_backend.soon())
    assert table.get(KEY) == item
    assert [operation for operation, _key in memory_bucket.calls] == ["put"]
    other = memory_backend.open()
    assert other.get(KEY) == other.get(KEY) == item
    assert [operation for operation, _key in memory_bucket.calls] == ["put", "get"]


def test_a_custom_codec_seals_objects_too(memory_backend: Backend) -> None:
    glass = TransparentSeal()
    item = memory_backend.open(codec=glass).create(KEY, LARGE, expires=memory_backend.soon())
    assert memory_backend.open(codec=glass).get(KEY) == item


def test_a_custom_codec_gets_the_scopes_of_items_and_objects_from_the_specification(
    memory_backend: Backend, memory_bucket: MemoryBucket
) -> None:
    glass = TransparentSeal()
    memory_backend.open(codec=glass).create(KEY, LARGE, expires=memory_backend.soon())
    key = f"{SERVICE}/task/{KEY.principal}/{KEY.id}"
    about = struct.pack(">H", len(key)) + key.encode() + struct.pack(">QQ", 1, memory_backend.soon())
    sealed: dict[bytes, Any] = {
        b"ks1/item": memory_backend.table.items[key]["sealed"]["S"],
        b"ks1/blob": next(iter(memory_bucket.objects.values())),
    }
    for label, text in sealed.items():
        assert glass.unseal(text)[:32] == hashlib.sha256(label + b"\0" + about).digest()


# ---- Lost, late, missing and altered objects


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let the store not wait, and list its pauses in seconds."""
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    return pauses


def test_the_store_waits_for_an_object_that_arrives_late(
    memory_backend: Backend, memory_bucket: MemoryBucket, pauses: list[float]
) -> None:
    item = memory_backend.open().create(KEY, LARGE, expires=memory_backend.soon())
    faults = iter(["late", "late"])
    memory_bucket.weather = lambda _operation: next(faults, None)  # type: ignore[arg-type]
    assert memory_backend.open().get(KEY) == item
    assert pauses == [0.0, 0.0, 0.2]


def test_an_item_whose_object_is_missing_is_unreadable_and_not_absent(
    backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    backend.open().create(KEY, LARGE, expires=backend.soon())
    backend.bucket.delete(blob_of(backend))
    with pytest.raises(UnreadableItem):
        backend.open().get(KEY)
    assert caplog.messages == ["an item's object is gone, or this role may not read it"]
    with pytest.raises(Conflict):
        backend.open().create(KEY, SMALL, expires=backend.soon())


def alterations(sealed: bytes, other: bytes) -> dict[str, bytes]:
    return {
        "cut": sealed[:-4],
        "empty": b"",
        "a byte": sealed[:-9] + b"AAAAAAAAA",
        "another's": other,
        "noise": b"\xff",
    }


@pytest.mark.parametrize("how", alterations(b"", b""))
def test_an_item_whose_object_was_altered_is_unreadable(
    backend: Backend, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    backend.open().create(KEY, LARGE, expires=backend.soon())
    another = backend.open().create(KEY._replace(id="other.01"), LARGE, expires=backend.soon())
    blob = blob_of(backend)
    instead = alterations(backend.bucket.get(blob), backend.bucket.get(another.blob or ""))[how]
    backend.bucket.put(blob, instead)
    with pytest.raises(UnreadableItem):
        backend.open().get(KEY)
    assert caplog.messages == ["an item's object has changed since it was written"]


def test_an_older_object_of_the_same_item_is_not_accepted(memory_backend: Backend, memory_bucket: MemoryBucket) -> None:
    table = memory_backend.open()
    item = table.create(KEY, {"n": 1, **LARGE}, expires=memory_backend.soon())
    old = memory_bucket.objects[item.blob or ""]
    item = table.replace(item, {"n": 2, **LARGE})
    memory_bucket.objects[item.blob or ""] = old
    with pytest.raises(UnreadableItem):
        memory_backend.open().get(KEY)


def test_an_object_does_not_open_as_an_item_nor_an_item_as_an_object(memory_backend: Backend) -> None:
    item = memory_backend.open().create(KEY, LARGE, expires=memory_backend.soon())
    (row,) = memory_backend.table.items.values()
    row["sealed"] = {"S": memory_backend.bucket.get(item.blob or "").decode()}
    with pytest.raises(UnreadableItem):
        memory_backend.open().get(KEY)


@pytest.mark.parametrize("fault", ["throttled", "lost"])
def test_no_item_names_an_object_with_an_unconfirmed_write(
    memory_backend: Backend,
    memory_bucket: MemoryBucket,
    fault: Any,  # noqa: ANN401
) -> None:
    memory_bucket.weather = lambda operation: fault if operation == "put" else None
    with pytest.raises(TemporarilyUnavailable) as error:
        memory_backend.open().create(KEY, LARGE, expires=memory_backend.soon())
    assert error.value.reason.startswith("blobs:")
    assert memory_backend.table.items == {}
    memory_bucket.weather = lambda _operation: None
    item = memory_backend.open().create(KEY, LARGE, expires=memory_backend.soon())
    assert memory_backend.open().get(KEY) == item


def test_an_unavailable_bucket_is_an_outage_and_a_denied_one_is_misconfigured(
    memory_backend: Backend, memory_bucket: MemoryBucket
) -> None:
    memory_backend.open().create(KEY, LARGE, expires=memory_backend.soon())
    memory_bucket.weather = lambda _operation: "throttled"
    with pytest.raises(TemporarilyUnavailable):
        memory_backend.open().get(KEY)
    memory_bucket.weather = lambda _operation: "denied"
    with pytest.raises(Misconfigured):
        memory_backend.open().create(KEY._replace(id="x.1"), LARGE, expires=memory_backend.soon())


def test_the_writer_that_loses_a_race_deletes_its_object(memory_backend: Backend, memory_bucket: MemoryBucket) -> None:
    first, second = memory_backend.open(), memory_backend.open()
    item = first.create(KEY, SMALL, expires=memory_backend.soon())
    won = first.replace(item, LARGE)
    with pytest.raises(Conflict):
        second.replace(item, {"z": "z" * 300_000})
    assert list(memory_bucket.objects) == [won.blob]


def test_an_item_replaced_before_its_object_was_read_is_read_again(
    memory_backend: Backend, memory_bucket: MemoryBucket, pauses: list[float]
) -> None:
    writer = memory_backend.open()
    item = writer.create(KEY, LARGE, expires=memory_backend.soon())

    def overtaken(operation: str) -> None:
        if operation == "get":
            memory_bucket.weather = lambda _operation: None
            writer.replace(item, {"new": "n" * 300_000})

    memory_bucket.weather = overtaken
    found = memory_backend.open().get(KEY)
    assert found
    assert found.payload == {"new": "n" * 300_000}
    assert not any(pauses)


def test_a_write_with_an_unknown_outcome_keeps_both_objects(
    memory_backend: Backend, memory_bucket: MemoryBucket
) -> None:
    item = memory_backend.open().create(KEY, LARGE, expires=memory_backend.soon())
    faults = iter(["lost", "unanswered"])  # of the table: the write, and the reading back
    memory_backend.table.weather = lambda _operation: next(faults, None)  # type: ignore[arg-type]
    with pytest.raises(TemporarilyUnavailable):
        memory_backend.open().replace(item, {"n": "n" * 300_000})
    assert len(memory_bucket.objects) == 2
    found = memory_backend.open().get(KEY)
    assert found
    assert found.payload == {"n": "n" * 300_000}


def test_the_store_leaves_an_object_that_it_cannot_delete_to_the_lifecycle_rule(
    memory_backend: Backend, memory_bucket: MemoryBucket
) -> None:
    table = memory_backend.open()
    item = table.create(KEY, LARGE, expires=memory_backend.soon())
    memory_bucket.weather = lambda operation: "throttled" if operation == "delete" else None
    item = table.replace(item, SMALL)
    assert memory_backend.open().get(KEY) == item
    assert len(memory_bucket.objects) == 1


def test_a_deployment_without_its_bucket_reports_a_misconfiguration(
    memory_backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    memory_backend.open().create(KEY, LARGE, expires=memory_backend.soon())
    with pytest.raises(UnreadableItem):
        memory_backend.open(blobs=False).get(KEY)
    assert caplog.messages == ["an item has an object, and MCP_BLOBS is not set"]


def test_a_payload_that_is_not_json_reaches_no_bucket(memory_backend: Backend, memory_bucket: MemoryBucket) -> None:
    with pytest.raises(DeveloperError):
        memory_backend.open().create(KEY, {"x": object()}, expires=memory_backend.soon())
    assert memory_bucket.calls == []


# ---- Errors of S3


class Answering:
    """A boto3 client whose calls all raise the same exception."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __getattr__(self, _operation: str) -> Callable[..., Any]:
        def refuse(**_request: object) -> None:
            raise self._error

        return refuse


def client_error(code: str, status: int) -> Exception:
    from botocore.exceptions import ClientError

    said: Any = {"Error": {"Code": code, "Message": "secret"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(said, "GetObject")


@pytest.mark.parametrize(
    ("error", "reading", "writing"),
    [
        (client_error("SlowDown", 503), TemporarilyUnavailable, TemporarilyUnavailable),
        (client_error("SomethingNew", 500), TemporarilyUnavailable, TemporarilyUnavailable),
        (client_error("ExpiredToken", 400), TemporarilyUnavailable, TemporarilyUnavailable),
        (client_error("NoSuchKey", 404), ObjectNotFound, Misconfigured),
        (client_error("AccessDenied", 403), ObjectNotFound, Misconfigured),
        (client_error("NoSuchBucket", 404), Misconfigured, Misconfigured),
        (TimeoutError("secret"), TemporarilyUnavailable, TemporarilyUnavailable),
        (RuntimeError("secret"), Misconfigured, Misconfigured),
    ],
    ids=str,
)
def test_an_s3_error_means_no_object_an_outage_or_a_misconfiguration(
    error: Exception, reading: type[Exception], writing: type[Exception]
) -> None:
    bucket = S3(BUCKET, lambda: Answering(error))
    with pytest.raises(reading) as error_info:
        bucket.get("k")
    assert "secret" not in str(error_info.value) + str(getattr(error_info.value, "reason", ""))
    with pytest.raises(writing):
        bucket.put("k", b"")


@pytest.mark.usefixtures("over_http")
def test_the_bucket_of_the_harness_cannot_be_listed() -> None:
    client: Any = s3_client()
    with pytest.raises(Exception, match="AccessDenied"):
        client.list_objects_v2(Bucket=BUCKET)
    with pytest.raises(Exception, match="NoSuchBucket"):
        client.get_object(Bucket="another", Key="k")


# ---- Tasks and conversations whose payload is larger than an item


@tool(task="allowed")
def chronicle(pages: int, *, step: Step, elicit: Elicit) -> str:
    """Write several pages, ask a question, and return all pages."""
    written = [step(f"page-{number}", lambda n: str(n % 10) * 7000, number) for number in range(pages)]
    elicit.url("ready", "Is it long enough?", "https://example.com/")
    return "".join(written)


@tool(single_use="replay")
def long_answer(*, step: Step) -> str:
    """Return a long text, for a call that runs once."""
    return step("write", lambda: "w") * 500_000


chronicles, answers = serve(chronicle), serve(long_answer)


@pytest.mark.parametrize("own", [True, False])
def test_a_task_keeps_more_data_than_an_item_holds(own: bool) -> None:  # noqa: FBT001 - a parameter
    bucket = MemoryBucket()
    with deployed(None, bucket if own else None, MCP_BLOBS="blobs-of-mine"):
        talk = Conversation(chronicles, capabilities=WITH_TASKS).call(pages=PAGES)
        assert talk.poll().asked == ["ready"]
        talk.answer(ready={"action": "accept"})
        assert talk.text == "".join(str(number % 10) * 7000 for number in range(PAGES))
    if own:
        assert len(bucket.objects) == 1  # the object that is left holds the result; those of the steps are deleted
        assert b"0000000" not in b"".join(bucket.objects.values())


def test_a_task_without_a_bucket_fails_because_its_data_is_too_large() -> None:
    with deployed():
        talk = Conversation(chronicles, capabilities=WITH_TASKS).call(pages=PAGES).poll()
        assert talk.result["result"]["isError"]
        assert "more data than a task can keep" in json.dumps(talk.result)


def test_a_recorded_response_larger_than_an_item_is_sent_again(caplog: pytest.LogCaptureFixture) -> None:
    with deployed(None, MemoryBucket(), MCP_BLOBS="blobs-of-mine"):
        talk = Conversation(answers).call().answer()
        assert talk.text == "w" * 500_000
        assert talk.retry().text == "w" * 500_000
    with deployed():
        talk = Conversation(answers).call().answer()
        assert talk.text == "w" * 500_000
        assert talk.retry().result["isError"]
    assert "w" * 100 not in caplog.text


def test_a_task_whose_object_is_missing_is_unknown_and_does_nothing() -> None:
    bucket = MemoryBucket()
    with deployed(None, bucket, MCP_BLOBS="blobs-of-mine"):
        talk = Conversation(chronicles, capabilities=WITH_TASKS).call(pages=PAGES)
        assert talk.poll().asked == ["ready"]
        bucket.objects.clear()
        fresh = Conversation(chronicles, capabilities=WITH_TASKS)
        fresh.upgrade(chronicles.fresh()).rounds[:] = talk.rounds
        assert fresh.poll().error["message"] == "Unknown task"
