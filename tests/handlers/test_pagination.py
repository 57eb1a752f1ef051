"""Lists in pages (server/utilities/pagination): each page gives the cursor with which a client requests the next page.

    tools/list {}                           {"tools": [h000, h001, h002], "nextCursor": "0e4d…-3"}
    tools/list {"cursor": "0e4d…-3"}        {"tools": [h003, h004, h005], "nextCursor": "0e4d…-6"}
    tools/list {"cursor": "0e4d…-6"}        {"tools": [h006]}

Any other cursor is an error. A tool's own Lambda function answers lists, and so does the front door, the endpoint of
several functions. The fixture `placement` runs a test for each of them.
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_functions import prompt, resource, tool
from mcp_functions.handlers.catalog import LISTS_BY_KIND
from tests.support import gateways, wire
from tests.support.placements import PLACEMENTS, place

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcp_functions.handlers.base import Handler
    from mcp_functions.http.gateway import LambdaFunction

# Method -> the member of its result that contains the entries.
MEMBERS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
UNKNOWN_CURSOR_ERROR = {"code": -32602, "message": "Unknown cursor"}
every_list = pytest.mark.parametrize("method", MEMBERS)


def make_handlers(numbers: Iterable[int]) -> list[Handler[..., Any]]:
    """Make a tool, a prompt, a resource and a template for each number, with the name "h001" for 1."""

    def empty() -> str:
        return ""

    def repeat(x: str) -> str:
        return x

    handlers: list[Handler[..., Any]] = []
    for number in numbers:
        name = f"h{number:03}"
        handlers += [
            tool(name=name)(empty),
            prompt(name=name)(empty),
            resource(f"a://{name}", name=name)(empty),
            resource(f"b://{name}/{{x}}", name=name)(repeat),
        ]
    return handlers


def send(function: LambdaFunction, method: str, **params: object) -> dict[str, Any]:
    """Send a request and return the message of the response."""
    response = function(wire.event(wire.message(method, params)), wire.Context("local_all"))
    assert response["statusCode"] == 200
    return wire.read(response, method)


def read_page(function: LambdaFunction, method: str, **params: object) -> dict[str, Any]:
    """Return one page of a list; `cursor` is its only param."""
    page: dict[str, Any] = send(function, method, **params)["result"]
    return page


def read_pages(function: LambdaFunction, method: str) -> list[dict[str, Any]]:
    """Read every page of a list, from the first one to the last."""
    pages = [read_page(function, method)]
    while "nextCursor" in pages[-1]:
        assert len(pages) < 500
        pages.append(read_page(function, method, cursor=pages[-1]["nextCursor"]))
    return pages


def read_names(function: LambdaFunction, method: str) -> list[list[str]]:
    """Return the names on each page of a list."""
    member = MEMBERS[method]
    return [[entry["name"] for entry in page[member]] for page in read_pages(function, method)]


def read_cursors(function: LambdaFunction, method: str) -> list[str]:
    """Return the cursors of all pages but the first, which needs none."""
    return [page["nextCursor"] for page in read_pages(function, method)[:-1]]


@pytest.fixture(params=PLACEMENTS)
def placement(request: pytest.FixtureRequest) -> str:
    """Choose which Lambda function answers lists: the function of the handlers, or the front door."""
    return str(request.param)


@pytest.fixture
def function(placement: str, monkeypatch: pytest.MonkeyPatch) -> LambdaFunction:
    """Deploy seven handlers of each kind, with three entries to a page."""
    monkeypatch.setenv("MCP_PAGE_SIZE", "3")
    return place(placement, *make_handlers([5, 3, 0, 6, 1, 4, 2]))


# Pages


@every_list
def test_every_page_but_the_last_is_full_and_names_are_in_order(method: str, function: LambdaFunction) -> None:
    assert read_names(function, method) == [["h000", "h001", "h002"], ["h003", "h004", "h005"], ["h006"]]


@every_list
@pytest.mark.parametrize(("size", "pages"), [(1, 7), (2, 4), (6, 2), (7, 1), (8, 1)])
def test_the_page_size_is_a_setting(
    method: str, size: int, pages: int, placement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_PAGE_SIZE", str(size))
    names_of_pages = read_names(place(placement, *make_handlers(range(7))), method)
    assert len(names_of_pages) == pages
    names = [name for page in names_of_pages for name in page]
    assert names == ["h000", "h001", "h002", "h003", "h004", "h005", "h006"]


@every_list
def test_a_page_holds_a_hundred_entries_by_default(method: str, placement: str) -> None:
    names = read_names(place(placement, *make_handlers(range(101))), method)
    assert [len(page) for page in names] == [100, 1]


@every_list
def test_every_page_has_the_same_cache_lifetime_and_scope(method: str, function: LambdaFunction) -> None:
    for page in read_pages(function, method):
        assert page["ttlMs"] == 60_000
        assert page["cacheScope"] == "public"


@every_list
def test_a_list_is_private_if_callers_must_sign_in(
    method: str, placement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (gateways.JWT_SETTINGS | {"MCP_AUTH_MODE": "jwt", "MCP_LIST_TTL_MS": "5"}).items():
        monkeypatch.setenv(name, value)
    event = gateways.by_jwt(wire.event(wire.message(method)), iss="https://id.example", sub="ann")
    response = place(placement, *make_handlers([1]))(event, wire.Context("local_all"))
    result = wire.read(response, method)["result"]
    assert result["ttlMs"] == 5
    assert result["cacheScope"] == "private"


@every_list
def test_a_repeated_request_gets_the_same_page(method: str, function: LambdaFunction) -> None:
    assert read_pages(function, method) == read_pages(function, method)


@every_list
@pytest.mark.parametrize("message_id", [1, 'two", "id": "three'])
def test_each_request_for_a_page_is_answered_with_its_own_id(
    method: str, message_id: object, function: LambdaFunction
) -> None:
    message = wire.message(method) | {"id": message_id}
    response = function(wire.event(message), wire.Context("local_all"))
    assert json.loads(response["body"])["id"] == message_id


@every_list
def test_pages_may_be_requested_in_any_order(method: str, function: LambdaFunction) -> None:
    pages = read_pages(function, method)
    for previous, page in reversed(list(pairwise(pages))):
        assert read_page(function, method, cursor=previous["nextCursor"]) == page


@every_list
def test_the_front_door_gives_the_same_pages_as_a_function(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_PAGE_SIZE", "3")
    one, other = [place(placement, *make_handlers(range(7))) for placement in PLACEMENTS]
    assert read_pages(one, method) == read_pages(other, method)


# Cursors


@every_list
def test_a_container_accepts_the_cursors_of_another(
    method: str, placement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No secret, no memory and no order of the handlers is part of a cursor."""
    monkeypatch.setenv("MCP_PAGE_SIZE", "2")
    first = place(placement, *make_handlers([0, 1, 2, 3, 4]))
    second = place(placement, *make_handlers([4, 2, 0, 3, 1]))
    cursor = read_page(first, method)["nextCursor"]
    assert read_page(second, method, cursor=cursor) == read_pages(first, method)[1]


