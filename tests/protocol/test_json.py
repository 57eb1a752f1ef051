"""JSON of a client is read strictly: what two readers could understand differently is a parse error.

`parse` reads one JSON-RPC message, as the gateway does; `json_reader.loads` reads any JSON. The last
test compares the reader with a second, slow reader, which is written here.
"""

from __future__ import annotations

import json
import math
import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from mcp_functions.protocol import json_reader, json_writer
from mcp_functions.protocol.errors import InvalidRequest, ParseError
from mcp_functions.protocol.messages import to_message

if TYPE_CHECKING:
    from collections.abc import Callable

REQUEST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {}}}

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=20
)


def parse(body: str | bytes) -> Any:  # noqa: ANN401 - JSON is any value
    """Read one message, as the gateway does."""
    return to_message(json_reader.loads(body))


def nested_lists(levels: int) -> str:
    return "[" * levels + "]" * levels


def test_all_members_of_a_request_are_read() -> None:
    assert parse(json.dumps(REQUEST)) == REQUEST


def test_bytes_are_read_as_utf_8() -> None:
    request = {**REQUEST, "params": {"text": "żółw 🐢"}}
    assert parse(json.dumps(request, ensure_ascii=False).encode()) == request


def test_a_notification_has_no_id() -> None:
    message = parse('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}')
    assert "id" not in message


def test_missing_params_are_an_empty_object() -> None:
    assert parse('{"jsonrpc":"2.0","id":1,"method":"ping"}')["params"] == {}


@pytest.mark.parametrize("id_", [0, -7, 2**70, "", "1", "ключ"])
def test_an_id_keeps_its_type(id_: str | int) -> None:
    message = parse(json.dumps({**REQUEST, "id": id_}))
    assert message["id"] == id_
    assert type(message["id"]) is type(id_)


@pytest.mark.parametrize("id_", ["null", "true", "1.5", "[]", "{}"])
def test_an_id_that_is_neither_a_string_nor_an_integer_is_refused(id_: str) -> None:
    with pytest.raises(InvalidRequest, match="must be a string of at most 8192 characters, or an integer") as caught:
        parse('{"jsonrpc":"2.0","method":"x","id":' + id_ + "}")
    assert caught.value.id is None


def test_an_array_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="not an array"):
        parse(json.dumps([REQUEST]))


@pytest.mark.parametrize("member", ['"result":{}', '"error":{"code":1,"message":"x"}'])
def test_a_response_is_refused(member: str) -> None:
    with pytest.raises(InvalidRequest, match="takes no responses"):
        parse('{"jsonrpc":"2.0","id":1,' + member + "}")


@pytest.mark.parametrize(
    "body", ["1", '"x"', "null", "true", "{}", '{"jsonrpc":"2.0"}', '{"method":"x"}', '{"jsonrpc":2.0,"method":"x"}']
)
def test_other_json_is_an_invalid_request(body: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse(body)
    assert caught.value.id is None


@pytest.mark.parametrize(
    "body",
    [
        '{"jsonrpc":"1.0","id":"a","method":"x"}',
        '{"jsonrpc":"1.0","id":"a","method":"x","error":null}',
        '{"jsonrpc":"2.0","id":"a"}',
        '{"jsonrpc":"2.0","id":"a","method":7}',
        '{"jsonrpc":"2.0","id":"a","method":"x","params":[1]}',
        '{"jsonrpc":"2.0","id":"a","method":"x","params":null}',
    ],
)
def test_the_error_for_an_invalid_request_has_its_id(body: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse(body)
    assert caught.value.id == "a"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"{'a':1}",
        b'{"a":1,}',
        b'{"a":1} {"a":1}',
        b'{"a":01}',
        b'{"a":+1}',
        pytest.param(b'{"a":"\x00"}', id="a control character"),
        pytest.param(b'\xef\xbb\xbf{"a":1}', id="a byte order mark"),
        pytest.param(b'{"a":"\xff"}', id="no UTF-8"),
        pytest.param(b'{"a":"\xed\xa0\x80"}', id="half of a surrogate pair in UTF-8"),
    ],
)
def test_text_that_is_not_json_in_utf_8_is_a_parse_error(body: bytes) -> None:
    with pytest.raises(ParseError):
        json_reader.loads(body)


