"""A user answers the form in a host: Chromium, the official AppBridge, and a function behind it."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest

from functions.sales.app import handler as sample
from mcp_functions import Elicit, serve, tool
from mcp_functions import store as tables
from mcp_functions.annotated import Between, Format, Length, Title
from mcp_functions_harness.environment import TABLE
from mcp_functions_harness.testing import MemoryTable
from tests.apps.tools import book, connect, convert, rate
from tests.browser import app_host, chromium
from tests.browser.app_host import Host

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.browser.chromium import DevTools

ENTER = 13
MARKUP = '<img src=x onerror="window.isHacked = 1"><b>Bold</b>'
NO_MODEL_CAPABILITIES: dict[str, Any] = {"serverTools": {}}
FILLED = {
    "name": "Ada", "mail": "ada@example.org", "site": "https://example.org", "day": date(2026, 7, 28), "count": 3,
    "share": 0.5, "agree": True, "size": "L", "colours": ["red", "blue"],
}  # fmt: skip


@dataclass
class Everything:
    """A field of each type that a form can have."""

    name: Annotated[str, Title("Your name"), Length(2, 40)]
    mail: Annotated[str, Format("email")]
    site: Annotated[str, Format("uri")]
    day: date
    at: datetime
    count: Annotated[int, Between(1, 9)]
    share: float
    agree: bool
    size: Literal["S", "M", "L"]
    colours: list[Literal["red", "green", "blue"]]
    note: str = ""


RECEIVED_ANSWERS = list[Everything]()


@tool
def fill(*, elicit: Elicit) -> str:
    """Ask for everything."""
    RECEIVED_ANSWERS.append(elicit("all", "Please fill this in", Everything))
    return "Thank you."


@tool
def hostile(*, elicit: Elicit) -> str:
    """Ask in markup."""
    return elicit("it", MARKUP, Annotated[str, Title(MARKUP)]) + MARKUP


@tool(single_use="replay")
def once(*, elicit: Elicit) -> str:
    """Ask once."""
    return elicit("it", "What, once?", str)


@pytest.fixture(scope="module")
def place() -> Iterator[str]:
    chromium.find_chromium()
    memory = MemoryTable(TABLE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "make_call", lambda: memory)
        with app_host.serving(serve(book, rate, connect, convert, fill, hostile, once)) as running:
            yield running


@pytest.fixture(scope="module")
def tools(place: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevTools]:
    assert place
    with chromium.running(tmp_path_factory.mktemp("profile"), "--disable-site-isolation-trials") as running:
        yield running


@pytest.fixture
def host(tools: DevTools, place: str) -> Iterator[Host]:
    tab = Host(tools, place)
    yield tab
    assert tab.complaints == [], "a policy of the host forbids what the form does"


def choose(host: Host, text: str) -> None:
    """Choose an option of the form's list by its text."""
    host.wait_inside("document.querySelector('select')")
    host.inside(
        "(() => { const list = document.querySelector('select');"
        f" list.selectedIndex = [...list.options].findIndex((each) => each.text === '{text}'); }})()"
    )


def test_the_model_gets_the_outcome_after_the_user_answers_two_questions(host: Host) -> None:
    host.run("book", {"city": "Lisbon"})
    host.shows("Where would you like to sit?")
    choose(host, "window")
    host.press_button("Send")
    host.shows("A window seat to Lisbon costs 70 EUR. Book it?")
    host.click_inside("document.querySelector('input')")
    host.press_button("Send")
    host.shows("Booked a window seat to Lisbon.")
    host.wait("seen.messages.length")
    assert [call["name"] for call in host.seen("calls")] == ["book-form", "book-form"]
    (update,) = host.seen("contexts")
    expected_message = "The user has answered the form of book. The outcome: Booked a window seat to Lisbon."
    assert update["content"] == [{"type": "text", "text": expected_message}]
    (message,) = host.seen("messages")
    assert message["content"] == [{"type": "text", "text": "I have answered the form of book."}]
    assert host.seen("sizes")[-1]["height"] > 0
    assert "book" in host.seen("forModel")
    assert "book-form" not in host.seen("forModel")


