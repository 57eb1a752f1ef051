"""Lists in pages, over HTTP: every entry once and in order. A cursor is valid only if this catalog issues it.

"Clients MUST treat cursors as opaque tokens" (Pagination, "Implementation Guidelines"), so no test decodes one.
The tests check which strings are accepted as cursors, by a handler's Lambda and by the front door alike.
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_functions import prompt, resource, tool
from tests.support import gateways, wire
from tests.support.placements import PLACEMENTS, place

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcp_functions.handlers.base import Handler
    from mcp_functions.http.gateway import LambdaFunction

LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
UNKNOWN = {"code": -32602, "message": "Unknown cursor"}
every_list = pytest.mark.parametrize("method", LISTS)


def offered(numbers: Iterable[int]) -> list[Handler[..., Any]]:
    """Make a tool, a prompt, a resource and a template for each number."""
    found: list[Handler[..., Any]] = []
    for number in numbers:
        name = f"h{number:03}"

        def whole(name: str = name) -> str:
            return name

        def one(x: str) -> str:
            return x

        def none() -> str:
            return ""

        found += [tool(name=name)(whole), prompt(name=name)(whole)]
        found += [resource(f"a://{name}", name=name)(none), resource(f"b://{name}/{{x}}", name=name)(one)]
    return found


def ask(function: LambdaFunction, method: str, params: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
    response = function(wire.event(wire.message(method, params)), wire.Context("local-all"))
    return response["statusCode"], wire.read(response, method)


def walk(function: LambdaFunction, method: str) -> list[dict[str, Any]]:
    """Follow `nextCursor` from the first page to the last."""
    pages = [ask(function, method)[1]["result"]]
    while "nextCursor" in pages[-1]:
        assert len(pages) < 500
        pages.append(ask(function, method, {"cursor": pages[-1]["nextCursor"]})[1]["result"])
    return pages


def names(pages: list[dict[str, Any]], method: str) -> list[str]:
    return [entry["name"] for page in pages for entry in page[LISTS[method]]]


@pytest.fixture(params=PLACEMENTS)
def placement(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def seven(placement: str, monkeypatch: pytest.MonkeyPatch) -> LambdaFunction:
    """Seven of each kind, three to a page."""
    monkeypatch.setenv("MCP_PAGE_SIZE", "3")
    return place(placement, *offered([5, 3, 0, 6, 1, 4, 2]))


@every_list
def test_every_page_is_full_but_the_last(method: str, seven: LambdaFunction) -> None:
    pages = walk(seven, method)
    assert [len(page[LISTS[method]]) for page in pages] == [3, 3, 1]
    assert names(pages, method) == [f"h{number:03}" for number in range(7)]


@every_list
def test_every_page_has_the_same_cache_lifetime_and_scope(method: str, seven: LambdaFunction) -> None:
    kept = [(page["ttlMs"], page["cacheScope"]) for page in walk(seven, method)]
    assert kept == [(60_000, "public")] * 3


@every_list
@pytest.mark.parametrize(("mode", "scope"), [("none", "public"), ("jwt", "private")])
def test_the_cache_scope_of_a_list_depends_on_the_auth_mode(
    method: str, mode: str, scope: str, placement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = {"MCP_AUTH_MODE": mode, "MCP_LIST_TTL_MS": "5", "MCP_PAGE_SIZE": "2"}
    for name, value in (gateways.JWT | changed).items():
        monkeypatch.setenv(name, value)
    function = place(placement, *offered(range(3)))
    params: dict[str, Any] = {}
    for _page in range(2):
        event = gateways.by_jwt(wire.event(wire.message(method, params)), iss="https://id.example", sub="ann")
        response = function(event, wire.Context("local-all"))
        result = wire.read(response, method)["result"]
        assert (result["ttlMs"], result["cacheScope"]) == (5, scope)
        params = {"cursor": result.get("nextCursor")}


@every_list
def test_a_repeated_request_gets_the_same_page(method: str, seven: LambdaFunction) -> None:
    assert walk(seven, method) == walk(seven, method)


@every_list
def test_each_request_for_a_page_is_answered_with_its_own_id(method: str, seven: LambdaFunction) -> None:
    asked = wire.message(method)
    answers = [
        json.loads(seven(wire.event({**asked, "id": id_}), wire.Context("local-all"))["body"])
        for id_ in (1, 'two", "id": "three')
    ]
    assert [answer.pop("id") for answer in answers] == [1, 'two", "id": "three']
    assert answers[0] == answers[1]


@every_list
def test_pages_may_be_requested_in_any_order(method: str, seven: LambdaFunction) -> None:
    pages = walk(seven, method)
    for before, page in reversed(list(pairwise(pages))):
        assert ask(seven, method, {"cursor": before["nextCursor"]})[1]["result"] == page


@every_list
def test_both_placements_of_the_same_handlers_give_the_same_pages_and_cursors(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_PAGE_SIZE", "3")
    one, other = (walk(place(placement, *offered(range(7))), method) for placement in PLACEMENTS)
    assert one == other


@every_list
def test_a_container_accepts_the_cursors_of_another(
    method: str, placement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No secret and no memory makes a cursor: the order in which handlers were named does not count either."""
    monkeypatch.setenv("MCP_PAGE_SIZE", "2")
    first, second = place(placement, *offered(range(5))), place(placement, *offered([4, 2, 0, 3, 1]))
    cursor = ask(first, method)[1]["result"]["nextCursor"]
    assert ask(second, method, {"cursor": cursor})[1]["result"] == walk(first, method)[1]


