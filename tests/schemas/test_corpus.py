"""What is described, read, written and recorded is one thing, for each type of the corpus, with generated values."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter

from mcp_functions.protocol import json_reader
from mcp_functions.protocol.plain_values import is_equal
from mcp_functions.schemas.type_reader import read_type
from tests.support.corpus import CASES, Case

if TYPE_CHECKING:
    from collections.abc import Iterator

# The same values in each run: the corpus is wide, so each type needs few.
few = settings(max_examples=8, derandomize=True, database=None)
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
OTHERS = [None, True, 0, 1.5, "", "3", "x", "86400", [], ["x"], [1, 1], {}, {"x": "3"}]


def near(value: Any) -> Iterator[Any]:  # noqa: ANN401 - JSON
    """Yield a JSON value, and others that differ from it in one place."""
    yield value
    yield from OTHERS
    if isinstance(value, dict):
        yield {**value, "unknown": 1}
        for name, member in value.items():
            yield {other: part for other, part in value.items() if other != name}
            yield from ({**value, name: changed} for changed in near(member))
    elif isinstance(value, list) and value:
        yield [*value, value[0]]
        yield from ([changed, *value[1:]] for changed in near(value[0]))


def written_by_pydantic(case: Case, value: object) -> Any:  # noqa: ANN401 - JSON
    adapter: TypeAdapter[Any] = TypeAdapter(case.annotation)
    # pydantic warns of what its own PlainValidator writes.
    return adapter.dump_python(adapter.validate_python(value), mode="json", by_alias=True, warnings="none")


@every_case
@few
@given(data=st.data())
def test_a_value_is_written_as_pydantic_writes_it_and_fits_the_published_schema(
    case: Case, data: st.DataObject
) -> None:
    value = data.draw(case.values)
    type_ = read_type(case.annotation)
    written = type_.write(value)
    assert json.loads(json.dumps(written, allow_nan=False)) == written
    assert is_same_json(written, written_by_pydantic(case, value))
    Draft202012Validator(type_.output_schema, format_checker=Draft202012Validator.FORMAT_CHECKER).validate(written)


def is_same_json(one: object, other: object) -> bool:
    """Compare two JSON values; a set has no order."""
    if isinstance(one, list) and isinstance(other, list):
        return sorted(map(json.dumps, one)) == sorted(map(json.dumps, other))
    return one == other


@every_case
@few
@given(data=st.data())
def test_what_the_published_schema_allows_is_read_and_what_it_forbids_is_refused(
    case: Case, data: st.DataObject
) -> None:
    type_ = read_type(case.annotation)
    validator = Draft202012Validator(type_.schema)
    sendable = json_reader.loads(json.dumps(type_.record(data.draw(case.values))[0]))
    for sent in near(sendable):
        try:
            type_.read(sent)
        except ValueError:
            assert not (
                case.follows_schema and validator.is_valid(sent) and '"format"' not in json.dumps(type_.schema)
            ), sent
        else:
            assert validator.is_valid(sent), sent


@every_case
@few
@given(data=st.data())
def test_a_record_gives_back_an_equal_value_or_tells_that_it_does_not(case: Case, data: st.DataObject) -> None:
    value = data.draw(case.values)
    type_ = read_type(case.annotation)
    try:
        type_.check_recordable()
    except TypeError:
        assert not case.is_kept
        return
    recorded, is_whole = type_.record(value)
    assert is_whole is case.is_kept or not case.is_kept
    if is_whole:
        again = type_.read_record(json.loads(json.dumps(recorded)))
        assert is_equal(again, TypeAdapter(case.annotation).validate_python(value))


@every_case
def test_every_published_default_can_be_sent(case: Case) -> None:
    for schema in (read_type(case.annotation).schema, read_type(case.annotation).output_schema):
        definitions = schema.get("$defs", {})
        Draft202012Validator.check_schema(schema)
        for _level, part in json_reader.walk(schema):
            if isinstance(part, dict) and "default" in part and isinstance(part.get("type", ""), str):
                Draft202012Validator({**part, "$defs": definitions}).validate(part["default"])