@pytest.mark.parametrize("method", ["updateModelContext", "message"])
def test_a_host_with_one_method_for_model_context_gets_the_outcome_by_that_method(host: Host, method: str) -> None:
    host.run("rate", capabilities={**NO_MODEL_CAPABILITIES, method: {"text": {}, "structuredContent": {}}})
    host.shows("How many stars?")
    host.inside("document.querySelector('input').value = '5'")
    host.press_button("Send")
    way = "contexts" if method == "updateModelContext" else "messages"
    host.wait(f"seen.{way}.length")
    (told,) = host.seen(way)
    assert told["content"][0]["text"].startswith("The user has answered the form of rate. The outcome: ")
    assert told.get("structuredContent") == ({"stars": 5} if way == "contexts" else None)


def test_the_user_can_copy_the_outcome_if_the_host_cannot_pass_it_to_the_model(host: Host) -> None:
    host.run("rate", capabilities=NO_MODEL_CAPABILITIES)
    host.shows("How many stars?")
    host.inside("document.querySelector('input').value = '5'")
    host.press_button("Send")
    host.shows("This host does not pass the outcome on. Please tell it to the assistant.")
    assert (host.seen("contexts"), host.seen("messages")) == ([], [])


def test_the_form_has_an_input_for_every_type_of_the_restricted_schema(host: Host) -> None:
    host.run("fill")
    host.shows("Please fill this in")
    kinds = host.inside("[...document.querySelectorAll('input, select')].map((each) => each.type)")
    assert kinds == [
        "text", "email", "url", "date", "datetime-local", "number", "number", "checkbox", "select-one", "checkbox",
        "checkbox", "checkbox", "text",
    ]  # fmt: skip
    host.inside(
        "(() => { const all = [...document.querySelectorAll('input, select')];"
        " const values = ['Ada', 'ada@example.org', 'https://example.org', '2026-07-28', '2026-07-28T10:00', '3'];"
        " values.forEach((value, index) => (all[index].value = value)); all[6].value = '0.5';"
        " all[7].checked = all[9].checked = all[11].checked = true; all[8].selectedIndex = 3; })()"
    )
    host.press_button("Send")
    host.shows("Thank you.")
    got = vars(RECEIVED_ANSWERS[-1])
    assert {name: value for name, value in got.items() if name in FILLED} == FILLED
    at = got["at"]
    assert isinstance(at, datetime)
    assert at.utcoffset() is not None


def test_every_field_has_a_label_a_group_and_an_error_message(host: Host) -> None:
    host.run("fill")
    host.shows("Please fill this in")
    unlabelled = "[...document.querySelectorAll('input, select')].filter((each) => !each.labels.length).length"
    assert host.inside(unlabelled) == 0
    assert host.inside("document.activeElement.textContent") == "Please fill this in"
    described = "[...document.querySelectorAll('[aria-describedby]')].every((each) => "
    described += "each.getAttribute('aria-describedby').split(' ').every((id) => document.getElementById(id)))"
    assert host.inside(described) is True
    assert host.inside("document.getElementById('status').getAttribute('role')") == "status"


def test_an_invalid_field_gets_the_focus_and_an_error_message(host: Host) -> None:
    host.run("fill")
    host.shows("Please fill this in")
    host.press_button("Send")
    assert host.inside("document.querySelector('input').getAttribute('aria-invalid')") == "true"
    assert host.inside("document.querySelectorAll('.wrong:not(:empty)').length") > 5
    assert host.seen("calls") == []


def test_the_form_can_be_used_with_the_keyboard_alone(host: Host) -> None:
    host.run("once")
    host.shows("What, once?")
    host.inside("document.querySelector('input').focus()")
    host.type("tea")
    host.press("Enter", ENTER, "\r")
    host.shows("tea")
    host.wait("seen.calls.length")


def test_a_declined_form_shows_that_it_was_declined(host: Host) -> None:
    host.run("book", {"city": "Lisbon"})
    host.press_button("Decline")
    host.shows("The user declined to answer: Where would you like to sit?")
    assert host.inside("document.querySelector('h1').textContent") == "Not done"


def test_the_form_continues_work_without_a_question_by_itself(host: Host, place: str) -> None:
    """The server keeps such rounds to hosts that stop at them, so this test writes the pending result itself."""
    assert place
    host.run("book", {"city": "Lisbon"})
    host.shows("Where would you like to sit?")
    form: Any = host.evaluate("result._meta['mcp-functions/form']")
    host.evaluate("seen.isShown = false")
    host.run("book", stored={"content": [], "_meta": {"mcp-functions/form": {**form, "questions": {}}}})
    host.shows("Where would you like to sit?")
    assert host.seen("calls")[-1]["arguments"] == {"state": form["state"], "answers": {}}


