"""Malformed requests: one row for each kind, with the status and the code of the response.

Every row is posted to a handler's Lambda and to the front door before it, as text and as base64. The tool counts its
calls: a request that is refused, or has no id, must not run it.

No `from __future__ import annotations` here, because most authors' modules have none.
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
from tests.support.gateways import Event, Sent
from tests.support.placements import PLACEMENTS, place

LIMIT = 20_000  # bytes of a body, small here so that a row can be over it
ORIGINS = "https://app.example,https://admin.example:8443"
SECRET = "hunter2"  # noqa: S105 - planted, so that an answer that quotes can be caught
LAMBDA_BYTES = 6 * 1024 * 1024
NO_ID: Any = ...

ran: list[object] = []


@tool
def touch(mark: Any = None) -> str:  # noqa: ANN401 - any JSON
    """Leave a mark."""
    ran.append(mark)
    return "touched"


@tool
def produce(size: int, unit: str = "x", *, progress: Progress) -> str:
    """Return a long text."""
    progress(1, message="soon")
    return unit * size


MESSAGE = wire.message("tools/call", {"name": "touch", "arguments": {"mark": SECRET}})
CALL = json.dumps(MESSAGE, separators=(",", ":"))
HEADERS = gateways.sent(MESSAGE).headers


def mark(json_text: str) -> str:
    """Write the call with raw JSON for its argument."""
    return CALL.replace(f'"{SECRET}"', json_text)


def id_(json_text: str) -> str:
    """Write the call with raw JSON for its id."""
    return CALL.replace('"id":1', f'"id":{json_text}')


WITHOUT_ID = CALL.replace('"id":1,', "")
assert all(SECRET in text for text in (id_("2"), WITHOUT_ID))
assert mark("0") != CALL != id_("2")


@dataclass(frozen=True)
class Row:
    """A body and headers, and what comes back: a status, an error's code if there is one, and its id if it was read."""

    name: str
    body: str | bytes = CALL
    status: int = 400
    code: int | None = -32700
    id: Any = NO_ID
    headers: dict[str, str | None] = field(default_factory=dict)
    says: str = ""

    @property
    def raw(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else self.body.encode()


def not_json() -> list[Row]:
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
        "a NUL in a string": mark('"\x00"'),
        "a line break in a string": mark('"\n"'),
        "a bad escape": mark(r'"\x41"'),
        "half an escape": mark(r'"\u00"'),
        "an octal number": mark("010"),
        "a plus sign": mark("+1"),
        "a hexadecimal number": mark("0x10"),
        "True": mark("True"),
    }
    return [Row(name, text) for name, text in texts.items()]


def ambiguous() -> list[Row]:
    texts = {
        "the id twice": id_('1,"id":2'),
        "the same id twice": id_('1,"id":1'),
        "the method twice": CALL.replace('"method":', '"method":"tools/list","method":'),
        "the params twice": CALL.replace('"params":', '"params":{},"params":'),
        "the name twice": CALL.replace('"name":', '"name":"produce","name":'),
        "the arguments twice": CALL.replace('"arguments":', '"arguments":{},"arguments":'),
        "an argument twice": mark('1,"mark":2'),
        "a key twice deep inside": mark('[{"a":[{"b":1,"b":2}]}]'),
        "a key twice in two spellings": mark(r'1,"\u006dark":2'),
        "_meta twice": CALL.replace('"_meta":', '"_meta":{},"_meta":'),
    }
    return [Row(name, text, says="A JSON object holds the same key twice") for name, text in texts.items()]


def bombs() -> list[Row]:
    texts = {
        "open brackets": "[" * 10_000,
        "open braces": '{"a":' * 3_000,
        "balanced brackets": "[" * 9_000 + "]" * 9_000,
        "balanced braces": '{"a":' * 3_000 + "1" + "}" * 3_000,
        "a deep argument": mark("[" * 9_000 + "]" * 9_000),
        "a deep object as argument": mark('{"a":' * 2_500 + "1" + "}" * 2_500),
        "65 levels": mark("[" * 62 + "]" * 62),
        "a deep id": id_("[" * 9_000 + "]" * 9_000),
        "brackets and braces in turn": mark('[{"a":' * 1_000 + "1" + "}]" * 1_000),
    }
    return [Row(name, text) for name, text in texts.items()]


def numbers() -> list[Row]:
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
    rows = [Row(name, mark(text)) for name, text in texts.items()]
    return [*rows, *(Row(f"{name} as id", id_(text)) for name, text in texts.items())]