@every_list
@pytest.mark.parametrize(
    "cursor",
    [0, 3, -1, 1.5, True, [], {}, ["h003"], "", " ", "0", "3", "null", "h003", "x" * 10_000, "ż", "\x00"],
)
def test_a_value_that_was_never_issued_is_not_a_cursor(method: str, cursor: object, function: LambdaFunction) -> None:
    assert send(function, method, cursor=cursor)["error"] == UNKNOWN_CURSOR_ERROR


@every_list
def test_a_cursor_of_null_counts_as_left_out(method: str, function: LambdaFunction) -> None:
    """Clients of 2025 send null for what they leave out."""
    assert send(function, method, cursor=None)["result"] == send(function, method)["result"]


@every_list
def test_a_changed_cursor_is_refused(method: str, function: LambdaFunction) -> None:
    cursors = read_cursors(function, method)
    for cursor in cursors:
        changed = {cursor[:-1], cursor + "0", cursor.upper(), f" {cursor}", f"{cursor}\n", cursor[1:], cursor[::-1]}
        for other in changed - {*cursors}:
            assert send(function, method, cursor=other)["error"] == UNKNOWN_CURSOR_ERROR


@every_list
@pytest.mark.parametrize("end", ["-0", "-1", "-3 ", "-٣", "-03", "-+3", "-7", "-9", "--3", "-3.0", ""])
def test_a_cursor_with_another_position_is_refused(method: str, end: str, function: LambdaFunction) -> None:
    digest = read_cursors(function, method)[0].removesuffix("-3")
    assert send(function, method, cursor=digest + end)["error"] == UNKNOWN_CURSOR_ERROR


# With `parametrize`, each placement has its own examples; with the fixture alone, those of the one that runs first.
@pytest.mark.parametrize("placement", PLACEMENTS, indirect=True)
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(method=st.sampled_from([*MEMBERS]), cursor=st.text(max_size=20) | st.from_regex(r"[0-9a-f]{12}-\d{1,3}"))
def test_no_random_text_is_a_cursor(method: str, cursor: str, function: LambdaFunction) -> None:
    assert send(function, method, cursor=cursor)["error"] == UNKNOWN_CURSOR_ERROR


@every_list
@pytest.mark.parametrize("numbers", [range(6), range(8), [*range(6), 9]], ids=["one less", "one more", "another one"])
def test_a_cursor_of_an_old_catalog_is_refused(
    method: str, numbers: Iterable[int], placement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_PAGE_SIZE", "3")
    old = place(placement, *make_handlers(range(7)))
    new = place(placement, *make_handlers(numbers))
    for cursor in read_cursors(old, method):
        assert send(new, method, cursor=cursor)["error"] == UNKNOWN_CURSOR_ERROR


@every_list
def test_a_cursor_of_a_list_with_other_entries_is_refused(
    method: str, placement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_PAGE_SIZE", "1")
    one_more = [handler for handler in make_handlers([7]) if LISTS_BY_KIND[handler.kind] == MEMBERS[method]]
    function = place(placement, *make_handlers(range(2)), *one_more)
    for other in MEMBERS.keys() - {method}:
        cursor = read_page(function, other)["nextCursor"]
        assert send(function, method, cursor=cursor)["error"] == UNKNOWN_CURSOR_ERROR


@pytest.mark.parametrize("method", ["server/discover", "tools/call"])
def test_a_cursor_in_another_method_is_ignored(method: str, function: LambdaFunction) -> None:
    result = send(function, method, cursor="nonsense", name="h000")["result"]
    assert result["resultType"] == "complete"
    assert "nextCursor" not in result
