"""Text to one message: what a stranger may send, and everything that two readers could understand differently."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcp_functions.protocol import json_reader, json_writer
from mcp_functions.protocol.errors import InvalidRequest, ParseError
from mcp_functions.protocol.messages import to_message

REQUEST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {}}}

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=20
)

# Texts as no writer writes them: keys that come twice or in other escapes, blanks anywhere, colons and quotes in them.
blanks = st.sampled_from(["", "", "", " ", "\n\t", "\r "])
numbers = st.sampled_from(["0", "-0", "-0.0", "7", "1.0", "1e3", "2.5", "1e400", "-1e999", "9" * 308, "9" * 309, "NaN"])
letters = st.sampled_from(
    ["a", "b", ":", "{", "[", ",", '\\"', "\\\\", "\\n", r"\u0061", r"\u003a", r"\u003A", "ż", r"\ud800"]
)
strings = st.lists(letters, max_size=3).map(lambda found: f'"{"".join(found)}"')
keys = st.sampled_from(['"a"', r'"\u0061"', '"b"', '":"', r'"\u003a"', r'"\":"', r'"a\\"', '""']) | strings


def parse(body: str | bytes) -> Any:  # noqa: ANN401 - JSON is any value
    """Read one message, as the gateway does."""
    return to_message(json_reader.loads(body))


def spaced(*parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Write parts with blanks between them."""
    return st.tuples(*(part for both in zip(parts, [blanks] * len(parts), strict=True) for part in both)).map("".join)


