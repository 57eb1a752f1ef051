"""URI templates, matched back: a value that was put into a template comes out of the URI unchanged."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcp_functions.protocol import uri_templates

RESERVED = ":/?#[]@!$&'()*+,;="


def test_variables_are_named_in_order() -> None:
    assert uri_templates.list_variables("tickets://{project}/{number}/{+rest}") == ("project", "number", "rest")


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


def test_text_separates_two_variables() -> None:
    with pytest.raises(ValueError, match="two variables need text between them"):
        uri_templates.list_variables("a://{x}{+y}")


def test_only_the_last_variable_holds_slashes() -> None:
    with pytest.raises(ValueError, match=r"\{\+name\} must be the last variable"):
        uri_templates.list_variables("a://{+x}/{y}")


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
    """Return what a regular expression reads that tries all ends of each variable, however long it takes."""
    pattern = re.sub(
        r"\\\{(\\\+)?(\w+)\\\}",
        lambda found: f"(?P<{found[2]}>{'.' if found[1] else '[^/?#&=,;]'}+?)",
        re.escape(template),
    )
    found = re.fullmatch(pattern, uri, re.DOTALL)
    return found and {name: unquote(value) for name, value in found.groupdict().items()}


literals = st.text(st.sampled_from("/-x"), min_size=1, max_size=3)


@st.composite
def templates(draw: st.DrawFn) -> str:
    """Draw a template that `list_variables` allows."""
    variables = ["{a}", "{b}", "{c}"][: draw(st.integers(0, 3))]
    if draw(st.booleans()):
        variables.append("{+d}")
    template = draw(literals)
    for variable in variables:
        template += variable + draw(literals)
    return template if draw(st.booleans()) else template.rstrip("/-x")


@given(templates(), st.text(st.sampled_from("/-x"), max_size=12))
@example("x{a}-{b}-/{c}x", "x-----/-x")
def test_a_template_matches_like_a_regular_expression(template: str, uri: str) -> None:
    uri_templates.list_variables(template)
    assert uri_templates.match(template, uri) == by_backtracking(template, uri)


def test_a_variable_ends_at_the_first_place_where_the_text_behind_it_follows() -> None:
    assert uri_templates.match("a://{name}.{format}", "a://log.tar.gz") == {"name": "log", "format": "tar.gz"}
    assert uri_templates.match("a://{name}.gz", "a://log.gz.gz") == {"name": "log.gz"}


def test_a_long_uri_is_read_without_trying_all_ends_of_each_variable() -> None:
    hyphens = "-" * 8000  # a regular expression would need years
    assert uri_templates.match("x://{a}-{b}-{c}-{d}-{e}end", f"x://{hyphens}en") is None
    assert uri_templates.match("x://{a}-{b}-{c}-{d}-{e}end", f"x://{hyphens}end") is not None


def test_a_uri_that_no_header_could_hold_fits_nothing() -> None:
    assert uri_templates.match("x://{a}", "x://" + "y" * (uri_templates.MAX_URI - 4)) is not None
    assert uri_templates.match("x://{a}", "x://" + "y" * (uri_templates.MAX_URI - 3)) is None
