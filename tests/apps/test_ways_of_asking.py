"""The capabilities of a client decide how a question is asked: by elicitation, in a form of the host, or in text."""

from __future__ import annotations

from typing import Any

import pytest

from functions.plan_trip.app import plan_trip
from functions.update_work_item.app import update_work_item
from mcp_functions import Elicit, prompt, serve, tool
from mcp_functions.protocol.constants import EXTENSION_APPS, META_CLIENT_INFO
from tests.apps.tools import (
    APPS,
    FORMS,
    MESSAGE,
    NOTHING,
    book,
    connect,
    describe,
    host,
    pack,
    rate,
    request,
    state_in,
    way_of,
)
from tests.support import wire

PAGES: dict[str, Any] = {"elicitation": {"url": {}}}
NOT_HTML: dict[str, Any] = {"extensions": {EXTENSION_APPS: {"mimeTypes": ["text/html"]}}}


@pytest.mark.parametrize(
    ("declared", "chosen"),
    [
        (FORMS, "client"),
        ({"elicitation": {"form": {}}}, "client"),
        ({**FORMS, **APPS}, "client"),
        (APPS, "app"),
        ({**APPS, **PAGES}, "app"),
        ({**APPS, "sampling": {}, "roots": {}}, "app"),
        (PAGES, "words"),
        (NOTHING, "words"),
        (NOT_HTML, "words"),
        ({"extensions": {EXTENSION_APPS: {}}}, "words"),
        ({"extensions": []}, "words"),
        ({"extensions": {EXTENSION_APPS: {"mimeTypes": "text/html;profile=mcp-app"}}}, "words"),
    ],
)
def test_a_question_is_asked_in_the_way_that_the_client_declares(declared: dict[str, Any], chosen: str) -> None:
    assert way_of(host(rate, capabilities=declared).call().result) == chosen


@pytest.mark.parametrize(
    "name", ["claude-ai", "Anthropic/ClaudeAI", "ChatGPT", "openai-agents", "Visual Studio Code", "", "codex"]
)
@pytest.mark.parametrize(("declared", "chosen"), [(FORMS, "client"), (APPS, "app"), (NOTHING, "words")])
def test_the_name_of_a_client_does_not_change_the_way_of_asking(
    name: str, declared: dict[str, Any], chosen: str
) -> None:
    meta = {META_CLIENT_INFO: {"name": name, "version": "0.1.0"}}
    params = {"name": "rate", "arguments": {}}
    answer = request(serve(rate, codec=wire.PlainCodec()), "tools/call", params, capabilities=declared, meta=meta)
    assert way_of(answer["result"]) == chosen


def test_the_form_carries_the_question_and_the_text_tells_the_model_to_wait() -> None:
    talk = host(book).call(city="Lisbon")
    assert talk.result["isError"] is False
    assert talk.text.startswith(f"Not finished yet: a form asks the user: {MESSAGE} (seat: window | aisle).")
    assert "Do not answer for the user" in talk.text
    assert talk.asked == ["seat"]
    assert talk.form["tool"] == "book-form"
    assert talk.form["expires"] - talk.form["asked"] == 600_000


def test_only_meta_has_the_state_of_a_form() -> None:
    result: Any = host(book).call(city="Lisbon").result
    state = result["_meta"]["mcp-functions/form"]["state"]
    assert state.startswith("ks1.")
    assert state not in str(result["content"])
    assert "structuredContent" not in result


def test_a_conversation_continues_in_the_form_until_its_result() -> None:
    talk = host(book).call(city="Lisbon").accept(seat="window")
    assert talk.messages == {"agree": "A window seat to Lisbon costs 70 EUR. Book it?"}
    talk.accept(agree=True)
    assert (talk.done, talk.text) == (True, "Booked a window seat to Lisbon.")


def test_the_form_repeats_a_question_with_an_invalid_answer() -> None:
    talk = host(book).call(city="Lisbon").accept(seat="wing")
    assert "Please answer again" in talk.messages["seat"]
    assert talk.accept(seat="aisle").asked == ["agree"]


def test_several_questions_of_a_round_share_one_form() -> None:
    talk = host(pack).call()
    assert talk.asked == ["bag", "day"]
    assert talk.accept(bag="red", day="Monday").text == "red on Monday"


def test_a_declined_form_has_the_result_of_a_declined_elicitation() -> None:
    talk = host(book).call(city="Lisbon").decline()
    assert (talk.result["isError"], talk.text) == (True, f"The user declined to answer: {MESSAGE}")


def test_the_form_offers_the_page_of_a_url_question() -> None:
    talk = host(connect).call()
    assert talk.requests["bank"]["params"]["url"] == "https://bank.example/login"
    assert talk.answer(bank={"action": "accept"}).text == "Connected."


def test_the_form_passes_structured_content_to_the_model() -> None:
    talk = host(rate).call().accept(stars=5)
    assert talk.result["structuredContent"] == {"stars": 5}


def test_a_form_does_not_ask_for_sampling() -> None:
    talk = host(describe).call()
    assert talk.result["isError"] is True
    assert "It asks: a message of the client's model." in talk.text


def test_a_tool_that_requires_elicitation_refuses_a_host_with_apps() -> None:
    @tool(requires=["elicitation"])
    def pay(*, elicit: Elicit) -> str:
        return elicit("pin", "Which PIN?", str)

    talk = host(pay).call()
    assert (talk.status, talk.error["code"]) == (400, -32021)
    assert "Which PIN?" in talk.error["message"]
    assert talk.error["data"] == {"requiredCapabilities": {"elicitation": {}}}


