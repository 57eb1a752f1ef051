"""The memory that a round needs is limited by the memory that `json.loads` needs for the same body.

`costly_value` is a JSON text that is cheap to send and could be costly to read. `call_with` writes a call with this
text in the place of PLACEHOLDER, and `check_memory` measures the round.
"""

from __future__ import annotations

import gc
import json
import tracemalloc
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel

from functions.plan_trip.app import handler as plan_trip
from mcp_functions import Elicit, observability, resource, serve, serve_catalog, tool
from mcp_functions import store as tables
from mcp_functions.http import forwarding
from mcp_functions.protocol import json_reader
from mcp_functions.protocol.errors import ParseError
from mcp_functions.schemas import validation
from mcp_functions_harness.environment import TABLE
from mcp_functions_harness.testing import MemoryTable, deployed
from tests.support import wire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mcp_functions.handlers.base import Handler
    from mcp_functions.http.gateway import LambdaFunction

# The bytes of a costly value. Less than the limit of 4 MiB is enough, because the budget is a ratio.
SIZE = 128 * 1024
MANY = 32 * 1024  # for a list or an object of so many values that reading them takes many times this
FIXED_BYTES = 96 * 1024  # bytes that any round takes
CATALOG = Path(__file__).parents[2] / "functions" / "mcp" / "catalog.json"
PLACEHOLDER = "PLACEHOLDER"
NAME = "work"
ANSWER = {"words": {"action": "accept", "content": {"text": "yes"}}}


class Words(BaseModel):
    text: str = ""


class Parcel(BaseModel):
    note: Any = ""
    items: list[int] = []


@tool(name=NAME)
def any_value(value: Any = None) -> str:  # noqa: ANN401 - JSON is any value
    return type(value).__name__


@tool(name=NAME)
def numbers(value: list[int | None]) -> str:
    return str(len(value))


@tool(name=NAME)
def parcel(value: Parcel) -> str:
    return str(len(value.items))


def refuse(_item: int) -> int:
    message = "is never sent"
    raise ValueError(message)


class RefusedParcel(BaseModel):
    items: list[Annotated[int, AfterValidator(refuse)]]


@tool(name=NAME)
def refused_parcel(value: RefusedParcel) -> str:
    return str(len(value.items))


@tool(name=NAME)
def parcels(value: dict[str, Parcel]) -> str:
    return str(len(value))


@tool(
    name=NAME, input_schema={"type": "object", "properties": {"value": {"type": "array", "items": {"type": "string"}}}}
)
def raw(arguments: dict[str, Any]) -> str:
    return str(len(arguments))


@tool(name=NAME, input_schema={"type": "object", "properties": {"value": {"uniqueItems": True}}})
def single(arguments: dict[str, Any]) -> str:
    return "done" if arguments else ""


class Strict(BaseModel, extra="forbid"):
    items: list[int] = []


@tool(name=NAME)
def strict(value: Strict) -> str:
    return str(len(value.items))


@resource("notes://today")
def today() -> str:
    return ""


@tool(name=NAME)
def ask(value: Any = None, *, elicit: Elicit) -> str:  # noqa: ANN401
    answer = elicit("words", "Which?", Words)
    return f"{type(value).__name__}: {answer.text[:3]}"


ask_once = tool(name=NAME, single_use="replay")(ask.function)


def repeat(item: str, count: int) -> str:
    """Write a list that holds one JSON text many times."""
    return f"[{','.join([item] * count)}]"


