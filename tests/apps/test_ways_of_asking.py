"""The capabilities of a client decide how a question is asked: by elicitation, in a form of the host, or in text."""

from __future__ import annotations

import re
from typing import Any

import pytest

from functions.plan_trip.app import plan_trip
from functions.update_work_item.app import update_work_item
from mcp_functions import Elicit, prompt, serve, tool
from mcp_functions.protocol.constants import APP_FORM_URI, EXTENSION_APPS, META_CLIENT_INFO
from tests.apps.tools import APPS, FORMS, MESSAGE, book, connect, convert, describe, host, pack, rate, request
from tests.support import wire

PAGES: dict[str, Any] = {"elicitation": {"url": {}}}
NOTHING: dict[str, Any] = {}
NOT_HTML: dict[str, Any] = {"extensions": {EXTENSION_APPS: {"mimeTypes": ["text/html"]}}}
CLAUDE_AI = {"name": "Anthropic/ClaudeAI", "version": "1.0.0"}


def way_of(result: dict[str, Any]) -> str:
    if result["resultType"] == "input_required":
        return "client"
    return "app" if "mcp-functions/form" in result["_meta"] else "words"


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
    result = host(book).call(city="Lisbon").result
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
    assert talk.submit("measure-answer", state=talk.text.split('"')[3], answers=answered).text == "L"


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


# ---- Rounds without a question


def call_convert(info: dict[str, str], declared: dict[str, Any]) -> dict[str, Any]:
    function = serve(convert, codec=wire.PlainCodec())
    params = {"name": "convert", "arguments": {}}
    answer = request(function, "tools/call", params, capabilities=declared, meta={META_CLIENT_INFO: info})
    result: dict[str, Any] = answer["result"]
    return result


def test_a_host_that_does_not_continue_a_round_without_a_question_continues_it_in_the_form() -> None:
    result = call_convert(CLAUDE_AI, APPS)
    assert way_of(result) == "app"
    assert result["_meta"]["mcp-functions/form"]["questions"] == {}
    assert result["content"][0]["text"].startswith("The work is not finished, and nothing is lost.")


def test_work_of_several_rounds_continues_in_the_form_until_its_result() -> None:
    function = serve(convert, codec=wire.PlainCodec())
    meta = {META_CLIENT_INFO: CLAUDE_AI}
    result = request(function, "tools/call", {"name": "convert", "arguments": {}}, meta=meta)["result"]
    for _ in range(2):
        form = result["_meta"]["mcp-functions/form"]
        sent = {"name": form["tool"], "arguments": {"state": form["state"], "answers": {}}}
        result = request(function, "tools/call", sent, meta=meta)["result"]
    assert result["content"][0]["text"] == "Converted 2 pages."


def test_a_host_without_apps_that_does_not_continue_gets_an_answer_tool_that_does() -> None:
    function = serve(convert, codec=wire.PlainCodec())
    options = {"capabilities": NOTHING, "meta": {META_CLIENT_INFO: CLAUDE_AI}}
    listed = [entry["name"] for entry in request(function, "tools/list", **options)["result"]["tools"]]
    assert listed == ["convert", "convert-answer"]
    result = request(function, "tools/call", {"name": "convert", "arguments": {}}, **options)["result"]
    for _ in range(2):
        assert 'call convert-answer with "state": ' in result["content"][0]["text"]
        state = result["content"][0]["text"].split('"')[3]
        sent = {"name": "convert-answer", "arguments": {"state": state}}
        result = request(function, "tools/call", sent, **options)["result"]
    assert result["content"][0]["text"] == "Converted 2 pages."


@pytest.mark.parametrize(
    ("info", "declared"),
    [
        ({"name": "Anthropic/ClaudeAI", "version": "1.0.1"}, APPS),
        (CLAUDE_AI, {**APPS, **FORMS}),
        ({"name": "another", "version": "0.1.0"}, APPS),
    ],
    ids=["a newer version", "one that declares elicitation", "another client"],
)
def test_every_other_client_gets_input_required_for_a_round_without_a_question(
    info: dict[str, str], declared: dict[str, Any]
) -> None:
    assert call_convert(info, declared)["resultType"] == "input_required"