# ---- A chat that is opened again


def test_a_form_that_was_answered_is_shown_as_answered(host: Host) -> None:
    host.run("once")
    host.shows("What, once?")
    result: Any = host.evaluate("result")
    host.inside("document.querySelector('input').value = 'tea'")
    host.press_button("Send")
    host.shows("tea")
    result["_meta"]["mcp-functions/form"]["asked"] -= 60_000
    host.evaluate("seen.isShown = false")
    host.run("once", stored=result)
    host.shows("This question was answered before, or its time is over.")
    assert host.seen("calls")[-1]["arguments"]["check"] is True


def test_a_form_whose_time_is_over_is_shown_as_expired(host: Host) -> None:
    form = {"tool": "book-form", "state": "ks1.old", "questions": {"a": {}}, "expires": 1, "asked": 0}
    host.run("book", stored={"content": [], "_meta": {"mcp-functions/form": form}})
    host.shows("This question was answered before, or its time is over.")
    assert [call["arguments"] for call in host.seen("calls")] == [{"state": "ks1.old", "check": True}]


def pending(host: Host, **changed: object) -> dict[str, Any]:
    """Return a pending result of `book`, changed as a chat that is opened again or another clock shows it."""
    host.run("book", {"city": "Lisbon"})
    host.shows("Where would you like to sit?")
    form: Any = host.evaluate("result._meta['mcp-functions/form']")
    host.evaluate("seen.isShown = false")
    return {"content": [], "_meta": {"mcp-functions/form": {**form, **changed}}}


def test_a_user_with_a_wrong_clock_can_answer(host: Host) -> None:
    host.run("book", stored=pending(host, asked=1, expires=2))
    host.shows("Where would you like to sit?")
    choose(host, "window")
    host.press_button("Send")
    host.shows("A window seat to Lisbon costs 70 EUR. Book it?")


def test_work_in_a_reopened_chat_continues_only_after_a_click(host: Host) -> None:
    host.run("book", stored=pending(host, questions={}, asked=1))
    host.shows("The work has stopped here.")
    assert all(call["arguments"].get("check") for call in host.seen("calls"))
    host.press_button("Go on")
    host.shows("Where would you like to sit?")


def test_the_form_is_empty_for_a_call_without_a_question(host: Host) -> None:
    host.run("book", stored={"content": [{"type": "text", "text": "Booked."}]})
    assert host.inside("document.body.innerText.trim()") == ""


# ---- The form acts only for a question that it showed


DONE = {"content": [{"type": "text", "text": "Converted."}]}


def work(**changed: object) -> dict[str, Any]:
    """Return a pending result without a question, as the form continues it by itself."""
    form = {"tool": "convert-form", "state": "s", "questions": {}, "asked": time.time() * 1000, **changed}
    return {"content": [], "_meta": {"mcp-functions/form": form}}


@pytest.mark.parametrize("method", ["updateModelContext", "message"])
def test_the_form_says_nothing_in_the_name_of_a_person_who_was_not_asked(host: Host, method: str) -> None:
    capabilities = {**NO_MODEL_CAPABILITIES, "message": {"text": {}}, method: {"text": {}}}
    host.run("convert", stored=work(), answered=DONE, capabilities=capabilities)
    is_told = method == "updateModelContext"
    host.shows("If the assistant does not know this, please tell it." if is_told else "does not pass the outcome on.")
    texts = [update["content"][0]["text"] for update in host.seen("contexts")]
    assert texts == (["The work of convert has ended. The outcome: Converted."] if is_told else [])
    assert host.seen("messages") == []


QUESTION: dict[str, Any] = {"message": "Sure?", "requestedSchema": {"properties": {}}}


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"tool": "convert"}, id="a tool that is no answer tool"),
        pytest.param({"tool": "convert", "asked": 0}, id="such a tool in a reopened chat"),
        pytest.param({"tool": "convert", "questions": {"a": QUESTION}}, id="such a tool after a question"),
        pytest.param({"tool": ["convert-form"]}, id="a tool without a name"),
        pytest.param({"state": 1}, id="no state"),
        pytest.param({"questions": [1]}, id="no questions"),
    ],
)
def test_the_form_calls_nothing_but_answer_tools(host: Host, changed: dict[str, Any]) -> None:
    host.run("convert", stored=work(**changed), answered=DONE)
    host.inside("new Promise((done) => setTimeout(done, 50)) && 1")
    assert host.inside("document.body.innerText.trim()") == ""
    assert host.seen("calls") == []