def list_of(item: str, size: int) -> str:
    return repeat(item, (size - 2) // (len(item.encode()) + 1))


def object_of(value: str, size: int) -> str:
    count = size // (len(value) + 9)
    return "{" + ",".join(f'"{number:x}":{value}' for number in range(count)) + "}"


def string_of(character: str, size: int) -> str:
    return f'"{character * ((size - 2) // len(character.encode()))}"'


COSTLY_VALUES = {
    "numbers of 309 digits": list_of("1e308", MANY),
    "numbers of many digits": list_of("1" * 300, SIZE),
    "short numbers that are long in full": list_of("1e15", MANY),
    "fractions": list_of("0.1", MANY),
    "zeros": list_of("0", MANY),
    "nulls": list_of("null", SIZE),
    "empty lists": list_of("[]", MANY),
    "empty objects": list_of("{}", MANY),
    "tiny objects": list_of('{"":0}', MANY),
    "lists as deep as they may be": list_of("[" * 58 + "]" * 58, MANY),
    "objects as deep as they may be": list_of('{"a":' * 58 + "0" + "}" * 58, MANY),
    "a million keys": object_of("0", MANY),
    "a million keys of lists": object_of("[]", MANY),
    "a key as long as the body": f"{{{string_of('k', SIZE - 4)}:0}}",
    "empty strings": list_of('""', SIZE),
    "strings of one character": list_of('"é"', SIZE),
    "one long string": string_of("x", SIZE),
    "quotes": string_of('\\"', SIZE),
    "control characters": string_of("\\u0001", SIZE),
    "Latin letters": string_of("é", SIZE),
    "Chinese": string_of("界", SIZE),
    "emoji": string_of("😀", SIZE),
    "pairs of escapes": list_of(r'"\ud83d\ude00"', SIZE),
    "one emoji among ASCII": f'[{string_of("x", SIZE - 12)},"😀"]',
    "one escaped emoji among ASCII": f'[{string_of("x", SIZE - 20)},"\\ud83d\\ude00"]',
}


def call_with(raw: str, *, meta: Mapping[str, Any] = {}, **params: Any) -> dict[str, Any]:  # noqa: ANN401
    """Write a call with a JSON text in its arguments, or wherever PLACEHOLDER stands."""
    params = {"name": NAME, "arguments": {"value": PLACEHOLDER}, **params}
    event = wire.event(wire.message("tools/call", params, meta=meta))
    return {**event, "body": event["body"].replace(json.dumps(PLACEHOLDER), raw)}


def state(response: Mapping[str, Any]) -> str:
    return str(wire.messages(response)[-1]["result"]["requestState"])


def measure(handler: LambdaFunction, event: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
    """Send an event; return the response, and the largest number of bytes that were in use."""
    gc.collect()
    tracemalloc.start()
    try:
        response = handler(event, wire.Context(f"local_{NAME}"))
        return response, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def memory_of_reading(body: str) -> int:
    """Return how many bytes `json.loads` takes."""
    gc.collect()
    tracemalloc.start()
    try:
        json.loads(body)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def reading_budget(body: str) -> int:
    """Return how many bytes a round may take."""
    return 2 * memory_of_reading(body) + 3 * len(body.encode()) + FIXED_BYTES


def validation_budget(body: str) -> int:
    """Return how many bytes a round may take where pydantic reads the values again, and keeps its own."""
    return 3 * memory_of_reading(body) + 6 * len(body.encode()) + FIXED_BYTES


def forwarding_budget(body: str) -> int:
    """Return how many bytes a round may take that writes an event as one text: one emoji costs 4 bytes a character."""
    return reading_budget(body) + 4 * len(body.encode())


def check_memory(
    handler: LambdaFunction, event: Mapping[str, Any], budget: Callable[[str], int] = reading_budget
) -> dict[str, Any]:
    """Send an event, and check that the round stays in its budget. Return the response."""
    limit = budget(event["body"])
    response, peak = measure(handler, event)
    assert peak < limit, f"{peak / limit:.2f} of the budget: {response['body'][:200]}"
    assert response["statusCode"] in (200, 202, 400)
    assert len(response["body"]) < 4096
    return response


@pytest.fixture(scope="module", autouse=True)
def _no_garbage_of_other_tests() -> Iterator[None]:
    """Keep the collector from the objects of other tests, which would change the measurements."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(params=COSTLY_VALUES)
def costly_value(request: pytest.FixtureRequest) -> str:
    return COSTLY_VALUES[request.param]


@pytest.mark.parametrize("function", [any_value, numbers, raw], ids=["any value", "numbers", "raw"])
def test_a_call_of_a_tool_needs_little_more_memory_than_reading_its_arguments(
    function: Handler[..., Any], costly_value: str
) -> None:
    handler = serve(function)
    handler(call_with("[]"), wire.Context())
    check_memory(handler, call_with(costly_value))


@pytest.mark.parametrize("function", [parcel, parcels], ids=["a parcel", "parcels"])
def test_a_call_of_a_tool_with_a_model_needs_little_more_memory_than_reading_its_arguments_twice(
    function: Handler[..., Any], costly_value: str
) -> None:
    handler = serve(function)
    handler(call_with("[]"), wire.Context())
    check_memory(handler, call_with(costly_value), validation_budget)


def test_a_question_and_its_answer_need_bounded_memory_for_any_arguments(costly_value: str) -> None:
    handler = serve(ask, codec=wire.PlainCodec())
    handler(call_with("1"), wire.Context())
    first = check_memory(handler, call_with(costly_value))
    response = check_memory(handler, call_with(costly_value, requestState=state(first), inputResponses=ANSWER))
    assert ': yes"' in response["body"]


@pytest.mark.parametrize("function", [ask, ask_once], ids=["ask", "ask once"])
def test_any_answer_needs_bounded_memory(function: Any, costly_value: str, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ANN401
    monkeypatch.setattr(tables, "make_call", lambda: MemoryTable(TABLE))
    handler = serve(function, codec=wire.PlainCodec())
    first = state(handler(call_with("1", arguments={}), wire.Context(f"local_{NAME}")))
    answer = {"words": {"action": "accept", "content": {"text": PLACEHOLDER}}}
    event = call_with(costly_value, arguments={}, requestState=first, inputResponses=answer)
    check_memory(handler, event, validation_budget)


@pytest.mark.parametrize("member", ["params", "requestState", "inputResponses"])
def test_other_members_of_params_need_bounded_memory(member: str, costly_value: str) -> None:
    handler = serve(ask, codec=wire.PlainCodec())
    handler(call_with("1"), wire.Context())
    params: dict[str, Any] = {"arguments": {}, member: PLACEHOLDER}
    check_memory(handler, call_with(costly_value, **params))


@pytest.mark.parametrize("member", ["progressToken", "com.example/key"])
def test_members_of_meta_need_bounded_memory(member: str, costly_value: str) -> None:
    handler = serve(ask, codec=wire.PlainCodec())
    handler(call_with("1"), wire.Context())
    check_memory(handler, call_with(costly_value, arguments={}, meta={member: PLACEHOLDER}))


def test_a_large_tool_name_needs_bounded_memory(costly_value: str) -> None:
    handler = serve(ask, codec=wire.PlainCodec())
    handler(call_with("1"), wire.Context())
    event = call_with(costly_value, arguments={}, name=PLACEHOLDER)
    del event["headers"]["mcp-name"]
    check_memory(handler, event)


@pytest.mark.parametrize(
    "body", ['{"jsonrpc":"2.0","id":%s,"method":"tools/list"}', "%s", '{"jsonrpc":"2.0","id":1,"words":%s}']
)
def test_a_body_that_is_no_request_needs_bounded_memory(body: str, costly_value: str) -> None:
    handler = serve(any_value)
    handler(call_with("1"), wire.Context())
    check_memory(handler, {**call_with("1"), "body": body % costly_value})


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("initialize", {"protocolVersion": PLACEHOLDER}),
        ("tools/call", {"name": NAME, "arguments": {"value": PLACEHOLDER}}),
    ],
)
def test_a_request_of_a_2025_client_needs_bounded_memory(
    method: str, params: dict[str, Any], costly_value: str
) -> None:
    handler = serve(any_value)
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    event = wire.event(body, headers={"content-type": "application/json", "mcp-protocol-version": "2025-06-18"})
    handler(event, wire.Context())
    check_memory(handler, {**event, "body": body.replace(json.dumps(PLACEHOLDER), costly_value)})


class EmptyLambda:
    """A client of Lambda's that returns an empty response to everything."""

    def invoke(self, **_call: object) -> dict[str, Any]:
        response = {"statusCode": 200, "headers": {}, "body": "", "isBase64Encoded": False}
        return {"Payload": BytesIO(json.dumps(response).encode())}

    def close(self) -> None:
        pass


def test_the_front_door_needs_little_more_memory_than_the_text_of_the_event(
    costly_value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forwarding, "lambda_client", EmptyLambda)
    endpoint = serve_catalog(CATALOG)
    endpoint(call_with("1", name="add"), wire.Context("local_mcp"))
    check_memory(endpoint, call_with(costly_value, name="add"), forwarding_budget)


def test_a_megabyte_of_the_largest_numbers_is_digested_in_bounded_memory() -> None:
    event = wire.event(wire.message("tools/call", {"name": "plan_trip", "arguments": {"days": PLACEHOLDER}}))
    handler = plan_trip.fresh()
    with deployed():
        handler(event, wire.Context("local_plan_trip"))
        body = event["body"].replace(json.dumps(PLACEHOLDER), list_of("1e308", 1024 * 1024))
        response = check_memory(handler, {**event, "body": body})
    assert "Argument 'days': must be an integer" in response["body"]


def test_no_collection_runs_while_a_body_is_read() -> None:
    phases: list[str] = []

    def watch(phase: str, _info: dict[str, int]) -> None:
        phases.append(phase)

    gc.callbacks.append(watch)
    try:
        json_reader.loads(list_of("[]", SIZE))
    finally:
        gc.callbacks.remove(watch)
    assert gc.isenabled()
    assert len(phases) <= 2, "one collection may run when the reader is done"


@pytest.mark.parametrize("body", ["[", '{"a":1,"a":2}', "[1e999]"])
def test_garbage_collection_continues_after_a_refused_body(body: str) -> None:
    with pytest.raises(ParseError):
        json_reader.loads(body)
    assert gc.isenabled()


def test_garbage_collection_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        json_reader.loads("[]")
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize("value", ["[[]]", '{"a": {"b": "c"}}', '"x"'])
def test_a_schema_of_the_author_is_checked_on_at_most_100_000_values(value: str) -> None:
    handler = serve(raw)
    refused = handler(call_with(repeat(value, 101_000)), wire.Context())
    assert "more than 100000 values" in refused["body"]
    checked = handler(call_with(repeat(value, 30_000)), wire.Context())
    assert "more than" not in checked["body"]


def test_a_validator_checks_at_most_100_000_values() -> None:
    handler = serve(parcel)
    refused = handler(call_with(f'{{"items":{repeat("3", 101_000)}}}'), wire.Context())
    assert "more than 100000 values" in refused["body"]
    checked = handler(call_with(f'{{"items":{repeat("3", 90_000)}}}'), wire.Context())
    assert "90000" in checked["body"]


def test_a_wrong_value_is_named_by_its_first_place() -> None:
    value = f'{{"items":{repeat("null", 1100)}}}'
    assert "items item 0 must be an integer" in serve(parcel)(call_with(value), wire.Context())["body"]


def test_the_places_that_a_validator_refuses_are_named_up_to_a_thousand() -> None:
    value = f'{{"items":{repeat("3", 900)}}}'
    assert "items.0" in serve(refused_parcel)(call_with(value), wire.Context())["body"]


def test_a_value_that_a_validator_refuses_in_more_places_is_counted_and_not_explained() -> None:
    value = f'{{"items":{repeat("3", 1100)}}}'
    assert "does not fit in 1100 places" in serve(refused_parcel)(call_with(value), wire.Context())["body"]


def test_the_items_of_a_mixed_list_are_compared_in_one_pass() -> None:
    class Item(str):
        __slots__ = ()
        compared = 0
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            Item.compared += 1
            return super().__eq__(other)

    schema = validation.read_schema({"type": "object", "properties": {"value": {"uniqueItems": True}}})
    texts = [Item(number) for number in range(500)]
    schema.read({"value": [*texts, 7]})  # texts and a number cannot be sorted
    assert Item.compared == 0


@pytest.mark.parametrize(
    "items",
    [
        pytest.param([1, "a", 1], id="a number"),
        pytest.param([{"a": 1, "b": 2}, {"b": 2, "a": 1.0}], id="an object in another order"),
        pytest.param([[], "x", []], id="an empty list"),
    ],
)
def test_a_repeated_item_of_a_list_is_found(items: list[Any]) -> None:
    assert "does not fit 'uniqueItems'" in serve(single)(call_with(json.dumps(items)), wire.Context())["body"]


def test_true_and_1_are_two_items() -> None:
    assert "done" in serve(single)(call_with("[true,1,false,0,null]"), wire.Context())["body"]


@pytest.mark.parametrize(
    "message",
    [
        wire.message("tools/call", {"name": NAME, "arguments": {"x" * SIZE: 1}}),
        wire.message("tools/call", {"name": NAME, "arguments": {"value": {"x" * SIZE: 1}}}),
        wire.message("resources/read", {"uri": f"notes://{'x' * SIZE}"}),
        wire.message("tools/list", version="x" * SIZE),
    ],
    ids=["argument", "field", "uri", "version"],
)
def test_an_error_repeats_little_of_the_request(message: dict[str, Any]) -> None:
    response = serve(strict, today)(wire.event(message), wire.Context())
    assert "xxx" in response["body"]
    assert len(response["body"]) < 2048


def call_any_value(event: Mapping[str, Any]) -> dict[str, Any]:
    (message,) = wire.messages(serve(any_value)(event, wire.Context()))
    return message


def test_an_id_of_8192_characters_is_accepted_and_no_longer_one() -> None:
    accepted = wire.message("tools/call", {"name": NAME, "arguments": {}}, id="x" * 8192)
    refused = wire.message("tools/call", {"name": NAME, "arguments": {}}, id="x" * 8193)
    assert "result" in call_any_value(wire.event(accepted))
    assert call_any_value(wire.event(refused))["error"]["code"] == -32600


def test_a_progress_token_of_8192_characters_is_accepted_and_no_longer_one() -> None:
    accepted = call_with("1", meta={"progressToken": "x" * 8192})
    refused = call_with("1", meta={"progressToken": "x" * 8193})
    assert "result" in call_any_value(accepted)
    assert call_any_value(refused)["error"]["code"] == -32602


def test_an_endless_recursion_of_a_handler_writes_a_short_log_line(caplog: pytest.LogCaptureFixture) -> None:
    @tool
    def endless(level: int = 0) -> int:
        return endless.function(level + 1)

    event = wire.event(wire.message("tools/call", {"name": "endless", "arguments": {}}))
    response = serve(endless)(event, wire.Context())
    assert response["statusCode"] in (200, 500)
    (line,) = [line for line in caplog.messages if "RecursionError" in line]
    assert len(line) < 8192
    assert "in endless" in line
    assert "in run_round" in line, "the line also has the first frames"
    assert " more < " in line


@pytest.mark.parametrize("depth", [13, 14, 15, 16, 40])
def test_the_log_line_counts_the_frames_that_it_omits(depth: int) -> None:
    def fail(level: int) -> None:
        if level > 1:
            fail(level - 1)
        raise ValueError

    with pytest.raises(ValueError, match=r"^$") as error:
        fail(depth)
    parts = observability.frames(error.value).split(" < ")
    omitted = [int(part.removesuffix(" more")) for part in parts if part.endswith(" more")]
    assert len(parts) - len(omitted) + sum(omitted) == depth + 1
    assert len(parts) <= 15