@pytest.mark.parametrize(
    "body",
    [
        '{"a":1,"a":1}',
        '{"b":{"a":1,"a":2}}',
        '[{"a":1,"a":2}]',
        pytest.param(r'{"a":1,"\u0061":2}', id="an escaped key"),
        # Colons in strings: the reader counts colons to find repeated keys.
        r'{"a":1,"\u0061":"\u003a"}',
        '{"a":":","a":2}',
        '["x:",{"a":1,"b":{"a":":","a":1}}]',
    ],
)
def test_a_repeated_key_is_refused(body: str) -> None:
    with pytest.raises(ParseError, match="twice"):
        json_reader.loads(body)


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "[NaN]"])
def test_nan_and_infinity_are_not_json(word: str) -> None:
    with pytest.raises(ParseError, match="not JSON"):
        json_reader.loads(word)


@pytest.mark.parametrize("number", ["1e400", "-1e400", "9" * 310, "-" + "9" * 310, "[1" + "0" * 309 + "]"])
def test_a_number_too_large_for_a_double_is_refused(number: str) -> None:
    with pytest.raises(ParseError, match="too large"):
        json_reader.loads(number)


@pytest.mark.parametrize("number", [2**53 + 1, int(sys.float_info.max)], ids=["no double has it", "the largest"])
def test_an_integer_is_exact(number: int) -> None:
    assert json_reader.loads(str(number)) == number


def test_a_string_may_have_more_digits_than_a_number() -> None:
    assert json_reader.loads(json.dumps("9" * 5000)) == "9" * 5000


def test_an_integer_of_more_digits_than_python_reads_is_a_parse_error() -> None:
    with pytest.raises(ParseError):
        json_reader.loads("9" * 5000)


@pytest.mark.parametrize(
    ("text", "value"), [("1.0", 1), ("1e3", 1000), ("-0.0", 0), ("9007199254740992.0", 2**53), ("12300e-2", 123)]
)
def test_a_number_without_a_fraction_is_an_int(text: str, value: int) -> None:
    number = json_reader.loads(text)
    assert number == value
    assert type(number) is int


@pytest.mark.parametrize("text", ["1.5", "1e300", "-2.5e-3"])
def test_a_fraction_or_a_number_beyond_2_to_the_53_stays_a_float(text: str) -> None:
    number = json_reader.loads(text)
    assert number == float(text)
    assert type(number) is float


def nested_objects(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


@pytest.mark.parametrize("nested", [nested_lists, nested_objects])
def test_64_levels_are_read_and_65_are_not(nested: Callable[[int], str]) -> None:
    assert json_reader.loads(nested(64))
    with pytest.raises(ParseError, match="deeper than 64"):
        json_reader.loads(nested(65))


@pytest.mark.parametrize("levels", [1000, 200_000])
def test_nesting_deeper_than_pythons_stack_is_a_parse_error(levels: int) -> None:
    with pytest.raises(ParseError):
        json_reader.loads(nested_lists(levels))


def test_many_brackets_side_by_side_are_not_nesting() -> None:
    assert len(json_reader.loads("[" + ",".join(["[]"] * 500) + "]")) == 500


@pytest.mark.parametrize("text", [r'"\ud800"', r'"\uDC00"', r'{"\udfff":1}', '"\ud800"', r'["\ud83d"]'])
def test_half_of_a_surrogate_pair_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        json_reader.loads(text)


@pytest.mark.parametrize(("text", "value"), [(r'"\ud83d\udc22"', "🐢"), (r'"\\ud800"', r"\ud800")])
def test_a_whole_surrogate_pair_and_an_escaped_backslash_are_text(text: str, value: str) -> None:
    assert json_reader.loads(text) == value


def test_a_parse_error_does_not_quote_the_text() -> None:
    with pytest.raises(ParseError) as caught:
        json_reader.loads('{"password": hunter2}')
    assert "hunter2" not in f"{caught.value} {caught.value.reason} {caught.value.__cause__}"


def test_json_is_written_on_one_line_without_blanks() -> None:
    assert json_writer.dumps({"a": [1, "ż\n"], "b": None}) == '{"a":[1,"ż\\n"],"b":null}'


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [float("-inf")]])
def test_nan_is_not_written(value: object) -> None:
    with pytest.raises(ValueError, match="JSON"):
        json_writer.dumps(value)


