"""A URI template with {name} and {+name} (RFC 6570) is matched with a URI, which gives the values of its variables."""

from __future__ import annotations

import re
import sys
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_functions.protocol.uri_templates import MAX_URI, UriTemplate

RESERVED = ":/?#[]@!$&'()*+,;="  # the characters that {+name} may contain unencoded


def test_the_variables_are_listed_in_their_order() -> None:
    assert UriTemplate("tickets://{project}/{number}{+rest}").variables == ("project", "number", "rest")


def test_a_plain_uri_has_no_variables() -> None:
    assert UriTemplate("config://app").variables == ()


@pytest.mark.parametrize(
    "template", ["a://{?q}", "a://{x*}", "a://{x,y}", "a://{/x}", "a://{}", "a://{x", "a://x}", "a://{1x}"]
)
def test_other_expressions_of_rfc_6570_are_refused(template: str) -> None:
    with pytest.raises(ValueError, match=r"only \{name\} and \{\+name\} can be matched back from a URI"):
        UriTemplate(template)


def test_a_variable_may_appear_only_once() -> None:
    with pytest.raises(ValueError, match="uses a variable twice"):
        UriTemplate("a://{x}/{+x}")


def test_match_returns_the_values_of_the_variables() -> None:
    assert UriTemplate("tickets://{project}/{number}").match("tickets://APP/17") == {"project": "APP", "number": "17"}


@pytest.mark.parametrize(
    "uri",
    [
        "tickets://APP",
        "tickets://APP/",
        "tickets://APP/17/x",
        "ticketz://APP/17",
        "tickets://APP/1?x",
        " tickets://APP/1",
    ],
)
def test_a_uri_that_does_not_match_gives_none(uri: str) -> None:
    assert UriTemplate("tickets://{project}/{number}").match(uri) is None


def test_the_text_between_expressions_is_literal() -> None:
    assert UriTemplate("a://x.y/{v}").match("a://xzy/1") is None
    assert UriTemplate("a://x.y(1)/{v}").match("a://x.y(1)/1") == {"v": "1"}


def test_a_variable_with_a_plus_may_contain_slashes() -> None:
    assert UriTemplate("file:///{+path}").match("file:///a/b.txt?c#d") == {"path": "a/b.txt?c#d"}


def test_percent_encoding_is_decoded_once() -> None:
    assert UriTemplate("a://{x}").match("a://caf%C3%A9%2F%2525") == {"x": "café/%25"}


def test_percent_encoded_bytes_that_are_not_utf_8_do_not_match() -> None:
    assert UriTemplate("a://{x}").match("a://%ff") is None


@given(st.text(min_size=1), st.text(min_size=1))
def test_match_returns_the_values_that_a_client_put_into_the_template(one: str, two: str) -> None:
    uri = f"a://{quote(one, safe='')}/b/{quote(two, safe='')}"
    assert UriTemplate("a://{one}/b/{two}").match(uri) == {"one": one, "two": two}


@given(st.text(min_size=1))
def test_match_returns_the_value_of_a_variable_with_a_plus(path: str) -> None:
    uri = f"file:///{quote(path, safe=RESERVED)}"
    assert UriTemplate("file:///{+path}").match(uri) == {"path": path}


def match_by_regular_expression(template: str, uri: str) -> dict[str, str] | None:
    pattern = re.escape(template)
    pattern = re.sub(r"\\{\\\+(\w+)\\}", r"(?P<\1>.+)", pattern)
    pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/?#&=,;]+)", pattern)
    match = re.fullmatch(pattern, uri, re.DOTALL)
    return match and match.groupdict()


PARTS = st.lists(st.sampled_from(["{a}", "{+b}", "{c}", "{+d}"]), unique=True, max_size=4)
TEXTS = st.lists(st.sampled_from(["", "/", "-", "x", "-/"]), min_size=5, max_size=5)


@given(PARTS, TEXTS, st.text(st.sampled_from("/-x"), max_size=12))
def test_a_template_matches_like_a_regular_expression(parts: list[str], texts: list[str], uri: str) -> None:
    template = "".join(text + part for text, part in zip(texts, parts, strict=False)) + texts[-1]
    assert UriTemplate(template).match(uri) == match_by_regular_expression(template, uri)


def count_lines(template: str, uri: str) -> int:
    """Count the lines of code that one match runs."""
    lines = 0

    def trace(*_arguments: Any) -> Any:  # noqa: ANN401 - a trace function returns itself
        nonlocal lines
        lines += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        UriTemplate(template).match(uri)
    finally:
        sys.settrace(before)
    return lines


@pytest.mark.parametrize(
    ("template", "separator"),
    [("x://{a}-{b}-{c}end", "-"), ("x://{a}{b}{c}{d}end", "-"), ("x://{+a}/{+b}/{+c}/{+d}end", "/")],
)
@pytest.mark.parametrize("end", ["end", "en"])  # the second does not match; a regular expression needed seconds
def test_the_cost_of_a_match_grows_linearly_with_the_uri(template: str, separator: str, end: str) -> None:
    short = count_lines(template, "x://" + 1000 * separator + end)
    long = count_lines(template, "x://" + 2000 * separator + end)
    assert long < 3 * short


def test_a_uri_longer_than_any_header_does_not_match() -> None:
    assert UriTemplate("x://{a}").match("x://" + "y" * (MAX_URI - 4)) is not None
    assert UriTemplate("x://{a}").match("x://" + "y" * (MAX_URI - 3)) is None
