"""URI templates, matched back: a value that was put into a template comes out of the URI unchanged."""

from __future__ import annotations

import re
import sys
from typing import Any
from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_functions.protocol import uri_templates

RESERVED = ":/?#[]@!$&'()*+,;="


def test_variables_are_named_in_order() -> None:
    assert uri_templates.list_variables("tickets://{project}/{number}{+rest}") == ("project", "number", "rest")


def test_a_plain_uri_has_no_variables() -> None:
    assert uri_templates.list_variables("config://app") == ()


@pytest.mark.parametrize(
    "template", ["a://{?q}", "a://{x*}", "a://{x,y}", "a://{/x}", "a://{}", "a://{x", "a://x}", "a://{1x}"]
)
def test_more_of_rfc_6570_is_refused(template: str) -> None:
    with pytest.raises(ValueError, match=r"only \{name\} and \{\+name\} can be matched back from a URI"):
        uri_templates.list_variables(template)


def test_a_variable_may_appear_only_once() -> None:
    with pytest.raises(ValueError, match="uses a variable twice"):
        uri_templates.list_variables("a://{x}/{+x}")


def test_a_uri_is_read_back() -> None:
    assert uri_templates.match("tickets://{project}/{number}", "tickets://APP/17") == {"project": "APP", "number": "17"}


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
def test_another_uri_does_not_fit(uri: str) -> None:
    assert uri_templates.match("tickets://{project}/{number}", uri) is None


def test_the_rest_of_a_template_is_literal() -> None:
    assert uri_templates.match("a://x.y/{v}", "a://xzy/1") is None
    assert uri_templates.match("a://x.y(1)/{v}", "a://x.y(1)/1") == {"v": "1"}


def test_a_plus_variable_holds_slashes() -> None:
    assert uri_templates.match("file:///{+path}", "file:///a/b.txt?c#d") == {"path": "a/b.txt?c#d"}


def test_percent_encoding_is_decoded_once() -> None:
    assert uri_templates.match("a://{x}", "a://caf%C3%A9%2F%2525") == {"x": "café/%25"}


def test_bytes_that_are_not_utf_8_name_nothing() -> None:
    assert uri_templates.match("a://{x}", "a://%ff") is None


@given(st.text(min_size=1), st.text(min_size=1))
def test_an_expanded_value_is_matched_back(one: str, two: str) -> None:
    uri = f"a://{quote(one, safe='', errors='surrogatepass')}/b/{quote(two, safe='', errors='surrogatepass')}"
    found = uri_templates.match("a://{one}/b/{two}", uri)
    assert found == {"one": one, "two": two}


@given(st.text(min_size=1))
def test_a_value_expanded_with_a_plus_is_matched_back(path: str) -> None:
    uri = f"file:///{quote(path, safe=RESERVED)}"
    assert uri_templates.match("file:///{+path}", uri) == {"path": path}


def by_backtracking(template: str, uri: str) -> dict[str, str] | None:
    """Say what a regular expression would read, however long it takes."""
    pattern = re.sub(
        r"\\\{(\\\+)?(\w+)\\\}",
        lambda found: f"(?P<{found[2]}>{'.+' if found[1] else '[^/?#&=,;]+'})",
        re.escape(template),
    )
    found = re.fullmatch(pattern, uri, re.DOTALL)
    return found and {name: unquote(value) for name, value in found.groupdict().items()}


templates = st.lists(st.sampled_from(["{a}", "{+b}", "{c}", "{+d}", "/", "-", "x", "-/"]), max_size=6).map("".join)


@given(
    templates.filter(lambda text: all(text.count(variable) < 2 for variable in "abcd")),
    st.text(st.sampled_from("/-x"), max_size=12),
)
def test_a_template_matches_like_a_regular_expression(template: str, uri: str) -> None:
    assert uri_templates.match(template, uri) == by_backtracking(template, uri)


@pytest.mark.parametrize("template", ["x://{a}-{b}-{c}end", "x://{+a}/{+b}/{+c}/{+d}end", "x://{a}{b}{c}{d}end"])
def test_the_cost_of_a_match_grows_linearly_with_the_uri(template: str) -> None:
    filler = "/" if "/{+b}" in template else "-"  # the text between the expressions

    def cost(length: int) -> int:
        """Count the lines that run. A regular expression needed seconds for such a URI of a thousand characters."""
        lines = 0

        def count(*_arguments: Any) -> Any:  # noqa: ANN401 - a trace function traces with itself
            nonlocal lines
            lines += 1
            return count

        before = sys.gettrace()
        sys.settrace(count)
        try:
            assert uri_templates.match(template, "x://" + filler * length + "en") is None
            assert uri_templates.match(template, "x://" + filler * length + "end") is not None
        finally:
            sys.settrace(before)
        return lines

    assert cost(2000) < 3 * cost(1000)


def test_a_uri_that_no_header_could_hold_fits_nothing() -> None:
    assert uri_templates.match("x://{a}", "x://" + "y" * (uri_templates.MAX_URI - 4)) is not None
    assert uri_templates.match("x://{a}", "x://" + "y" * (uri_templates.MAX_URI - 3)) is None