@pytest.mark.parametrize("write", [json_writer.dumps, json_writer.dumps_ascii, json_writer.dumps_sorted])
def test_a_value_that_contains_itself_is_not_written(write: Callable[[object], object]) -> None:
    value: list[object] = []
    value.append({"again": value})
    with pytest.raises(ValueError, match="too deep"):
        write(value)


@given(st.dictionaries(st.text(), VALUES), st.text(), VALUES)
def test_an_object_may_be_written_with_a_last_member_that_is_json_already(
    members: Any,  # noqa: ANN401
    name: str,
    value: object,
) -> None:
    members.pop(name, None)
    assume(members)
    assert json_writer.dumps_with_member(members, name, json_writer.dumps(value)) == json_writer.dumps(
        {**members, name: value}
    )


@given(VALUES)
def test_the_reader_returns_the_value_that_was_written(value: object) -> None:
    assert json_reader.loads(json_writer.dumps(value)) == value


@given(st.binary() | st.text().map(str.encode) | VALUES.map(lambda value: json.dumps(value).encode()))
def test_every_body_is_a_message_or_an_error_of_the_protocol(body: bytes) -> None:
    try:
        message = parse(body)
    except (ParseError, InvalidRequest):
        return
    assert message["jsonrpc"] == "2.0"


# Texts that no writer writes: repeated or escaped keys, blanks anywhere, colons and quotes in strings, wrong ends.
BLANKS = st.sampled_from(["", "", "", " ", "\n\t", "\r "])
NUMBERS = st.sampled_from(["0", "-0", "-0.0", "7", "1.0", "1e3", "2.5", "1e400", "-1e999", "9" * 308, "9" * 309, "NaN"])
CHARACTERS = st.sampled_from(
    ["a", "b", ":", "{", "[", ",", '\\"', "\\\\", "\\n", r"\u0061", r"\u003a", r"\u003A", "ż", r"\ud800"]
)
STRINGS = st.lists(CHARACTERS, max_size=3).map(lambda characters: f'"{"".join(characters)}"')
KEYS = st.sampled_from(['"a"', r'"\u0061"', '"b"', '":"', r'"\u003a"', r'"\":"', r'"a\\"', '""']) | STRINGS
ENDS = st.sampled_from(["", "", "", "", "}", " 1", ",", '"a":1', ":"])


def lists_and_objects(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    item = st.tuples(BLANKS, inner, BLANKS).map("".join)
    member = st.tuples(BLANKS, KEYS, BLANKS, st.just(":"), item).map("".join)
    lists = st.lists(item, max_size=3).map(lambda items: f"[{','.join(items)}]")
    objects = st.lists(member, max_size=3).map(lambda members: f"{{{','.join(members)}}}")
    return lists | objects


TEXTS = st.recursive(NUMBERS | STRINGS | st.just("null"), lists_and_objects, max_leaves=12)


def read_strictly(text: str) -> object:
    """Read JSON by the same rules, with the hooks of the standard library.

    Raises:
        ValueError: the text breaks a rule.
    """
    value = json.loads(
        text, object_pairs_hook=_object, parse_float=_number, parse_int=_number, parse_constant=_refuse_constant
    )
    json.dumps(value, ensure_ascii=False).encode()  # fails if half of a surrogate pair is in it
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError(pairs)
    return members


def _number(text: str) -> int | float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(text)
    if text.lstrip("-").isdecimal():
        return int(text)
    if value.is_integer() and abs(value) <= 2**53:
        return int(value)
    return value


def _refuse_constant(text: str) -> None:
    raise ValueError(text)


@given(st.tuples(TEXTS, ENDS).map("".join))
@example(r'{"a":1,"\u0061":"\u003a"}')
@example('{"a" : 1, "a": ":"}')
@example(r'{"a":{"b":1,"c":2},"a":"::"}')
@example('{"a":":","a":":"}')
@example('[{"a":1,"b":":"},{"a":{"b":1}}]')
def test_the_reader_agrees_with_the_second_reader(text: str) -> None:
    try:
        expected = read_strictly(text)
    except ValueError:
        with pytest.raises(ParseError):
            json_reader.loads(text)
    else:
        assert repr(json_reader.loads(text)) == repr(expected)