def bracketed(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Write lists and objects of inner texts."""
    colon = st.just(":")
    members = st.lists(spaced(blanks, keys, colon, inner), max_size=3).map(",".join)
    items = st.lists(spaced(blanks, inner), max_size=3).map(",".join)
    return members.map(lambda text: f"{{{text}}}") | items.map(lambda text: f"[{text}]")


scraps = st.sampled_from(["", "", "", "", "}", " 1", ",", '"a":1', ":"])
texts = st.builds(str.__add__, st.recursive(numbers | strings | st.just("null"), bracketed, max_leaves=12), scraps)


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


def test_a_request_is_read_whole() -> None:
    assert parse(json.dumps(REQUEST)) == REQUEST


def test_bytes_are_read_as_utf_8() -> None:
    sent = {**REQUEST, "params": {"text": "żółw 🐢"}}
    assert parse(json.dumps(sent, ensure_ascii=False).encode()) == sent


def test_a_notification_has_no_id() -> None:
    read = parse('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}')
    assert "id" not in read


def test_params_may_be_left_out() -> None:
    assert parse('{"jsonrpc":"2.0","id":1,"method":"ping"}')["params"] == {}


@pytest.mark.parametrize("id_", [0, -7, 2**70, "", "1", "ключ"])
def test_an_id_keeps_its_type(id_: str | int) -> None:
    read: Any = parse(json.dumps({**REQUEST, "id": id_}))
    assert read["id"] == id_
    assert type(read["id"]) is type(id_)


@pytest.mark.parametrize("id_", ["null", "true", "1.5", "[]", "{}"])
def test_an_id_is_a_string_or_an_integer(id_: str) -> None:
    with pytest.raises(InvalidRequest, match="must be a string or an integer") as caught:
        parse('{"jsonrpc":"2.0","method":"x","id":' + id_ + "}")
    assert caught.value.id is None


def test_null_is_an_invalid_id_and_not_a_notification() -> None:
    with pytest.raises(InvalidRequest):
        parse('{"jsonrpc":"2.0","method":"x","id":null,"params":{}}')


def test_a_batch_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="Batches"):
        parse(json.dumps([REQUEST]))


@pytest.mark.parametrize("member", ['"result":{}', '"error":{"code":1,"message":"x"}'])
def test_a_response_is_refused(member: str) -> None:
    with pytest.raises(InvalidRequest, match="takes no responses"):
        parse('{"jsonrpc":"2.0","id":1,' + member + "}")


@pytest.mark.parametrize(
    "body",
    ["1", '"x"', "null", "true", "{}", '{"jsonrpc":"2.0"}', '{"method":"x"}', '{"jsonrpc":2.0,"method":"x"}'],
)
def test_other_json_is_not_a_request(body: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse(body)
    assert caught.value.id is None


@pytest.mark.parametrize(
    "body",
    [
        '{"jsonrpc":"1.0","id":"a","method":"x"}',
        '{"jsonrpc":"2.0","id":"a"}',
        '{"jsonrpc":"2.0","id":"a","method":7}',
        '{"jsonrpc":"2.0","id":"a","method":"x","params":[1]}',
        '{"jsonrpc":"2.0","id":"a","method":"x","params":null}',
    ],
)
def test_a_refusal_names_the_id_if_there_is_one(body: str) -> None:
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
        b'{"a":"\x00"}',
        b'\xef\xbb\xbf{"a":1}',
        b'{"a":"\xff"}',
        b'{"a":"\xed\xa0\x80"}',
    ],
)
def test_text_that_is_not_json_in_utf_8_is_a_parse_error(body: bytes) -> None:
    with pytest.raises(ParseError):
        json_reader.loads(body)


@pytest.mark.parametrize("body", ['{"a":1,"a":1}', '{"b":{"a":1,"a":2}}', r'{"a":1,"\u0061":2}', '[{"a":1,"a":2}]'])
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


def test_a_number_that_a_double_may_come_near_is_exact() -> None:
    largest = int(sys.float_info.max)
    assert json_reader.loads(str(largest)) == largest
    assert json_reader.loads(json.dumps("9" * 5000)) == "9" * 5000


def test_an_integer_of_more_digits_than_python_reads_is_a_parse_error() -> None:
    with pytest.raises(ParseError):
        json_reader.loads("9" * 5000)


@pytest.mark.parametrize(
    ("text", "value"),
    [("1.0", 1), ("1e3", 1000), ("-0.0", 0), ("9007199254740992.0", 2**53), ("12300e-2", 123)],
)
def test_a_number_without_a_fraction_is_an_int(text: str, value: int) -> None:
    read = json_reader.loads(text)
    assert read == value
    assert type(read) is int


@pytest.mark.parametrize("text", ["1.5", "1e300", "-2.5e-3"])
def test_a_fraction_or_a_number_beyond_2_to_the_53_stays_a_float(text: str) -> None:
    read = json_reader.loads(text)
    assert read == float(text)
    assert type(read) is float


def test_an_integer_is_exact_however_large() -> None:
    assert json_reader.loads("9007199254740993") == 2**53 + 1


def test_64_levels_are_read_and_65_are_not() -> None:
    text = '["x",%s]'
    assert json_reader.loads(text % nested(63))
    assert json_reader.loads(text % ('{"a":' * 31 + nested(32) + "}" * 31))
    with pytest.raises(ParseError, match="deeper than 64"):
        json_reader.loads(text % nested(64))
    with pytest.raises(ParseError, match="deeper than 64"):
        json_reader.loads(text % ('{"a":' * 32 + nested(32) + "}" * 32))


@pytest.mark.parametrize("levels", [1000, 200_000])
def test_the_deepest_nesting_is_only_a_parse_error(levels: int) -> None:
    with pytest.raises(ParseError):
        json_reader.loads(nested(levels))


def test_a_wide_value_is_not_a_deep_one() -> None:
    assert len(json_reader.loads("[" + ",".join(["[]"] * 500) + "]")) == 500


@pytest.mark.parametrize("text", [r'"\ud800"', r'"\uDC00"', r'{"\udfff":1}', '"\ud800"', r'["\ud83d"]'])
def test_half_of_a_surrogate_pair_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        json_reader.loads(text)


@pytest.mark.parametrize(("text", "value"), [(r'"\ud83d\udc22"', "🐢"), (r'"\\ud800"', r"\ud800")])
def test_a_whole_pair_and_an_escaped_backslash_are_text(text: str, value: str) -> None:
    assert json_reader.loads(text) == value


def test_a_parse_error_omits_the_text() -> None:
    with pytest.raises(ParseError) as caught:
        json_reader.loads('{"password": hunter2}')
    assert "hunter2" not in f"{caught.value} {caught.value.reason} {caught.value.__cause__}"


def test_a_written_message_is_one_line_without_blanks() -> None:
    assert json_writer.dumps({"a": [1, "ż\n"], "b": None}) == '{"a":[1,"ż\\n"],"b":null}'


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [float("-inf")]])
def test_nan_is_not_written(value: object) -> None:
    with pytest.raises(ValueError, match="JSON"):
        json_writer.dumps(value)


def test_a_value_that_holds_itself_is_not_written() -> None:
    value: list[object] = []
    value.append({"again": value})
    for write in (json_writer.dumps, json_writer.dumps_ascii, json_writer.dumps_sorted, json_writer.dumps_utf8):
        with pytest.raises(ValueError, match="too deep"):
            write(value)


@given(st.dictionaries(st.text(), values), st.text(), values)
def test_a_member_that_was_written_before_is_written_as_if_anew(members: Any, name: str, value: object) -> None:  # noqa: ANN401
    members.pop(name, None)  # it stands last
    assert json_writer.dumps_with_member(members, name, json_writer.dumps(value)) == json_writer.dumps(
        {**members, name: value}
    )


@given(values)
def test_a_written_message_is_read_back_unchanged(value: object) -> None:
    assert json_reader.loads(json_writer.dumps(value)) == value


@given(values)
def test_reading_agrees_with_the_standard_library(value: object) -> None:
    assert json_reader.loads(json.dumps(value)) == value


def strictly(text: str) -> object:
    """Read JSON by rules that are written down a second time."""

    def keyed(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _value in pairs}) < len(pairs):
            raise ValueError(pairs)
        return dict(pairs)

    def number(written: str) -> int | float:
        value = float(written)
        if value in (float("inf"), float("-inf")):
            raise ValueError(written)
        whole = value.is_integer() and abs(value) <= 2**53
        return int(written) if written.lstrip("-").isdecimal() else int(value) if whole else value

    def never(word: str) -> None:
        raise ValueError(word)

    value = json.loads(text, object_pairs_hook=keyed, parse_float=number, parse_int=number, parse_constant=never)
    json.dumps(value, ensure_ascii=False).encode()
    return value


@given(texts)
@example(r'{"a":1,"\u0061":"\u003a"}')
@example('{"a" : 1, "a": ":"}')
@example(r'{"a":{"b":1,"c":2},"a":"::"}')
@example('{"a":":","a":":"}')
@example('[{"a":1,"b":":"},{"a":{"b":1}}]')
def test_the_reader_agrees_with_a_strict_second_reader(text: str) -> None:
    try:
        expected = strictly(text)
    except ValueError:
        with pytest.raises(ParseError):
            json_reader.loads(text)
    else:
        assert repr(json_reader.loads(text)) == repr(expected)


@pytest.mark.parametrize("text", [r'{"a":1,"\u0061":"\u003a"}', '{"a":":","a":2}', '{"a":1,"b":{"a":":","a":1}}'])
def test_a_repeated_key_is_found_anywhere(text: str) -> None:
    with pytest.raises(ParseError, match="twice"):
        json_reader.loads(f'["x:",{text}]')


@given(st.binary() | st.text().map(str.encode) | values.map(lambda value: json.dumps(value).encode()))
def test_no_body_leads_to_anything_but_a_message_or_an_error_of_the_protocol(body: bytes) -> None:
    try:
        read = parse(body)
    except (ParseError, InvalidRequest):
        return
    assert read["jsonrpc"] == "2.0"
