"""Malformed requests get an error and run no tool; unusual but valid requests are answered.

Each `Row` is a malformed request, with the status and the error code of its response. It is posted to a tool's Lambda
and to the front door before it, as text and as base64. The tool appends each call to `calls`. The decorators read real
annotations at run time, so this module does not import `annotations` from `__future__`.
"""

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from mcp_functions import Progress, tool
from mcp_functions.http.gateway import LambdaFunction
from tests.support import gateways, wire
from tests.support.gateways import Event, HttpRequest
from tests.support.placements import PLACEMENTS, place

LIMIT = 20_000  # bytes of a body; a small limit keeps the rows over it small
ORIGINS = "https://app.example,https://admin.example:8443"
SECRET = "hunter2"  # noqa: S105 - no response may quote it
LAMBDA_BYTES = 6 * 1024 * 1024
NO_ID: Any = ...

calls: list[object] = []


@tool
def touch(mark: Any = None) -> str:  # noqa: ANN401 - any JSON
    """Leave a mark."""
    calls.append(mark)
    return "touched"


@tool
def produce(size: int, unit: str = "x", *, progress: Progress) -> str:
    """Return a long text."""
    progress(1, message="soon")
    return unit * size


CALL_MESSAGE = wire.message("tools/call", {"name": "touch", "arguments": {"mark": SECRET}})
CALL = json.dumps(CALL_MESSAGE, separators=(",", ":"))
HEADERS = gateways.http_request(CALL_MESSAGE).headers


def with_argument(json_text: str) -> str:
    """Write the call with this JSON as its argument."""
    return CALL.replace(f'"{SECRET}"', json_text)


def with_id(json_text: str) -> str:
    """Write the call with this JSON as its id."""
    return CALL.replace('"id":1', f'"id":{json_text}')


WITHOUT_ID = CALL.replace('"id":1,', "")
assert len({CALL, with_argument("0"), with_id("2"), WITHOUT_ID}) == 4, "a replacement found nothing"