@pytest.mark.parametrize("required", ["elicitation.url", "sampling"])
def test_a_tool_refuses_a_client_only_for_a_capability_that_it_requires(required: str) -> None:
    @tool(requires=[required])
    def pay(*, elicit: Elicit) -> str:
        return elicit("pin", "Which PIN?", str)

    assert host(pay).call().asked == ["pin"]


def test_a_tool_whose_result_the_model_needs_at_once_skips_the_form() -> None:
    @tool(form=False, ask_in_words=["size"])
    def measure(*, elicit: Elicit) -> str:
        return elicit("size", "Which size?", str)

    function = serve(measure)
    listed = [entry["name"] for entry in request(function, "tools/list")["result"]["tools"]]
    assert listed == ["measure", "measure-answer"]
    talk = host(measure).call()
    assert talk.form == {}
    answered = {"size": {"action": "accept", "content": {"size": "L"}}}
    assert talk.submit("measure-answer", state=state_in(talk.text), answers=answered).text == "L"


def test_a_prompt_names_the_missing_capability_because_it_has_no_result_for_it() -> None:
    @prompt
    def brief(*, elicit: Elicit) -> str:
        return elicit("reader", "Who reads it?", str)

    error = host(brief).get().error
    assert error["code"] == -32021
    assert "Who reads it?" in error["message"]


@pytest.mark.parametrize(("declared", "can"), [(FORMS, True), (APPS, True), (NOTHING, False), (NOT_HTML, False)])
def test_possible_is_true_if_the_client_has_any_way_of_asking(declared: dict[str, Any], *, can: bool) -> None:
    @tool
    def ask(*, elicit: Elicit) -> str:
        return str(elicit.possible)

    assert host(ask, capabilities=declared).call().text == str(can)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"requires": ["elicit"]}, "requires is a list of capabilities"),
        ({"requires": "elicitation"}, "requires is a list of capabilities"),
        ({"ask_in_words": "seat"}, "ask_in_words is a list of keys"),
        ({"app": "https://shop.example"}, "app is the URI of a resource"),
        ({"visibility": ["user"]}, "visibility is a list"),
    ],
)
def test_an_invalid_option_for_apps_is_refused_at_decoration(options: Any, problem: str) -> None:  # noqa: ANN401
    with pytest.raises(TypeError, match=problem):
        tool(name="odd", **options)(lambda: None)


# ---- Clients that declare something else in a later request


def test_a_client_that_declares_elicitation_in_a_later_request_continues_in_its_form() -> None:
    function = serve(book)
    form = request(function, "tools/call", {"name": "book", "arguments": {"city": "Lisbon"}})["result"]
    for answers in ({"seat": {"action": "accept", "content": {"seat": "aisle"}}}, {}):
        pending = form["_meta"]["mcp-functions/form"]
        sent = {"name": pending["tool"], "arguments": {"state": pending["state"], "answers": answers}}
        form = request(function, "tools/call", sent, capabilities={**APPS, **FORMS})["result"]
    assert list(form["_meta"]["mcp-functions/form"]["questions"]) == ["agree"]


def test_a_client_that_declares_apps_in_a_later_request_is_not_asked_in_a_form() -> None:
    function = serve(book)
    asked = request(function, "tools/call", {"name": "book", "arguments": {"city": "Lisbon"}}, capabilities=NOTHING)
    state = state_in(asked["result"]["content"][0]["text"])
    sent = {"name": "book-answer", "arguments": {"state": state, "answers": {"seat": {}}}}
    result = request(function, "tools/call", sent, capabilities=APPS)["result"]
    assert result["content"][0]["text"].startswith("Not finished: this client declares no way to ask its user.")


# ---- Samples


def test_a_low_level_function_asks_in_the_form_and_receives_its_state() -> None:
    talk = host(plan_trip).call(days=5)
    assert talk.asked == ["where", "when"]
    talk.answer(where={"action": "accept", "content": {"city": "Lisbon"}})
    assert talk.asked == ["when"]
    assert talk.accept(when="May").text == "5 days in Lisbon in May."


def test_a_form_has_the_camel_case_names_of_its_tool() -> None:
    talk = host(update_work_item).call(workItemId=4522, fields={"System.State": "Resolved"})
    talk.accept(resolution="Duplicate").accept(duplicate_of=4301)
    assert talk.text.startswith("Bug #4522 resolved as Duplicate of Bug #4301.")


@pytest.mark.parametrize(
    ("form", "declared", "finisher"),
    [
        (True, NOTHING, "a client with elicitation or MCP Apps"),
        (False, NOTHING, "a client with elicitation"),
        (False, APPS, "a client with elicitation"),
        (False, FORMS, "a client with elicitation.url"),
    ],
)
def test_the_text_of_an_unfinished_call_names_a_client_that_can_finish_it(
    declared: dict[str, Any], finisher: str, *, form: bool
) -> None:
    @tool(form=form)
    def consent(*, elicit: Elicit) -> str:
        if declared == FORMS:
            elicit.url("page", "Sign in", "https://bank.example/login")
        return elicit("it", "Which?", str)

    assert (
        host(consent, capabilities=declared)
        .call()
        .text.endswith(f"tell the user that {finisher} can finish this call.")
    )