def test_the_answer_tool_of_one_tool_leads_to_no_other(host: Host) -> None:
    host.run("convert", stored=work(), answered=work(tool="book-form") | DONE)
    host.shows("Converted.")
    assert [call["name"] for call in host.seen("calls")] == ["convert-form"]


def test_a_result_that_arrives_twice_keeps_what_the_person_has_filled_in(host: Host) -> None:
    host.run("book", {"city": "Lisbon"})
    choose(host, "window")
    host.evaluate("bridge.sendToolResult(result)")
    host.evaluate("bridge.sendToolResult({content: []})")  # of another call
    host.inside("new Promise((done) => setTimeout(done, 50)) && 1")
    assert host.inside("document.querySelector('select').selectedOptions[0].text") == "window"
    host.press_button("Send")
    host.shows("A window seat to Lisbon costs 70 EUR. Book it?")


def test_work_whose_result_arrives_twice_continues_once(host: Host) -> None:
    host.run("convert", stored=work(), answered=DONE)
    host.evaluate("bridge.sendToolResult(result)")
    host.shows("Converted.")
    host.evaluate("bridge.sendToolResult(result)")
    host.inside("new Promise((done) => setTimeout(done, 50)) && 1")
    assert len(host.seen("calls")) == 1


def test_two_clicks_send_one_answer(host: Host) -> None:
    host.run("rate")
    host.shows("How many stars?")
    host.inside("document.querySelector('input').value = '5'")
    send = "document.querySelector('button.first')"
    enter = "new KeyboardEvent('keydown', {key: 'Enter', bubbles: true})"
    host.inside(f"({send}.click(), document.querySelector('input').dispatchEvent({enter}), {send}.click(), 1)")
    host.shows("Done")
    assert len(host.seen("calls")) == 1


def test_a_form_whose_call_is_cancelled_asks_and_does_nothing_more(host: Host) -> None:
    host.run("book", {"city": "Lisbon"})
    host.shows("Where would you like to sit?")
    host.evaluate("bridge.sendToolCancelled({reason: 'the person stopped it'})")
    host.shows("The call was cancelled.")
    assert host.inside("document.querySelectorAll('button').length") == 0
    host.evaluate(f"bridge.sendToolResult({json.dumps(work())})")
    host.inside("new Promise((done) => setTimeout(done, 50)) && 1")
    assert (host.seen("calls"), host.seen("messages")) == ([], [])


# ---- What may be in a question, and who may speak to the form


def test_the_form_shows_markup_as_text(host: Host) -> None:
    host.run("hostile")
    host.shows(MARKUP)
    host.inside("document.querySelector('input').value = 'x'")
    host.press_button("Send")
    host.shows(f"x{MARKUP}")
    assert host.inside("document.querySelectorAll('main img, main b').length") == 0
    assert host.inside("window.isHacked") is None


def test_a_url_question_is_accepted_only_after_the_host_opens_the_page(host: Host) -> None:
    host.run("connect")
    host.shows("https://bank.example/login")
    host.press_button("Send")
    host.shows("Open the page first, or decline.")
    host.press_button("Open the page")
    host.wait("seen.links.length")
    host.press_button("Send")
    host.shows("Connected.")
    assert host.seen("links") == [{"url": "https://bank.example/login"}]


@pytest.mark.parametrize(
    ("url", "seen", "name"),
    [
        ("https://bank.example@evil.example/x", "https://bank.example@evil.example/x", "evil.example"),
        ("https://b\u0430nk.example/", "https://xn--bnk-6cd.example/", "xn--bnk-6cd.example"),
        ("https://evil.example/\u202egpj.exe", "https://evil.example/%E2%80%AEgpj.exe", "evil.example"),
    ],
)
def test_the_form_shows_an_address_as_the_browser_parses_it(host: Host, url: str, seen: str, name: str) -> None:
    question = {"mode": "url", "message": "Open it", "url": url}
    now = time.time() * 1000
    form = {"tool": "connect-form", "state": "s", "questions": {"it": question}, "asked": now, "expires": now + 60_000}
    host.run("connect", stored={"content": [], "_meta": {"mcp-functions/form": form}})
    host.shows(seen)
    host.shows(f"The page is of {name}.")
    host.press_button("Open the page")
    host.wait("seen.links.length")
    assert host.seen("links") == [{"url": seen}]