def not_unicode() -> list[Row]:
    rows = {
        "the first half of a pair": mark(r'"\ud800"'),
        "the second half of a pair": mark(r'"\udc00"'),
        "two halves in the wrong order": mark(r'"\udc22\ud83d"'),
        "half a pair in a key": mark(r'{"\ud800":1}'),
        "half a pair in a name": CALL.replace('"name":"touch"', r'"name":"\ud800"'),
        "half a pair in an id": id_(r'"\ud800"'),
        "half a pair in _meta": CALL.replace('"_meta":{', r'"_meta":{"a":"\ud800",'),
    }
    raw = {
        "half a pair in UTF-8": mark('"?"').encode().replace(b"?", b"\xed\xa0\x80"),
        "a byte that UTF-8 never has": mark('"?"').encode().replace(b"?", b"\xff"),
        "Latin-1": mark('"é"').encode("latin-1"),
        "an overlong slash": mark('"?"').encode().replace(b"?", b"\xc0\xaf"),
        "a character cut in half": mark('"é"').encode().replace(b"\xa9", b""),
        "UTF-16": CALL.encode("utf-16"),
        "UTF-32": CALL.encode("utf-32"),
        "gzip": base64.b64decode("H4sIAAAAAAAAA6uuBQBDv6ajAgAAAA=="),
    }
    return [*(Row(name, text) for name, text in rows.items()), *(Row(name, body) for name, body in raw.items())]


