"""The official Python client completes every sample function, at the front door and at its own endpoint."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from mcp import Client, MCPError

from tests.clients.earlier import offered_by
from tests.clients.people import CANCEL, DECLINE, Person, accept, talk, text
from tests.support.modes import MODES

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_types import CallToolResult, ElicitResult

    from mcp_functions_harness import Harness

    UrlOf = Callable[[str], str]

RESOLVE = {"workItemId": 4522, "fields": {"System.State": "Resolved"}}
HOW = "Resolving Bug #4522 requires a resolution. How was this bug resolved?"
WHICH = "Since this is a duplicate, which work item is the original?"
DUPLICATE = "Bug #4522 resolved as Duplicate of Bug #4301. State set to Resolved and duplicate link created."
PRICE = "Flight MF 106 to Lisbon costs 420 EUR. Book it?"
SUMMARY = "468 tickets in 2026, most of them in September: 79."
SAMPLES = {
    "audit_year",
    "update_work_item",
    "get_weather",
    "add",
    "briefing",
    "ticket",
    "book_trip",
    "pay_invoice",
    "plan_trip",
    "summarize_year",
    "house_rules",
    "sales",
}

pytestmark = pytest.mark.parametrize("harness", MODES, indirect=True)
stopping = pytest.mark.parametrize(
    ("answer", "did"),
    [(DECLINE, "declined to answer"), (CANCEL, "dismissed without answering")],
    ids=["decline", "cancel"],
)


def test_every_sample_function_is_listed_under_its_name(harness: Harness) -> None:
    async def lists(client: Client) -> list[str]:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        prompts = [prompt.name for prompt in (await client.list_prompts()).prompts]
        templates = [template.name for template in (await client.list_resource_templates()).resource_templates]
        resources = [resource.name for resource in (await client.list_resources()).resources]
        return tools + prompts + templates + resources

    assert sorted(Person().use(harness.url, lists)) == offered_by(harness)


def test_every_sample_function_has_a_conversation_in_this_file(harness: Harness) -> None:
    assert set(harness.functions) == {"mcp", *SAMPLES}


def test_a_client_without_tasks_gets_an_error_that_audit_year_requires_them(url_of: UrlOf) -> None:
    with pytest.raises(MCPError) as error:
        Person().call_tool(url_of("audit_year"), "audit_year", {"year": 2025})
    assert error.value.error.code == -32021


def test_resolving_as_a_duplicate_takes_three_rounds(url_of: UrlOf) -> None:
    person = Person(accept(resolution="Duplicate"), accept(duplicateOfId=4301))
    result = person.call_tool(url_of("update_work_item"), "update_work_item", RESOLVE)
    assert (text(result), result.is_error) == (DUPLICATE, False)
    assert [message for message, _form in person.asked] == [HOW, WHICH]


def test_the_form_offers_the_resolutions_as_choices(url_of: UrlOf) -> None:
    person = Person(accept(resolution="Fixed"))
    result = person.call_tool(url_of("update_work_item"), "update_work_item", RESOLVE)
    ((_message, form),) = person.asked
    assert form["properties"]["resolution"]["enum"] == ["Fixed", "Won't Fix", "Duplicate", "By Design"]
    assert text(result) == "Bug #4522 resolved as Fixed. State set to Resolved."


def test_an_update_that_resolves_nothing_asks_nothing(url_of: UrlOf) -> None:
    person = Person()
    arguments = {"workItemId": 4522, "fields": {"System.Title": "Paper jam"}}
    result = person.call_tool(url_of("update_work_item"), "update_work_item", arguments)
    assert (text(result), person.asked) == ("Bug #4522 updated: System.Title.", [])


@stopping
def test_a_user_who_declines_the_resolution_gets_a_tool_error_for_the_model(
    url_of: UrlOf, answer: ElicitResult, did: str
) -> None:
    result = Person(answer).call_tool(url_of("update_work_item"), "update_work_item", RESOLVE)
    assert (text(result), result.is_error) == (f"The user {did}: {HOW}", True)


@stopping
def test_a_user_who_declines_the_second_question_gets_a_tool_error_for_the_model(
    url_of: UrlOf, answer: ElicitResult, did: str
) -> None:
    person = Person(accept(resolution="Duplicate"), answer)
    result = person.call_tool(url_of("update_work_item"), "update_work_item", RESOLVE)
    assert (text(result), result.is_error) == (f"The user {did}: {WHICH}", True)


def test_a_question_with_an_answer_outside_the_choices_is_asked_again(url_of: UrlOf) -> None:
    person = Person(accept(resolution="Forgotten"), accept(resolution="Fixed"))
    result = person.call_tool(url_of("update_work_item"), "update_work_item", RESOLVE)
    assert text(result) == "Bug #4522 resolved as Fixed. State set to Resolved."
    assert [message.startswith(HOW) for message, _form in person.asked] == [True, True]


def test_a_user_who_gives_a_name_gets_the_weather(url_of: UrlOf) -> None:
    person = Person(accept(name="octocat"))
    result = person.call_tool(url_of("get_weather"), "get_weather", {"location": "New York"})
    assert text(result) == "Current weather in New York:\nTemperature: 72°F\nConditions: Partly cloudy"
    assert [message for message, _form in person.asked] == ["Please provide your GitHub username"]


@stopping
def test_a_user_who_gives_no_name_gets_no_weather(url_of: UrlOf, answer: ElicitResult, did: str) -> None:
    result = Person(answer).call_tool(url_of("get_weather"), "get_weather", {"location": "New York"})
    assert (text(result), result.is_error) == (f"The user {did}: Please provide your GitHub username", True)


def test_two_numbers_are_added_without_a_question(url_of: UrlOf) -> None:
    person = Person()
    result = person.call_tool(url_of("add"), "add", {"a": 2, "b": 40})
    assert (text(result), result.structured_content, person.asked) == ("42", 42, [])


def test_a_prompt_names_the_audience_that_the_user_chose(url_of: UrlOf) -> None:
    person = Person(accept(audience="executives", minutes=2))
    result = person.get_prompt(url_of("briefing"), "briefing", {"topic": "floor 3"})
    assert text(result) == "Write a briefing on floor 3 for executives, to be read in 2 minutes."
    assert [message for message, _form in person.asked] == ["Who is the briefing on floor 3 for?"]


@stopping
def test_a_prompt_without_an_audience_is_refused(url_of: UrlOf, answer: ElicitResult, did: str) -> None:
    with pytest.raises(MCPError) as error:
        Person(answer).get_prompt(url_of("briefing"), "briefing", {"topic": "floor 3"})
    expected = f"The user {did}: Who is the briefing on floor 3 for?"
    assert (error.value.code, error.value.message) == (-32602, expected)


def test_a_user_who_gives_a_reason_reads_the_ticket(url_of: UrlOf) -> None:
    person = Person(accept(reason="I have the extinguisher"))
    result = person.read_resource(url_of("ticket"), "tickets://IT/42")
    expected = "IT-42: the printer on floor 3 is on fire. (Read because: I have the extinguisher)"
    assert text(result) == expected
    assert [message for message, _form in person.asked] == ["Why do you need to read IT-42?"]


@pytest.mark.parametrize("answer", [DECLINE, CANCEL], ids=["decline", "cancel"])
def test_a_user_who_gives_no_reason_reads_a_redacted_ticket(url_of: UrlOf, answer: ElicitResult) -> None:
    assert text(Person(answer).read_resource(url_of("ticket"), "tickets://IT/42")) == "IT-42: [redacted]"


def test_a_user_who_accepts_the_price_books_the_trip(url_of: UrlOf) -> None:
    person = Person(accept(consent=True))
    result = person.call_tool(url_of("book_trip"), "book_trip", {"city": "Lisbon"})
    assert re.fullmatch("Booked MF 106 to Lisbon: receipt [0-9a-f]{8} for 420 EUR.", text(result))
    assert [message for message, _form in person.asked] == [PRICE]


def test_a_user_who_answers_no_to_the_price_books_no_trip(url_of: UrlOf) -> None:
    result = Person(accept(consent=False)).call_tool(url_of("book_trip"), "book_trip", {"city": "Lisbon"})
    assert (text(result), result.is_error) == ("Nothing was booked.", False)


@stopping
def test_a_user_who_declines_books_no_trip(url_of: UrlOf, answer: ElicitResult, did: str) -> None:
    result = Person(answer).call_tool(url_of("book_trip"), "book_trip", {"city": "Lisbon"})
    assert (text(result), result.is_error) == (f"The user {did}: {PRICE}", True)


def test_a_user_who_approves_pays_the_invoice(url_of: UrlOf) -> None:
    person = Person(accept(approval=True))
    result = person.call_tool(url_of("pay_invoice"), "pay_invoice", {"number": "2026-001"})
    assert re.fullmatch("Paid: transfer [0-9a-f]{8} of 1290 EUR for 2026-001.", text(result))
    assert [message for message, _form in person.asked] == ["Pay invoice 2026-001, 1290 EUR?"]


def test_plan_trip_asks_its_two_questions_in_one_round(url_of: UrlOf, harness: Harness) -> None:
    async def planned(client: Client) -> tuple[CallToolResult, int]:
        await client.list_tools()  # now only the rounds are left to count
        before = len(harness.invocations)
        result = await client.call_tool("plan_trip", {"days": 5})
        return result, [invocation.folder for invocation in harness.invocations[before:]].count("plan_trip")

    person = Person(accept(city="Lisbon"), accept(month="May"))
    result, rounds = person.use(url_of("plan_trip"), planned)
    assert (text(result), rounds) == ("5 days in Lisbon in May.", 2)
    assert [message for message, _form in person.asked] == ["Where to?", "In which month?"]


@pytest.mark.parametrize("answer", [DECLINE, CANCEL], ids=["decline", "cancel"])
def test_a_user_who_declines_plans_no_trip(url_of: UrlOf, answer: ElicitResult) -> None:
    result = Person(accept(city="Lisbon"), answer).call_tool(url_of("plan_trip"), "plan_trip", {"days": 5})
    assert text(result) == "No trip was planned."


def test_a_year_is_summarized_without_a_question(url_of: UrlOf) -> None:
    person = Person()
    result = person.call_tool(url_of("summarize_year"), "summarize_year", {"year": 2026})
    assert (text(result), person.asked) == (SUMMARY, [])


def test_a_user_reads_the_house_rules_in_the_chosen_language(url_of: UrlOf) -> None:
    person = Person(accept(reader="Deutsch"))
    assert text(person.read_resource(url_of("house_rules"), "house://rules")).startswith("Schuhe aus.")
    assert [message for message, _form in person.asked] == ["In which language would you like to read them?"]


@pytest.mark.parametrize("answer", [DECLINE, CANCEL], ids=["decline", "cancel"])
def test_a_user_who_chooses_no_language_reads_the_house_rules_in_english(url_of: UrlOf, answer: ElicitResult) -> None:
    assert text(Person(answer).read_resource(url_of("house_rules"), "house://rules")).startswith("Shoes off.")


@pytest.mark.parametrize("function", ["update_work_item", "get_weather"])
def test_a_client_without_elicitation_gets_the_question_as_text(url_of: UrlOf, function: str) -> None:
    arguments = RESOLVE if function == "update_work_item" else {"location": "New York"}
    result = talk(Client(url_of(function)), lambda client: client.call_tool(function, arguments))
    assert result.is_error
    assert "this client declares no way to ask its user" in text(result)


def test_a_client_without_elicitation_can_call_add(url_of: UrlOf) -> None:
    result = talk(Client(url_of("add")), lambda client: client.call_tool("add", {"a": 1, "b": 1}))
    assert text(result) == "2"