@every_list
@pytest.mark.parametrize("size", [1, 2, 6, 7, 8, 100])
def test_there_are_as_many_cursors_as_pages_after_the_first(
    method: str, size: int, placement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_PAGE_SIZE", str(size))
    pages = walk(place(placement, *offered(range(7))), method)
    assert len({page["nextCursor"] for page in pages[:-1]}) == len(pages) - 1 == (7 - 1) // size
    assert names(pages, method) == [f"h{number:03}" for number in range(7)]


@every_list
def test_a_page_holds_a_hundred_entries_by_default(method: str, placement: str) -> None:
    pages = walk(place(placement, *offered(range(101))), method)
    assert [len(page[LISTS[method]]) for page in pages] == [100, 1]


@every_list
@pytest.mark.parametrize(
    "cursor",
    [None, 0, 3, -1, 1.5, True, [], {}, ["h003"], "", " ", "0", "3", "null", "h003", "x" * 10_000, "ż", "\x00"],
)
def test_a_string_that_was_never_issued_is_not_a_cursor(method: str, cursor: object, seven: LambdaFunction) -> None:
    status, answer = ask(seven, method, {"cursor": cursor})
    assert (status, answer["error"]) == (200, UNKNOWN)


@every_list
def test_a_changed_cursor_is_refused(method: str, seven: LambdaFunction) -> None:
    known = {page["nextCursor"] for page in walk(seven, method)[:-1]}
    for cursor in known:
        changed = {cursor[:-1], cursor + "0", cursor.upper(), f" {cursor}", f"{cursor}\n", cursor[1:], cursor[::-1]}
        for other in changed - known:
            assert ask(seven, method, {"cursor": other})[1]["error"] == UNKNOWN


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_exactly_the_issued_cursors_are_accepted(data: st.DataObject, seven: LambdaFunction) -> None:
    method = data.draw(st.sampled_from(list(LISTS)))
    known = [page["nextCursor"] for page in walk(seven, method)[:-1]]
    near = st.sampled_from(known).flatmap(lambda cursor: st.builds(lambda end: cursor.rpartition("-")[0] + end, ENDS))
    cursor = data.draw(st.text(max_size=20) | near | st.sampled_from(known) | st.from_regex(r"[0-9a-f]{12}-\d{1,3}"))
    answer = ask(seven, method, {"cursor": cursor})[1]
    assert ("result" in answer) == (cursor in known)
    assert answer.get("error", UNKNOWN) == UNKNOWN


ENDS = st.sampled_from(["-0", "-1", "-3 ", "-٣", "-03", "-+3", "-7", "-9", "--3", "-3.0", ""])


@every_list
@pytest.mark.parametrize("now", [range(6), range(8), [*range(6), 9]], ids=["one less", "one more", "another one"])
def test_a_cursor_of_an_old_catalog_is_refused(
    method: str, now: Iterable[int], placement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_PAGE_SIZE", "3")
    before, after = place(placement, *offered(range(7))), place(placement, *offered(now))
    for page in walk(before, method)[:-1]:
        assert ask(after, method, {"cursor": page["nextCursor"]})[1]["error"] == UNKNOWN


@every_list
def test_a_cursor_is_accepted_only_for_its_own_list(method: str, placement: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MCP_PAGE_SIZE", "1")
        function = place(placement, *offered(range(2)), *offered_of_one_kind(method))
        cursors = {listed: ask(function, listed)[1]["result"]["nextCursor"] for listed in LISTS}
    for listed in LISTS.keys() - {method}:
        assert ask(function, method, {"cursor": cursors[listed]})[1]["error"] == UNKNOWN


def offered_of_one_kind(method: str) -> list[Handler[..., Any]]:
    kinds = {"tools/list": "tool", "prompts/list": "prompt", "resources/list": "resource"}
    kind = kinds.get(method, "resource_template")
    return [handler for handler in offered([7]) if handler.kind == kind]


@pytest.mark.parametrize("method", ["server/discover", "tools/call"])
def test_a_cursor_in_another_method_is_ignored(method: str, seven: LambdaFunction) -> None:
    status, answer = ask(seven, method, {"cursor": "nonsense", "name": "h000"})
    assert (status, answer["result"]["resultType"]) == (200, "complete")
    assert "nextCursor" not in answer["result"]
