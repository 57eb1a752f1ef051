"""The digest of arguments (envelope.md §9.3): vectors, and a second writer of the canonical form."""

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
from mcp_functions.seal.claims import bind_request

FILE = Path(__file__).parent / "vectors" / "arguments.txt"
VECTORS = [
    dict(line.split(": ", 1) for line in block.split("\n") if not line.startswith("#"))
    for block in FILE.read_text(encoding="utf-8").strip().split("\n\n")
]
FORMS = [vector for vector in VECTORS if vector["expect"] == "accept"]
SHORT = {"\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t", '"': '"', "\\": "\\"}


def canonical_digest(arguments: object) -> str:
    """Return what the toolkit binds a state to."""
    return bind_request("demo/prod", "tools/call", {"name": "t", "arguments": arguments}, None).arguments_digest


# Written from envelope.md §9.3, with nothing of the package.


def second_digest(form: str) -> str:
    digest = hashlib.sha256(b"ks1/args\0" + form.encode("ascii")).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def second_form(text: str) -> str:
    """Write arguments, given as JSON, in their canonical form.

    Raises:
        ValueError: they have none.

    """
    return _form(json.loads(text), depth=0)


def _form(value: Any, depth: int) -> str:  # noqa: ANN401 - JSON
    inside = depth + 1
    if isinstance(value, (dict, list)) and inside > 64:
        raise ValueError("depth")  # noqa: EM101
    match value:
        case None | bool():
            return {None: "null", True: "true", False: "false"}[value]
        case str():
            return _string(value)
        case float():
            return _number(value)
        case int():
            return str(value)
        case list():
            return f"[{','.join(_form(item, inside) for item in value)}]"
    names = sorted(value, key=lambda name: [ord(character) for character in name])
    return "{" + ",".join(f"{_string(name)}:{_form(value[name], inside)}" for name in names) + "}"


def _number(value: float) -> str:
    if not math.isfinite(value):
        raise ValueError("number")  # noqa: EM101
    if value == math.floor(value):
        return f"{Decimal(value):f}" if value else "0"
    sign, digits, exponent = Decimal(repr(float(value))).as_tuple()
    written, point = "".join(map(str, digits)), len(digits) + int(exponent)  # 0.written * 10**point
    if point < -3:
        rest = f".{written[1:]}" if written[1:] else ""
        return f"{'-' * sign}{written[0]}{rest}e-{1 - point:02}"
    if point <= 0:
        return f"{'-' * sign}0.{'0' * -point}{written}"
    return f"{'-' * sign}{written[:point]}.{written[point:]}"


def _string(text: str) -> str:
    return '"' + "".join(map(_character, text)) + '"'


def _character(character: str) -> str:
    if character in SHORT:
        return f"\\{SHORT[character]}"
    if " " <= character <= "~":
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


@pytest.mark.parametrize("vector", FORMS, ids=lambda vector: vector["arguments"][:40])
def test_every_vector_has_its_digest(vector: dict[str, str]) -> None:
    assert canonical_digest(loads(vector["arguments"])) == vector["digest"]


@pytest.mark.parametrize("vector", FORMS, ids=lambda vector: vector["arguments"][:40])
def test_a_second_writer_agrees_on_every_vector(vector: dict[str, str]) -> None:
    assert second_form(vector["arguments"]) == vector["canonical"]
    assert second_digest(vector["canonical"]) == vector["digest"]


@pytest.mark.parametrize(
    "vector", [vector for vector in VECTORS if vector not in FORMS], ids=lambda vector: vector["arguments"][:40]
)
def test_what_has_no_canonical_form_is_refused_by_both(vector: dict[str, str]) -> None:
    assert vector["expect"] == "refuse"
    with pytest.raises(InvalidParams):
        canonical_digest(json.loads(vector["arguments"]))
    with pytest.raises(ValueError, match=r"depth|number"):
        second_form(vector["arguments"])


@pytest.mark.parametrize("params", [{}, {"arguments": None}, {"arguments": {}}], ids=str)
def test_no_arguments_and_those_of_a_resource_have_the_digest_of_an_empty_object(params: dict[str, Any]) -> None:
    empty = second_digest("{}")
    assert bind_request("demo/prod", "prompts/get", {"name": "t", **params}, None).arguments_digest == empty
    read = {"uri": "demo://t", "arguments": {"n": 1}}
    assert bind_request("demo/prod", "resources/read", read, None).arguments_digest == empty


NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(TEXTS, JSON, max_size=4))
def test_a_second_writer_agrees_on_any_arguments(arguments: dict[str, Any]) -> None:
    assert canonical_digest(arguments) == second_digest(second_form(json.dumps(arguments)))