def not_a_request() -> list[Row]:
    bodies = {
        "null": "null",
        "true": "true",
        "a number": "1",
        "a string": f'"{SECRET}"',
        "an empty object": "{}",
        "an empty batch": "[]",
        "a batch of one": f"[{CALL}]",
        "a batch of two": f"[{CALL},{CALL}]",
        "a batch of notifications": f"[{WITHOUT_ID}]",
        "a result": '{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}',
        "an error": '{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no"}}',
        "an error without an id": '{"jsonrpc":"2.0","error":{"code":-32603,"message":"no"}}',
        "an error with a null id": '{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"no"}}',
        "a null id": id_("null"),
        "true as id": id_("true"),
        "false as id": id_("false"),
        "a fraction as id": id_("1.5"),
        "a list as id": id_("[1]"),
        "an object as id": id_("{}"),
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


def without_an_id() -> list[Row]:
    cancelling: dict[str, str | None] = {"mcp-method": "notifications/cancelled", "mcp-name": None}
    bodies: dict[str, tuple[str, dict[str, str | None]]] = {
        "a call without an id": (WITHOUT_ID, {}),
        "a call without an id or headers": (WITHOUT_ID, {"mcp-method": None, "mcp-name": None}),
        "a call without an id or _meta": ('{"jsonrpc":"2.0","method":"tools/call","params":{"name":"touch"}}', {}),
        "a call without an id that says text": (WITHOUT_ID, {"content-type": "text/plain"}),
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


def other_media() -> list[Row]:
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


def too_large() -> list[Row]:
    bodies: dict[str, str | bytes] = {
        "one byte too many": " " * (LIMIT + 1 - len(CALL)) + CALL,
        "too many bytes, in few characters": mark('"' + "é" * (LIMIT // 2) + '"'),
        "far too much": mark('"' + "x" * LIMIT * 5 + '"'),
        "a bomb that is too large to be looked at": "[" * LIMIT * 3,
        "garbage that is too large to be looked at": b"\xff" * (LIMIT + 1),
        "a notification that is too large": WITHOUT_ID.replace(SECRET, "x" * LIMIT),
    }
    return [Row(name, body, 413, -32600, says="Request body too large") for name, body in bodies.items()]


def other_disagreements() -> list[Row]:
    empty = '{"jsonrpc":"2.0","id":1,"method":"tools/call"}'
    return [
        Row("no params", empty, code=-32602, id=1),
        Row("an empty method", CALL.replace('"tools/call"', '""'), code=-32020, id=1),
        Row("a notification the headers do not say", WITHOUT_ID.replace("tools/call", "tools/list"), code=-32020),
        Row("a method the headers do not say", CALL.replace("tools/call", "tools/list"), code=-32020, id=1),
        Row("a name the headers do not say", CALL.replace("touch", "produce"), code=-32020, id=1),
        Row("an id of text", id_('"seven"').replace("touch", "produce"), code=-32020, id="seven"),
        Row("an empty id", id_('""').replace("touch", "produce"), code=-32020, id=""),
        Row("an id of many digits", id_("9" * 40).replace("touch", "produce"), code=-32020, id=int("9" * 40)),
    ]


DIRT = [
    *not_json(),
    *ambiguous(),
    *bombs(),
    *numbers(),
    *not_unicode(),
    *not_a_request(),
    *without_an_id(),
    *other_media(),
    *foreign_origins(),
    *too_large(),
    *other_disagreements(),
]

# Unusual but valid requests: name, body, headers.
FINE: list[tuple[str, str, dict[str, str | None]]] = [
    ("the call itself", CALL, {}),
    ("blanks around it", f" \r\n\t{CALL}\n ", {}),
    ("blanks inside", json.dumps(MESSAGE, indent=4), {}),
    ("all characters escaped", CALL.replace("touch", "".join(f"\\u{ord(c):04x}" for c in "touch")), {}),
    ("more members", CALL.replace('"id":1', '"id":1,"more":[1]'), {}),
    ("an id of text", id_('"1"'), {}),
    ("an empty id", id_('""'), {}),
    ("a negative id", id_("-1"), {}),
    ("an id beyond 64 bits", id_("99999999999999999999999"), {}),
    ("an integer that is written as a fraction", id_("1.0"), {}),
    ("64 levels", mark("[" * 61 + "]" * 61), {}),
    ("brackets in a string", mark('"' + "[{" * 4_000 + '"'), {}),
    ("a wide list", mark("[" + ",".join(["[]"] * 4_000) + "]"), {}),
    ("a whole pair", mark(r'"\ud83d\udc22"'), {}),
    ("a NUL that is escaped", mark(r'"\u0000"'), {}),
    ("a number that only an integer holds", mark("9007199254740993"), {}),
    ("as many bytes as are allowed", " " * (LIMIT - len(CALL)) + CALL, {}),
    ("a charset", CALL, {"content-type": "application/json; charset=utf-8"}),
    ("capitals", CALL, {"content-type": "Application/JSON"}),
    ("no content type", CALL, {"content-type": None}),
    ("not compressed, and says so", CALL, {"content-encoding": "identity"}),
    *(
        (f"accepts {accept!r}", CALL, {"accept": accept})
        for accept in (
            *(None, "", "*/*", "application/json", "text/event-stream", "text/html", "application/*;q=0.1", "nonsense"),
            *("application/json;q=0", "text/event-stream, application/json", ",,,"),
        )
    ),
    ("no origin", CALL, {"origin": None}),
    ("an origin of the list", CALL, {"origin": "https://app.example"}),
    ("the other origin of the list", CALL, {"origin": "https://admin.example:8443"}),
    ("a host of its own", CALL, {"host": "mcp.example"}),
]


@pytest.fixture(scope="module", params=PLACEMENTS)
def function(request: pytest.FixtureRequest) -> LambdaFunction:
    placed = place(request.param, touch, produce)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MCP_MAX_BODY_BYTES", str(LIMIT))
        patch.setenv("MCP_ALLOWED_ORIGINS", ORIGINS)
        post(placed, text, CALL.encode())  # which reads the environment
    return placed


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


def text(request: Sent) -> Event:
    return {**gateways.http_api(request.without("content-type")), **in_text(request.body), **named(request)}


def binary(request: Sent) -> Event:
    body = {"body": base64.b64encode(request.body).decode(), "isBase64Encoded": True}
    return {**gateways.http_api(request.without("content-type")), **body, **named(request)}


def in_text(body: bytes) -> Event:
    return {"body": body.decode(), "isBase64Encoded": False}


def named(request: Sent) -> Event:
    return {"headers": {name.lower(): value for name, value in request.headers}}


def post(
    function: LambdaFunction,
    carried: Callable[[Sent], Event],
    body: bytes,
    headers: dict[str, str | None] | None = None,
) -> dict[str, Any]:
    changes = headers or {}
    kept = [(name, value) for name, value in HEADERS if name.lower() not in changes]
    added = [(name, value) for name, value in changes.items() if value is not None]
    event = carried(Sent(body, (*kept, *added)))
    return function(json.loads(json.dumps(event)), wire.Context("local-all"))


def is_text(body: bytes) -> bool:
    try:
        return bool(body.decode()) or not body
    except UnicodeDecodeError:
        return False


CARRIED = [(row, carried) for row in DIRT for carried in (text, binary) if carried is binary or is_text(row.raw)]


@pytest.mark.parametrize(("row", "carried"), CARRIED, ids=[f"{row.name}, {c.__name__}" for row, c in CARRIED])
def test_every_malformed_request_gets_its_error_and_runs_nothing(
    row: Row, carried: Callable[[Sent], Event], function: LambdaFunction
) -> None:
    response = post(function, carried, row.raw, row.headers)
    assert ran == []
    assert response["statusCode"] == row.status, response["body"]
    assert SECRET not in response["body"]
    assert "Traceback" not in response["body"]
    if row.code is None:
        assert response["body"] == ""
        return
    (message,) = wire.messages(response)
    assert message["error"]["code"] == row.code, message
    assert message.get("id", NO_ID) == row.id
    assert row.says in message["error"]["message"]


@pytest.mark.parametrize(("body", "headers"), [(b, h) for _n, b, h in FINE], ids=[name for name, _b, _h in FINE])
@pytest.mark.parametrize("carried", [text, binary])
def test_unusual_but_valid_requests_are_answered(
    body: str, headers: dict[str, str | None], carried: Callable[[Sent], Event], function: LambdaFunction
) -> None:
    response = post(function, carried, body.encode(), headers)
    assert response["statusCode"] == 200, response["body"]
    message = wire.read(response, "tools/call")
    assert message["result"]["content"] == [{"type": "text", "text": "touched"}]
    assert len(ran) == 1
    sent_id = json.loads(body)["id"]
    assert (message["id"], type(message["id"])) == (int(sent_id) if isinstance(sent_id, float) else sent_id, IDS[body])


IDS = {body: str if isinstance(json.loads(body)["id"], str) else int for _name, body, _headers in FINE}


def test_no_row_is_repeated() -> None:
    names = [row.name for row in DIRT]
    assert sorted({name for name in names if names.count(name) > 1}) == []


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_a_function_reads_four_megabytes_unless_it_is_configured_otherwise(placement: str) -> None:
    placed = place(placement, touch)
    limit = 4 * 1024 * 1024
    fits = mark('"' + "x" * (limit - len(mark('""'))) + '"').encode()
    assert len(fits) == limit
    assert post(placed, text, fits)["statusCode"] == 200
    assert post(placed, binary, fits)["statusCode"] == 200
    assert len(ran) == 2
    for carried in (text, binary):
        response = post(placed, carried, fits + b" ")
        assert (response["statusCode"], wire.messages(response)[0]["error"]["code"]) == (413, -32600)
    assert len(ran) == 2


def test_invalid_base64_is_a_parse_error(function: LambdaFunction) -> None:
    for body in ("!", "e30", "é", "e30=\n", "e3 0="):
        event = {**text(Sent(b"", HEADERS)), "body": body, "isBase64Encoded": True}
        response = function(event, wire.Context("local-all"))
        assert (response["statusCode"], wire.messages(response)[0]["error"]["code"]) == (400, -32700)


def test_half_a_pair_in_the_event_itself_is_a_parse_error(function: LambdaFunction) -> None:
    event = {**text(Sent(b"", HEADERS)), "body": mark('"\ud800"'), "isBase64Encoded": False}
    response = function(event, wire.Context("local-all"))
    assert (response["statusCode"], wire.messages(response)[0]["error"]["code"]) == (400, -32700)
    assert ran == []


# --- too much to say ----------------------------------------------------------------------------------------------


def produced(placed: LambdaFunction, size: int, unit: str = "x", **options: Any) -> dict[str, Any]:  # noqa: ANN401
    sent = wire.message("tools/call", {"name": "produce", "arguments": {"size": size, "unit": unit}}, **options)
    response = placed(gateways.http_api(gateways.sent(sent)), wire.Context("local-all"))
    assert len(json.dumps(response).encode()) <= LAMBDA_BYTES
    return response


TOO_LARGE = {"code": -32603, "message": "The result is larger than this server can send (6 MB)"}


@pytest.mark.parametrize("placement", PLACEMENTS)
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
    response = produced(place(placement, produce), size, unit)
    assert response["statusCode"] == 200
    assert wire.read(response, "tools/call") == {"jsonrpc": "2.0", "id": 1, "error": TOO_LARGE}


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize(("size", "unit"), [(6_000_000, "x"), (1_000_000, '"'), (900_000, "é"), (450_000, "🐢")])
def test_a_result_within_lambdas_limit_is_sent_whole(placement: str, size: int, unit: str) -> None:
    response = produced(place(placement, produce), size, unit)
    assert response["statusCode"] == 200
    assert wire.read(response, "tools/call")["result"]["content"][0]["text"] == size * unit


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_a_stream_is_measured_as_a_whole(placement: str) -> None:
    meta = {"progressToken": "p"}
    response = produced(place(placement, produce), 6_000_000, meta=meta)
    assert response["headers"]["content-type"] == "text/event-stream"
    response = produced(place(placement, produce), 6_300_000, meta=meta)
    assert wire.read(response, "tools/call")["error"] == TOO_LARGE