# ---- Lists


def listed_names(declared: dict[str, Any], method: str = "tools/list") -> list[str]:
    function = serve(book, rate)
    result = request(function, method, capabilities=declared)["result"]
    return [entry["name"] for entry in result[method.removesuffix("/list")]]


@pytest.mark.parametrize(
    ("declared", "listed"),
    [
        (FORMS, ["book", "rate"]),
        ({**FORMS, **APPS}, ["book", "rate"]),
        (APPS, ["book", "book-form", "rate", "rate-form"]),
        (NOTHING, ["book", "book-answer", "rate"]),
    ],
)
def test_a_list_has_the_answer_tools_that_its_client_can_use(declared: dict[str, Any], listed: list[str]) -> None:
    assert listed_names(declared) == listed


def test_a_host_with_apps_finds_the_form_linked_and_its_answer_tool_hidden_from_the_model() -> None:
    result = request(serve(rate), "tools/list")["result"]
    asking, answer_tool = result["tools"]
    assert asking["_meta"] == {"ui": {"resourceUri": APP_FORM_URI}}
    assert "outputSchema" not in asking
    assert answer_tool["_meta"] == {"ui": {"visibility": ["app"]}}
    assert result["cacheScope"] == "private"
    assert "outputSchema" in request(serve(rate), "tools/list", capabilities=FORMS)["result"]["tools"][0]


def test_lists_of_clients_with_elicitation_stay_public() -> None:
    assert request(serve(rate), "tools/list", capabilities=FORMS)["result"]["cacheScope"] == "public"


def test_a_host_with_apps_finds_and_reads_the_form() -> None:
    function = serve(rate)
    assert "resources" in request(function, "server/discover")["result"]["capabilities"]
    (entry,) = request(function, "resources/list")["result"]["resources"]
    assert (entry["uri"], entry["mimeType"]) == (APP_FORM_URI, "text/html;profile=mcp-app")
    result = request(function, "resources/read", {"uri": APP_FORM_URI})["result"]
    (page,) = result["contents"]
    assert page["mimeType"] == "text/html;profile=mcp-app"
    assert page["_meta"] == {"ui": {"prefersBorder": True}}
    assert len(page["text"].encode()) < 30_000


def test_a_tool_that_never_asks_has_no_form_and_no_answer_tool() -> None:
    @tool
    def add(a: int, b: int) -> int:
        return a + b

    function = serve(add)
    (entry,) = request(function, "tools/list")["result"]["tools"]
    assert "_meta" not in entry
    assert request(function, "resources/read", {"uri": APP_FORM_URI})["error"]["code"] == -32601


def test_a_tool_cannot_have_the_name_of_an_answer_tool() -> None:
    @tool(name="rate-form")
    def other() -> str:
        return ""

    with pytest.raises(ValueError, match="the name of its answer tool"):
        serve(rate, other)


@pytest.mark.parametrize("elicitation", [True, False])
@pytest.mark.parametrize("apps", [True, False])
def test_only_clients_with_apps_may_call_the_answer_tool_of_a_form(*, elicitation: bool, apps: bool) -> None:
    declared = {**(FORMS if elicitation else {}), **(APPS if apps else {})}
    talk = host(rate, capabilities=declared)
    talk.submit("rate-form", state="ks1.AA")
    assert talk.error["message"] == ("Invalid or expired requestState" if apps else "Unknown tool")


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
    state = re.search(r"ks1\.[\w-]+", asked["result"]["content"][0]["text"])
    assert state
    sent = {"name": "book-answer", "arguments": {"state": state[0], "answers": {"seat": {}}}}
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