@pytest.mark.parametrize("url", ["javascript:parent.isHacked=1", "data:text/html,x", "file:///etc/passwd", "no url"])
def test_the_form_opens_no_address_but_a_web_page(host: Host, url: str) -> None:
    question = {"mode": "url", "message": "Open it", "url": url}
    now = time.time() * 1000
    form = {"tool": "connect-form", "state": "s", "questions": {"it": question}, "asked": now, "expires": now + 60_000}
    host.run("connect", stored={"content": [], "_meta": {"mcp-functions/form": form}})
    host.shows(url)
    assert host.inside("document.querySelectorAll('a').length") == 0
    assert "Open the page" not in host.inside("document.body.innerText")


def test_the_form_ignores_messages_of_windows_other_than_the_host(host: Host) -> None:
    host.run("book", {"city": "Lisbon"})
    host.shows("Where would you like to sit?")
    forged = '{"jsonrpc": "2.0", "method": "ui/notifications/tool-cancelled", "params": {}}'
    host.inside(f"window.postMessage({forged}, '*')")
    host.inside("new Promise((done) => setTimeout(done, 50)) && 1")
    assert host.inside("document.getElementById('status').textContent") == ""
    assert host.inside("document.querySelectorAll('select').length") == 1


def test_the_form_ignores_messages_of_inner_and_sibling_frames(host: Host) -> None:
    host.run("book", {"city": "Lisbon"})
    host.shows("Where would you like to sit?")
    forged = '{jsonrpc: "2.0", method: "ui/notifications/tool-result", params: {_meta: {"mcp-functions/form": {}}}}'
    host.inside(
        "(() => { const inner = document.body.appendChild(document.createElement('iframe'));"
        f" inner.contentWindow.eval(`parent.postMessage({forged}, '*')`); }})()"
    )
    host.evaluate(f"void frames[0].frames[0]?.postMessage({forged}, '*')")
    host.inside("new Promise((done) => setTimeout(done, 50)) && 1")
    assert host.inside("document.querySelectorAll('select').length") == 1


def test_right_to_left_text_in_a_question_does_not_reorder_other_text(host: Host) -> None:
    fields = {"it": {"type": "string", "title": "\u202eeltit\u202c", "enum": ["\u202ea", "b" * 5000]}}
    question = {"mode": "form", "message": "\u202e" + "?" * 5000, "requestedSchema": {"properties": fields}}
    host.run("book", stored=pending(host, questions={"q": question}))
    host.shows("Send")
    assert host.inside("getComputedStyle(document.querySelector('legend')).unicodeBidi") == "plaintext"
    assert host.inside("document.documentElement.scrollWidth <= window.innerWidth") is True


def test_the_form_uses_the_colours_of_the_host(host: Host) -> None:
    variables = {"--color-text-primary": "rgb(1, 2, 3)", "--font-sans": "serif", "color": "red"}
    host.run("book", {"city": "Lisbon"}, context={"theme": "dark", "styles": {"variables": variables}})
    host.shows("Where would you like to sit?")
    assert host.inside("getComputedStyle(document.body).color") == "rgb(1, 2, 3)"
    assert host.inside("document.documentElement.style.colorScheme") == "dark"
    assert host.inside("document.documentElement.style.color") == ""


def test_the_form_loads_nothing_from_the_network(host: Host) -> None:
    host.run("fill")
    host.shows("Please fill this in")
    assert host.inside("performance.getEntriesByType('resource').length") == 0


# ---- An author's app


def test_the_app_of_a_sample_shows_the_result_and_calls_its_tool(tools: DevTools) -> None:
    with app_host.serving(sample) as running:
        tab = Host(tools, running, title="Sales")
        tab.run("sales", {"year": 2026})
        tab.shows("Quarter 1: 86")
        tab.press_button("The year before")
        tab.shows("Sales of 2025")
        assert tab.complaints == []