@dataclass(frozen=True)
class Row:
    """A malformed request and its response.

    Attributes:
        code: the error code; None if the response has no body.
        id: of the request, if the server could read it.
        message: a part of the error message.

    """

    name: str
    body: str | bytes = CALL
    status: int = 400
    code: int | None = -32700
    id: Any = NO_ID
    headers: dict[str, str | None] = field(default_factory=dict)
    message: str = ""

    @property
    def raw(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else self.body.encode()


def texts_that_are_no_json() -> list[Row]:
    texts = {
        "nothing at all": "",
        "blanks": " \n\t ",
        "an open brace": "{",
        "half a call": CALL[:-20],
        "a call and more": CALL + "{}",
        "two calls": CALL + "\n" + CALL,
        "a trailing comma": CALL[:-1] + ",}",
        "single quotes": CALL.replace('"', "'"),
        "a comment": "/* " + SECRET + " */" + CALL,
        "bare words": CALL.replace('"jsonrpc"', "jsonrpc"),
        "a form": "mark=" + SECRET,
        "a byte order mark": "\ufeff" + CALL,
        "a NUL in a string": with_argument('"\x00"'),
        "a line break in a string": with_argument('"\n"'),
        "a bad escape": with_argument(r'"\x41"'),
        "half an escape": with_argument(r'"\u00"'),
        "an octal number": with_argument("010"),
        "a plus sign": with_argument("+1"),
        "a hexadecimal number": with_argument("0x10"),
        "True": with_argument("True"),
    }
    return [Row(name, text) for name, text in texts.items()]


def repeated_keys() -> list[Row]:
    texts = {
        "the id twice": with_id('1,"id":2'),
        "the same id twice": with_id('1,"id":1'),
        "the method twice": CALL.replace('"method":', '"method":"tools/list","method":'),
        "the params twice": CALL.replace('"params":', '"params":{},"params":'),
        "the name twice": CALL.replace('"name":', '"name":"produce","name":'),
        "the arguments twice": CALL.replace('"arguments":', '"arguments":{},"arguments":'),
        "an argument twice": with_argument('1,"mark":2'),
        "a key twice deep inside": with_argument('[{"a":[{"b":1,"b":2}]}]'),
        "a key twice in two spellings": with_argument(r'1,"\u006dark":2'),
        "_meta twice": CALL.replace('"_meta":', '"_meta":{},"_meta":'),
    }
    return [Row(name, text, message="A JSON object holds the same key twice") for name, text in texts.items()]


def deep_nesting() -> list[Row]:
    texts = {
        "open brackets": "[" * 10_000,
        "open braces": '{"a":' * 3_000,
        "balanced brackets": "[" * 9_000 + "]" * 9_000,
        "balanced braces": '{"a":' * 3_000 + "1" + "}" * 3_000,
        "a deep argument": with_argument("[" * 9_000 + "]" * 9_000),
        "a deep object as argument": with_argument('{"a":' * 2_500 + "1" + "}" * 2_500),
        "65 levels": with_argument("[" * 62 + "]" * 62),
        "a deep id": with_id("[" * 9_000 + "]" * 9_000),
        "brackets and braces in turn": with_argument('[{"a":' * 1_000 + "1" + "}]" * 1_000),
    }
    return [Row(name, text) for name, text in texts.items()]


def invalid_numbers() -> list[Row]:
    texts = {
        "NaN": "NaN",
        "Infinity": "Infinity",
        "-Infinity": "-Infinity",
        "1e999": "1e999",
        "-1e999": "-1e999",
        "an integer of 5,000 digits": "9" * 5_000,
        "a negative integer of 5,000 digits": "-" + "9" * 5_000,
        "5,000 digits and an exponent": "9" * 5_000 + "e0",
    }
    rows = [Row(name, with_argument(text)) for name, text in texts.items()]
    return [*rows, *(Row(f"{name} as id", with_id(text)) for name, text in texts.items())]


def invalid_unicode() -> list[Row]:
    rows = {
        "the first half of a pair": with_argument(r'"\ud800"'),
        "the second half of a pair": with_argument(r'"\udc00"'),
        "two halves in the wrong order": with_argument(r'"\udc22\ud83d"'),
        "half a pair in a key": with_argument(r'{"\ud800":1}'),
        "half a pair in a name": CALL.replace('"name":"touch"', r'"name":"\ud800"'),
        "half a pair in an id": with_id(r'"\ud800"'),
        "half a pair in _meta": CALL.replace('"_meta":{', r'"_meta":{"a":"\ud800",'),
    }
    raw = {
        "half a pair in UTF-8": with_argument('"?"').encode().replace(b"?", b"\xed\xa0\x80"),
        "a byte that UTF-8 never has": with_argument('"?"').encode().replace(b"?", b"\xff"),
        "Latin-1": with_argument('"é"').encode("latin-1"),
        "an overlong slash": with_argument('"?"').encode().replace(b"?", b"\xc0\xaf"),
        "a character cut in half": with_argument('"é"').encode().replace(b"\xa9", b""),
        "UTF-16": CALL.encode("utf-16"),
        "UTF-32": CALL.encode("utf-32"),
        "gzip": base64.b64decode("H4sIAAAAAAAAA6uuBQBDv6ajAgAAAA=="),
    }
    return [*(Row(name, text) for name, text in rows.items()), *(Row(name, body) for name, body in raw.items())]


def other_messages() -> list[Row]:
    bodies = {
        "null": "null",
        "true": "true",
        "a number": "1",
        "a string": f'"{SECRET}"',
        "an empty object": "{}",
        "an empty array": "[]",
        "an array of one call": f"[{CALL}]",
        "an array of two calls": f"[{CALL},{CALL}]",
        "an array of notifications": f"[{WITHOUT_ID}]",
        "a result": '{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}',
        "an error": '{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no"}}',
        "an error without an id": '{"jsonrpc":"2.0","error":{"code":-32603,"message":"no"}}',
        "an error with a null id": '{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"no"}}',
        "a null id": with_id("null"),
        "true as id": with_id("true"),
        "false as id": with_id("false"),
        "a fraction as id": with_id("1.5"),
        "a list as id": with_id("[1]"),
        "an object as id": with_id("{}"),
    }
    unread = [Row(name, body, code=-32600) for name, body in bodies.items()]
    named = {
        "no version of JSON-RPC": CALL.replace('"jsonrpc":"2.0",', ""),
        "another version of JSON-RPC": CALL.replace('"2.0"', '"1.0"'),
        "a version that is a number": CALL.replace('"jsonrpc":"2.0"', '"jsonrpc":2.0'),
        "no method": CALL.replace('"method":"tools/call",', ""),
        "a null method": CALL.replace('"tools/call"', "null"),
        "a method that is a list": CALL.replace('"tools/call"', '["tools/call"]'),
        "params in a list": '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["touch"]}',
        "null params": '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":null}',
        "a method that is a number": CALL.replace('"tools/call"', "7"),
    }
    return [*unread, *(Row(name, body, code=-32600, id=1) for name, body in named.items())]


def messages_without_an_id() -> list[Row]:
    cancelling: dict[str, str | None] = {"mcp-method": "notifications/cancelled", "mcp-name": None}
    bodies: dict[str, tuple[str, dict[str, str | None]]] = {
        "a call without an id": (WITHOUT_ID, {}),
        "a call without an id or headers": (WITHOUT_ID, {"mcp-method": None, "mcp-name": None}),
        "a call without an id or _meta": ('{"jsonrpc":"2.0","method":"tools/call","params":{"name":"touch"}}', {}),
        "a notification nobody knows": (
            '{"jsonrpc":"2.0","method":"notifications/nothing"}',
            {"mcp-method": "notifications/nothing", "mcp-name": None},
        ),
        "a cancellation": (
            '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"late"}}',
            cancelling,
        ),
        "a malformed cancellation": (
            '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}',
            cancelling,
        ),
    }
    return [Row(name, body, 202, None, headers=headers) for name, (body, headers) in bodies.items()]


def other_content_types() -> list[Row]:
    types = (
        *("text/plain", "text/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"),
        *(
            "application/jsonrequest",
            "application/vnd.api+json",
            "application/json-seq",
            "application/json, text/plain",
        ),
        *("application", "json", "*/*", "", ";", "application /json"),
    )
    rows = [Row(f"content type {t!r}", status=415, code=-32600, id=1, headers={"content-type": t}) for t in types]
    return [
        *rows,
        Row("a notification that says text", WITHOUT_ID, 415, -32600, headers={"content-type": "text/plain"}),
        Row("compressed", status=415, code=-32600, id=1, headers={"content-encoding": "gzip"}),
        Row(
            "a form that says so", "mark=1", 415, -32600, headers={"content-type": "application/x-www-form-urlencoded"}
        ),
    ]


def foreign_origins() -> list[Row]:
    origins = (
        *("https://evil.example", "null", "", "https://app.example.evil.example", "https://evil.example/app.example"),
        *("http://app.example", "https://app.example:444", "https://app.example/", "https://APP.example", "*"),
        *("https://app.example,https://evil.example", "https://app.example https://admin.example:8443", "app.example"),
        *("https://admin.example", "https://sub.app.example"),
    )
    rows = [Row(f"origin {o!r}", status=403, code=None, headers={"origin": o}) for o in origins]
    garbage = Row("a foreign origin with garbage", "{", 403, None, headers={"origin": "https://evil.example"})
    over = Row("a foreign origin with too much", "x" * 2 * LIMIT, 403, None, headers={"origin": "https://evil.example"})
    return [*rows, garbage, over]


def bodies_over_the_limit() -> list[Row]:
    bodies: dict[str, str | bytes] = {
        "one byte too many": " " * (LIMIT + 1 - len(CALL)) + CALL,
        "too many bytes, in few characters": with_argument('"' + "é" * (LIMIT // 2) + '"'),
        "far too much": with_argument('"' + "x" * LIMIT * 5 + '"'),
        "a bomb that is too large to be looked at": "[" * LIMIT * 3,
        "garbage that is too large to be looked at": b"\xff" * (LIMIT + 1),
        "a notification that is too large": WITHOUT_ID.replace(SECRET, "x" * LIMIT),
    }
    return [Row(name, body, 413, -32600, message="Request body too large") for name, body in bodies.items()]


def headers_that_contradict_the_body() -> list[Row]:
    empty = '{"jsonrpc":"2.0","id":1,"method":"tools/call"}'
    return [
        Row("no params", empty, code=-32602, id=1),
        Row("an empty method", CALL.replace('"tools/call"', '""'), code=-32020, id=1),
        Row("a notification the headers do not say", WITHOUT_ID.replace("tools/call", "tools/list"), code=-32020),
        Row("a method the headers do not say", CALL.replace("tools/call", "tools/list"), code=-32020, id=1),
        Row("a name the headers do not say", CALL.replace("touch", "produce"), code=-32020, id=1),
        Row("an id of text", with_id('"seven"').replace("touch", "produce"), code=-32020, id="seven"),
        Row("an empty id", with_id('""').replace("touch", "produce"), code=-32020, id=""),
        Row("an id of many digits", with_id("9" * 40).replace("touch", "produce"), code=-32020, id=int("9" * 40)),
    ]


MALFORMED = [
    *texts_that_are_no_json(),
    *repeated_keys(),
    *deep_nesting(),
    *invalid_numbers(),
    *invalid_unicode(),
    *other_messages(),
    *messages_without_an_id(),
    *other_content_types(),
    *foreign_origins(),
    *bodies_over_the_limit(),
    *headers_that_contradict_the_body(),
]

UNUSUAL: list[tuple[str, str, dict[str, str | None]]] = [  # valid requests: name, body, headers
    ("the call itself", CALL, {}),
    ("blanks around it", f" \r\n\t{CALL}\n ", {}),
    ("blanks inside", json.dumps(CALL_MESSAGE, indent=4), {}),
    ("all characters escaped", CALL.replace("touch", "".join(f"\\u{ord(c):04x}" for c in "touch")), {}),
    ("more members", CALL.replace('"id":1', '"id":1,"more":[1]'), {}),
    ("64 levels", with_argument("[" * 61 + "]" * 61), {}),
    ("brackets in a string", with_argument('"' + "[{" * 4_000 + '"'), {}),
    ("a wide list", with_argument("[" + ",".join(["[]"] * 4_000) + "]"), {}),
    ("a whole pair", with_argument(r'"\ud83d\udc22"'), {}),
    ("a NUL that is escaped", with_argument(r'"\u0000"'), {}),
    ("a number that only an integer holds", with_argument("9007199254740993"), {}),
    ("as many bytes as are allowed", " " * (LIMIT - len(CALL)) + CALL, {}),
    ("a charset", CALL, {"content-type": "application/json; charset=utf-8"}),
    ("capitals", CALL, {"content-type": "Application/JSON"}),
    ("no content type", CALL, {"content-type": None}),
    ("not compressed, and says so", CALL, {"content-encoding": "identity"}),
    ("no origin", CALL, {"origin": None}),
    ("an origin of the list", CALL, {"origin": "https://app.example"}),
    ("the other origin of the list", CALL, {"origin": "https://admin.example:8443"}),
    ("a host of its own", CALL, {"host": "mcp.example"}),
]


ACCEPT_HEADERS = [None, "", "*/*", "application/json", "text/event-stream", "text/html", "application/*;q=0.1"]
ACCEPT_HEADERS += ["application/json;q=0", "text/event-stream, application/json", "nonsense", ",,,"]


@pytest.fixture(scope="module", params=PLACEMENTS)
def function(request: pytest.FixtureRequest) -> LambdaFunction:
    placed = place(request.param, touch, produce)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MCP_MAX_BODY_BYTES", str(LIMIT))
        patch.setenv("MCP_ALLOWED_ORIGINS", ORIGINS)
        post(placed, as_text, CALL.encode())  # the first request reads the environment
    return placed


@pytest.fixture(autouse=True)
def _no_calls() -> None:
    calls.clear()


def as_text(request: HttpRequest) -> Event:
    return {**event_without_body(request), "body": request.body.decode(), "isBase64Encoded": False}


def as_base64(request: HttpRequest) -> Event:
    return {**event_without_body(request), "body": base64.b64encode(request.body).decode(), "isBase64Encoded": True}


def event_without_body(request: HttpRequest) -> Event:
    event = gateways.http_api(request.without("content-type"))
    return {**event, "headers": {name.lower(): value for name, value in request.headers}}


def post(
    function: LambdaFunction,
    write_event: Callable[[HttpRequest], Event],
    body: bytes,
    headers: dict[str, str | None] | None = None,
) -> dict[str, Any]:
    """Post a body to the function. The headers replace those of CALL; None removes one."""
    changes = headers or {}
    kept = [(name, value) for name, value in HEADERS if name.lower() not in changes]
    added = [(name, value) for name, value in changes.items() if value is not None]
    event = write_event(HttpRequest(body, (*kept, *added)))
    return function(json.loads(json.dumps(event)), wire.Context("local_all"))


def is_text(body: bytes) -> bool:
    try:
        return bool(body.decode()) or not body
    except UnicodeDecodeError:
        return False


def assert_error(response: dict[str, Any], *, status: int, code: int) -> None:
    (message,) = wire.messages(response)
    assert response["statusCode"] == status
    assert message["error"]["code"] == code


def rows(*, with_body: bool) -> list[Any]:
    """Return each malformed request, as base64 and, if it is text, as text; `with_body` of the response."""
    parameters = []
    for row in MALFORMED:
        if (row.code is not None) is with_body:
            parameters.append(pytest.param(row, as_base64, id=f"{row.name}, base64"))
            if is_text(row.raw):
                parameters.append(pytest.param(row, as_text, id=f"{row.name}, text"))
    return parameters


@pytest.mark.parametrize(("row", "write_event"), rows(with_body=True))
def test_every_malformed_request_gets_its_error_and_runs_nothing(
    row: Row, write_event: Callable[[HttpRequest], Event], function: LambdaFunction
) -> None:
    response = post(function, write_event, row.raw, row.headers)
    assert response["statusCode"] == row.status, response["body"]
    (message,) = wire.messages(response)
    assert message["error"]["code"] == row.code, message
    assert message.get("id", NO_ID) == row.id
    assert row.message in message["error"]["message"]
    assert SECRET not in response["body"]
    assert "Traceback" not in response["body"]
    assert calls == []


@pytest.mark.parametrize(("row", "write_event"), rows(with_body=False))
def test_a_notification_and_a_foreign_origin_get_only_a_status_and_run_nothing(
    row: Row, write_event: Callable[[HttpRequest], Event], function: LambdaFunction
) -> None:
    response = post(function, write_event, row.raw, row.headers)
    assert response["statusCode"] == row.status
    assert response["body"] == ""
    assert calls == []


@pytest.mark.parametrize(("body", "headers"), [pytest.param(body, headers, id=name) for name, body, headers in UNUSUAL])
@pytest.mark.parametrize("write_event", [as_text, as_base64])
def test_unusual_but_valid_requests_are_answered(
    body: str, headers: dict[str, str | None], write_event: Callable[[HttpRequest], Event], function: LambdaFunction
) -> None:
    response = post(function, write_event, body.encode(), headers)
    message = wire.read(response, "tools/call")
    assert message["result"]["content"] == [{"type": "text", "text": "touched"}]
    assert len(calls) == 1


@pytest.mark.parametrize("accept", ACCEPT_HEADERS)
def test_the_accept_header_does_not_matter(accept: str | None, function: LambdaFunction) -> None:
    response = post(function, as_text, CALL.encode(), {"accept": accept})
    assert response["statusCode"] == 200


@pytest.mark.parametrize(
    ("text", "id_"),
    [
        ('"1"', "1"),
        ('""', ""),
        ("-1", -1),
        ("1.0", 1),
        pytest.param("99999999999999999999999", 99999999999999999999999, id="more than 64 bits"),
    ],
)
def test_the_response_has_the_id_of_the_request(text: str, id_: str | int, function: LambdaFunction) -> None:
    response = post(function, as_text, with_id(text).encode())
    assert repr(wire.read(response, "tools/call")["id"]) == repr(id_)


FOUR_MEBIBYTES = 4 * 1024 * 1024
LARGEST_CALL = with_argument('"' + "x" * (FOUR_MEBIBYTES - len(with_argument('""'))) + '"').encode()
every_placement = pytest.mark.parametrize("placement", PLACEMENTS)


@every_placement
@pytest.mark.parametrize("write_event", [as_text, as_base64])
def test_a_function_reads_four_mebibytes_by_default(
    placement: str, write_event: Callable[[HttpRequest], Event]
) -> None:
    assert len(LARGEST_CALL) == FOUR_MEBIBYTES
    assert post(place(placement, touch), write_event, LARGEST_CALL)["statusCode"] == 200
    assert len(calls) == 1


@every_placement
@pytest.mark.parametrize("write_event", [as_text, as_base64])
def test_one_byte_more_is_refused_by_default(placement: str, write_event: Callable[[HttpRequest], Event]) -> None:
    response = post(place(placement, touch), write_event, LARGEST_CALL + b" ")
    assert_error(response, status=413, code=-32600)
    assert calls == []


@pytest.mark.parametrize("body", ["!", "e30", "é", "e30=\n", "e3 0="])
def test_invalid_base64_is_a_parse_error(body: str, function: LambdaFunction) -> None:
    event = {**as_text(HttpRequest(b"", HEADERS)), "body": body, "isBase64Encoded": True}
    assert_error(function(event, wire.Context("local_all")), status=400, code=-32700)


def test_half_of_a_surrogate_pair_in_the_event_is_a_parse_error(function: LambdaFunction) -> None:
    event = {**as_text(HttpRequest(b"", HEADERS)), "body": with_argument('"\ud800"')}
    assert_error(function(event, wire.Context("local_all")), status=400, code=-32700)
    assert calls == []


# --- Results over the limit of Lambda ---------------------------------------------------------------------------------


def call_produce(function: LambdaFunction, size: int, unit: str = "x", **options: Any) -> dict[str, Any]:  # noqa: ANN401
    message = wire.message("tools/call", {"name": "produce", "arguments": {"size": size, "unit": unit}}, **options)
    response = function(gateways.http_api(gateways.http_request(message)), wire.Context("local_all"))
    assert len(json.dumps(response).encode()) <= LAMBDA_BYTES
    return response


RESULT_TOO_LARGE_ERROR = {"code": -32603, "message": "The result is larger than this server can send (6 MB)"}


@every_placement
@pytest.mark.parametrize(
    ("size", "unit"),
    [
        (6 * 1024 * 1024, "x"),
        (40_000_000, "x"),
        (2_100_000, '"'),
        (1_600_000, "\\"),
        (950_000, "\x00"),
        (1_300_000, "é"),
    ],
)
def test_a_result_over_lambdas_limit_is_an_error_that_says_so(placement: str, size: int, unit: str) -> None:
    response = call_produce(place(placement, produce), size, unit)
    assert response["statusCode"] == 200
    assert wire.read(response, "tools/call") == {"jsonrpc": "2.0", "id": 1, "error": RESULT_TOO_LARGE_ERROR}


@every_placement
@pytest.mark.parametrize(("size", "unit"), [(6_000_000, "x"), (1_000_000, '"'), (900_000, "é"), (450_000, "🐢")])
def test_a_result_within_lambdas_limit_is_sent_whole(placement: str, size: int, unit: str) -> None:
    response = call_produce(place(placement, produce), size, unit)
    assert response["statusCode"] == 200
    assert wire.read(response, "tools/call")["result"]["content"][0]["text"] == size * unit


@every_placement
def test_a_stream_within_lambdas_limit_is_sent(placement: str) -> None:
    response = call_produce(place(placement, produce), 6_000_000, meta={"progressToken": "p"})
    assert response["headers"]["content-type"] == "text/event-stream"


@every_placement
def test_the_limit_holds_for_a_stream_with_all_its_messages(placement: str) -> None:
    response = call_produce(place(placement, produce), 6_300_000, meta={"progressToken": "p"})
    assert wire.read(response, "tools/call")["error"] == RESULT_TOO_LARGE_ERROR
