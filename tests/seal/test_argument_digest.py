"""The digest of arguments (envelope.md §9.3): it binds a state to the arguments of its request.

Arguments that differ only in their spelling have the same canonical form, and so the same digest. The published vectors
give both. `canonical_form` is a second implementation, written from the specification with nothing of the package.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_functions.protocol.errors import InvalidParams
from mcp_functions.protocol.json_reader import loads
from mcp_functions.seal.binding import bind_request

FILE = Path(__file__).parent / "vectors" / "arguments.txt"
VECTORS = [
    dict(line.split(": ", 1) for line in block.split("\n") if not line.startswith("#"))
    for block in FILE.read_text(encoding="utf-8").strip().split("\n\n")
]
ACCEPTED = [vector for vector in VECTORS if vector["expect"] == "accept"]
REFUSED = [vector["arguments"] for vector in VECTORS if vector["expect"] == "refuse"]


def digest_of_package(arguments: object, method: str = "tools/call") -> str:
    params = {"name": "t", "uri": "demo://t", "arguments": arguments}
    return bind_request("demo/prod", method, params, None).arguments


# The second implementation

ESCAPES = {"\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", '"': r"\"", "\\": r"\\"}


def digest_of(form: str) -> str:
    digest = hashlib.sha256(b"ks1/args\0" + form.encode("ascii")).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def canonical_form(value: Any, depth: int = 1) -> str:  # noqa: ANN401 - JSON
    """Write a value in the canonical form; raise ValueError if it has none."""
    if isinstance(value, (dict, list)) and depth > 64:
        raise ValueError("depth")
    match value:
        case None | bool():
            return json.dumps(value)
        case str():
            return '"' + "".join(map(escape, value)) + '"'
        case float():
            return canonical_double(value)
        case int():
            return str(value)
        case list():
            return "[" + ",".join(canonical_form(item, depth + 1) for item in value) + "]"
    names = sorted(value, key=lambda name: [ord(character) for character in name])
    members = [canonical_form(name) + ":" + canonical_form(value[name], depth + 1) for name in names]
    return "{" + ",".join(members) + "}"


def canonical_double(value: float) -> str:
    if not math.isfinite(value):
        raise ValueError("number")
    if value == math.floor(value):
        return str(int(Decimal(value)))
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    text, point = "".join(map(str, digits)), len(digits) + int(exponent)  # the value is 0.text * 10**point
    minus = "-" * sign
    if point > 0:
        return f"{minus}{text[:point]}.{text[point:]}"
    if point > -4:
        return f"{minus}0.{'0' * -point}{text}"
    fraction = f".{text[1:]}" if text[1:] else ""
    return f"{minus}{text[0]}{fraction}e-{1 - point:02}"


def escape(character: str) -> str:
    if character in ESCAPES:
        return ESCAPES[character]
    if " " <= character <= "~":
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[start : start + 2].hex()}" for start in range(0, len(units), 2))


# The two agree


@pytest.mark.parametrize("vector", ACCEPTED, ids=lambda vector: vector["arguments"][:40])
def test_the_package_has_the_digest_of_every_vector(vector: dict[str, str]) -> None:
    assert digest_of_package(loads(vector["arguments"])) == vector["digest"]


@pytest.mark.parametrize("vector", ACCEPTED, ids=lambda vector: vector["arguments"][:40])
def test_a_second_implementation_has_the_form_and_digest_of_every_vector(vector: dict[str, str]) -> None:
    assert canonical_form(json.loads(vector["arguments"])) == vector["canonical"]
    assert digest_of(vector["canonical"]) == vector["digest"]


@pytest.mark.parametrize("text", REFUSED, ids=["depth", "number"])
def test_arguments_without_a_canonical_form_are_refused_by_both(text: str) -> None:
    with pytest.raises(InvalidParams):
        digest_of_package(json.loads(text))
    with pytest.raises(ValueError, match=r"depth|number"):
        canonical_form(json.loads(text))


NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))  # without lone surrogates
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(TEXTS, JSON, max_size=4))
def test_the_package_and_the_second_implementation_agree_on_any_arguments(arguments: dict[str, Any]) -> None:
    assert digest_of_package(arguments) == digest_of(canonical_form(arguments))


# Different arguments

CONFUSABLE: list[object] = [
    0, 1, True, False, None, "", "1", "true", "null", [], {}, [1], [[1]], {"1": 1}, 1.5, "1.5", -1, 2**53, 2**53 + 1,
    0.1, 0.1 + 2**-56, "é", "e\u0301", "\ud800", "\\ud800", "1e+5", [1, 2], [2, 1], [12], {"a": {}}, {"a": []},
    {"a": None}, {"": 0}, ["a", "b"], ["a,b"], ['a","b'], "[1]", '{"1":1}', [None], [[], []], [[[]]], "\0", "\\u0000",
    {"a": 1, "b": 2}, {"a": {"b": 2}}, [{"a": 1}, {"b": 2}],
]  # fmt: skip


def test_different_arguments_have_different_digests() -> None:
    assert len({digest_of_package({"value": value}) for value in CONFUSABLE}) == len(CONFUSABLE)


@pytest.mark.parametrize("arguments", [None, {}], ids=repr)
def test_missing_arguments_have_the_digest_of_an_empty_object(arguments: object) -> None:
    empty = digest_of("{}")
    assert digest_of_package(arguments) == empty
    assert bind_request("demo/prod", "tools/call", {"name": "t"}, None).arguments == empty


@pytest.mark.parametrize("arguments", [[], "", 0, False, {"a": None}], ids=repr)
def test_another_empty_value_has_another_digest(arguments: object) -> None:
    assert digest_of_package(arguments) != digest_of("{}")


def test_a_resource_has_no_arguments() -> None:
    assert digest_of_package({"n": 1}, method="resources/read") == digest_of("{}")


def test_very_deep_arguments_are_refused_before_they_exhaust_the_stack() -> None:
    value: object = 1
    for _ in range(100_000):
        value = [value]
    with pytest.raises(InvalidParams):
        digest_of_package({"value": value})
