"""The page "Writing a conversation": its code runs, and every sentence of it is true.

The other files whose names begin with test_writing_a_conversation contain the tests of one subject each.
"""

from __future__ import annotations

import asyncio
import base64
import contextvars
import inspect
import io
import os
import random
import re
import subprocess
import sys
import threading
import tomllib
from dataclasses import dataclass, replace
from datetime import date, datetime  # noqa: TC003 - read at run time, from annotations
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from functions.book_trip import app as book_trip
from mcp_functions import Elicit, Question, Step, prompt, resource, serve, tool
from mcp_functions.annotated import Between, Format, Length, Number, Title, Titles
from mcp_functions_harness import Harness, checks
from mcp_functions_harness.command import run as main
from mcp_functions_harness.terminal.outputs import TextOutput
from mcp_functions_harness.testing import Conversation, deployed
from tests.docs.pages import ROOT, Page
from tests.docs.stand_ins import FROZEN, YES, Clock, Ok
from tests.harness.conftest import write_functions
from tests.harness.test_serve_command import FILES, Serving

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_functions.http.gateway import LambdaFunction

PAGE = Page.named("writing-a-conversation.md")


# ---- A whole function


def test_the_input_schema_has_only_the_parameters_before_the_star(page: dict[str, Any]) -> None:
    described = page["open_ticket"].describe()
    assert described["description"] == "Open a support ticket."
    assert list(described["inputSchema"]["properties"]) == ["title"]
    assert "elicit" not in str(described)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Everything(BaseModel):
    text: str = Field(min_length=1, description="Any words")
    whole: int = Field(ge=1, le=5)
    fraction: float
    number: Number
    agreed: bool
    day: date
    moment: datetime
    choice: Literal["a", "b"]
    colour: Colour
    several: list[Literal["a", "b"]]
    optional: str = "nothing"


@dataclass
class Light:
    text: Annotated[str, Length(1, None), "Any words"]
    whole: Annotated[int, Between(1, 5)]
    fraction: float
    number: Number
    agreed: bool
    day: date
    moment: datetime
    choice: Literal["a", "b"]
    colour: Colour
    several: list[Literal["a", "b"]]
    optional: str = "nothing"


def test_annotated_adds_a_title_a_description_and_limits() -> None:
    def field(form: Any) -> dict[str, Any]:  # noqa: ANN401 - a type
        wire: Any = Question("Well?", form).wire("it")
        found: dict[str, Any] = wire["params"]["requestedSchema"]["properties"]["it"]
        return found

    assert field(Annotated[str, Title("Mail"), "Where to", Format("email"), Length(3, None)]) == {
        "type": "string",
        "title": "Mail",
        "description": "Where to",
        "format": "email",
        "minLength": 3,
    }
    assert field(Annotated[int, Between(1, 9)]) == {"type": "integer", "minimum": 1, "maximum": 9}
    assert field(Annotated[Literal["a", "b"], Titles("One", "Two")]) == {
        "type": "string",
        "oneOf": [{"const": "a", "title": "One"}, {"const": "b", "title": "Two"}],
    }


@pytest.mark.parametrize("everything", [Everything, Light])
def test_a_form_has_the_fields_that_the_page_lists(everything: type[Everything | Light]) -> None:
    heard = []

    @tool
    def asking(*, elicit: Elicit) -> str:
        """Ask for everything that there is."""
        heard.append(elicit("form", "Everything?", everything))
        return "thanks"

    talk = Conversation(serve(asking)).call()
    form = talk.requests["form"]["params"]["requestedSchema"]
    kinds = {name: field["type"] for name, field in form["properties"].items()}
    assert kinds == {
        "text": "string",
        "whole": "integer",
        "fraction": "number",
        "number": "number",
        "agreed": "boolean",
        "day": "string",
        "moment": "string",
        "choice": "string",
        "colour": "string",
        "several": "array",
        "optional": "string",
    }
    assert form["properties"]["text"]["description"] == "Any words"
    assert (form["properties"]["whole"]["minimum"], form["properties"]["whole"]["maximum"]) == (1, 5)
    assert form["required"] == [name for name in kinds if name != "optional"]
    filled: dict[str, Any] = {"text": "x", "whole": 5, "fraction": 0.5, "number": 7.0, "agreed": True, "choice": "a"}
    filled |= {"day": "2026-07-28", "moment": "2026-07-28T09:30:00Z"}
    talk.accept(form={**filled, "colour": "blue", "several": ["a", "b"]})
    (answer,) = heard
    assert (answer.number, type(answer.number)) == (7, int)
    assert (answer.colour, answer.several, answer.optional) == (Colour.BLUE, ["a", "b"], "nothing")


def test_the_checks_name_the_missing_parts_of_a_new_folder() -> None:
    project = checks.read(ROOT)
    new = {"open_ticket"}
    project_with_folder = replace(project, folders=project.folders | new, offering=project.offering | new)
    block, listed = (line for claim in checks.CHECKS for line in claim(project_with_folder))
    assert block.startswith("functions/open_ticket has no block in template.yaml: add OpenTicket with")
    assert listed == "functions/open_ticket offers nothing in functions/mcp/catalog.json: run make catalog"


def test_camel_case_renames_arguments_and_fields() -> None:
    class Original(BaseModel):
        original_id: int

    @tool(camel_case=True)
    def merge(work_item: int, *, elicit: Elicit) -> str:
        """Merge a work item into its original."""
        return f"{work_item} into {elicit('the_original', 'Which is the original?', Original).original_id}"

    talk = Conversation(serve(merge)).call(workItem=2)
    assert list(talk.requests) == ["the_original"]
    assert talk.accept(the_original={"originalId": 1}).text == "2 into 1"


VARIES = re.compile(r"\d+ (ms|B)")


def test_serve_prints_the_rounds_that_the_page_shows(tmp_path: Path) -> None:
    code = PAGE.code("python").partition("handler = serve(open_ticket)\n")[0]
    served = "handler = serve(close_bug, open_ticket)\n"
    write_functions(tmp_path / "functions", {"open_ticket/app.py": code + served})
    out = io.StringIO()
    output = TextOutput(out)
    with Harness(tmp_path / "functions", state_dir=tmp_path, watcher=output) as harness:
        answers = ["--answer", "urgency=high", "--answer", "phone=112"]
        url = f"{harness.url}/open_ticket"
        assert main(["call", "open_ticket", "title=Fire", *answers, "--url", url]) == 0
    rounds = [line for line in out.getvalue().splitlines() if line.startswith("  round ")]
    shown = PAGE.code("text").splitlines()[-3:]
    assert [VARIES.sub("*", line) for line in rounds] == [VARIES.sub("*", line) for line in shown]


def test_serve_shows_output_tracebacks_and_answers_or_lambdas_lines(tmp_path: Path) -> None:
    write_functions(tmp_path / "functions", FILES)
    with Serving(tmp_path, "--show-answers") as serving:
        asked = serving.call(serving.call()["requestState"], date="Monday")
        serving.call(asked["requestState"], phone="secret-boom")
        for shown in ("a printed line", "a log line", "ValueError: boom happened", 'date answered {"action": "accept"'):
            serving.wait_for(shown)
    with Serving(tmp_path, "--log", "json") as serving:
        serving.call()
        serving.wait_for('"message": "answered: input_required"')


# ---- How it runs


def test_two_questions_run_the_function_three_times_from_its_start() -> None:
    lines = []

    @tool
    def asking(*, elicit: Elicit) -> str:
        """Ask twice."""
        lines.append("first line")
        elicit("one", "One?", Ok)
        lines.append("second line")
        elicit("two", "Two?", Ok)
        return "done"

    talk = Conversation(serve(asking)).call()
    assert (talk.asked, lines) == (["one"], ["first line"])
    talk.accept(one=YES)
    assert (talk.asked, lines[1:]) == (["two"], ["first line", "second line"])
    talk.accept(two=YES)
    assert (talk.text, lines[3:]) == ("done", ["first line", "second line"])
    assert len(talk.rounds) == 3


def test_each_round_can_run_in_another_container() -> None:
    memory: list[str] = []

    def container() -> LambdaFunction:
        counted: list[str] = []  # as good as a module's variable: it lives and dies with the container

        @tool
        def asking(*, elicit: Elicit) -> str:
            """Ask twice."""
            counted.append("ran")
            elicit("one", "One?", Ok)
            elicit("two", "Two?", Ok)
            memory.extend(counted)
            return "done"

        return serve(asking)

    talk = Conversation(container()).call().upgrade(container()).accept(one=YES).upgrade(container()).accept(two=YES)
    assert (talk.text, memory) == ("done", ["ran"])


def test_no_except_can_keep_a_round_from_ending() -> None:
    @tool
    def careful(*, elicit: Elicit) -> str:
        """Catch what Exception is."""
        try:
            return str(elicit("sure", "Sure?", Ok).ok)
        except Exception:  # noqa: BLE001 - what authors write
            return "something went wrong"

    @tool
    def careless(*, elicit: Elicit) -> str:
        """Catch everything."""
        try:
            return str(elicit("sure", "Sure?", Ok).ok)
        except:  # noqa: E722 - what authors write
            return "something went wrong"

    for handler in (careful, careless):
        talk = Conversation(serve(handler)).call()
        assert talk.asked == ["sure"]
        assert talk.accept(sure=YES).text == "True"


def test_a_helper_function_asks_a_question() -> None:
    def sure(elicit: Elicit, what: str) -> bool:
        return elicit("sure", f"{what}: are you sure?", Ok).ok

    @tool
    def delete(name: str, *, elicit: Elicit) -> str:
        """Delete something."""
        return "gone" if sure(elicit, name) else "kept"

    talk = Conversation(serve(delete)).call(name="x")
    assert talk.messages == {"sure": "x: are you sure?"}
    assert talk.accept(sure=YES).text == "gone"


def test_tasks_of_an_async_handler_ask_in_one_round() -> None:
    @tool
    async def asking(*, elicit: Elicit) -> str:
        """Ask in two tasks, and then once more."""

        async def one(key: str) -> bool:
            await asyncio.sleep(0)
            return elicit(key, f"{key}?", Ok).ok

        async with asyncio.TaskGroup() as tasks:
            answers = [tasks.create_task(one(key)) for key in ("left", "right")]
        return f"{[answer.result() for answer in answers]} {await one('last')}"

    talk = Conversation(serve(asking)).call()
    assert talk.asked == ["left", "right"]
    talk.accept(left=YES, right=YES)
    assert talk.accept(last=YES).text == "[True, True] True"


def test_every_call_uses_the_client_of_the_module() -> None:
    lock = asyncio.Lock()  # like a client, it belongs to the loop in which a task first waits for it

    @tool
    async def use() -> int:
        """Use the lock in two tasks."""

        async def use_it() -> int:
            async with lock:
                await asyncio.sleep(0)
                return 1

        return sum(await asyncio.gather(use_it(), use_it()))

    talk = Conversation(serve(use))
    assert [talk.call().result["structuredContent"] for _ in range(2)] == [2, 2]


def test_a_task_that_is_left_running_is_cancelled_with_its_call() -> None:
    ended: list[str] = []

    async def watch() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("watch")

    @tool
    async def leaves() -> str:
        """Leave a task running."""
        watching = asyncio.create_task(watch())
        await asyncio.sleep(0)
        return str(watching.done())

    assert Conversation(serve(leaves)).call().text == "False"
    assert ended == ["watch"]


def test_a_task_with_a_context_of_its_own_outlives_its_call() -> None:
    over = asyncio.Event()
    kept: list[asyncio.Task[Any]] = []

    @tool
    async def begins() -> str:
        """Begin a task for the process."""
        kept.append(asyncio.create_task(over.wait(), context=contextvars.Context()))
        await asyncio.sleep(0)
        return "begun"

    @tool
    async def ends() -> str:
        """Let it end."""
        over.set()
        return str(await kept[0])

    Conversation(serve(begins)).call()
    assert Conversation(serve(ends)).call().text == "True"


def test_a_step_in_a_thread_is_recorded_when_another_task_asks() -> None:
    asked, charged = threading.Event(), list[str]()

    def charge() -> str:
        asked.wait()
        charged.append("charged")
        return "charged"

    @tool
    async def buy(*, elicit: Elicit, step: Step) -> str:
        """Charge in a thread, and ask."""

        async def ask() -> None:
            await asyncio.sleep(0)
            asyncio.get_running_loop().call_later(0.01, asked.set)  # when the round has ended, or nearly so
            elicit("sure", "Sure?", Ok)

        result, _ = await asyncio.gather(asyncio.to_thread(step, "charge", charge), ask())
        return result

    assert Conversation(serve(buy)).call().accept(sure=YES).text == "charged"
    assert charged == ["charged"]


def test_every_kind_of_handler_asks() -> None:
    @tool
    def a_tool(*, elicit: Elicit) -> str:
        """Ask."""
        return str(elicit("sure", "Sure?", Ok).ok)

    @prompt
    def a_prompt(*, elicit: Elicit) -> str:
        """Ask."""
        return str(elicit("sure", "Sure?", Ok).ok)

    @resource("things://{name}")
    def a_template(name: str, *, elicit: Elicit) -> str:
        """Ask."""
        return f"{name}: {elicit('sure', 'Sure?', Ok).ok}"

    @resource("things://all")
    def a_resource(*, elicit: Elicit) -> str:
        """Ask."""
        return str(elicit("sure", "Sure?", Ok).ok)

    for handler in (a_tool, a_prompt):
        assert Conversation(serve(handler)).call().accept(sure=YES).text == "True"
    assert Conversation(serve(a_template)).read("things://one").accept(sure=YES).text == "one: True"
    assert Conversation(serve(a_resource)).read("things://all").accept(sure=YES).text == "True"


# ---- Testing


def test_the_test_of_this_page_passes(tmp_path: Path) -> None:
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    plugin = metadata["project"]["entry-points"]["pytest11"]["mcp_functions"]
    (tmp_path / "test_page.py").write_text(PAGE.code("python"), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", plugin, "-p", "no:cacheprovider", "test_page.py"]
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(  # noqa: S603 - our own page
        command, cwd=tmp_path, env=alone, capture_output=True, text=True, timeout=60, check=False
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_a_test_needs_no_plugin(page: dict[str, Any]) -> None:
    with deployed():
        page["test_urgent_tickets_ring_somebody"](Conversation)


def test_a_test_can_express_every_event_of_a_conversation(page: dict[str, Any], clock: Clock) -> None:
    def begun() -> Conversation:
        return Conversation(page["handler"], principal="ada").call(title="Fire")

    talk = begun()
    asked = talk.requests
    assert talk.retry().requests == asked
    assert talk.later(minutes=5).answer(urgency={"action": "accept", "content": {}}).asked == ["urgency"]
    assert talk.upgrade(page["handler"].fresh()).accept(urgency={"urgency": "low"}).text == "Opened: Fire."
    assert begun().decline().text.startswith("The user declined to answer")
    assert begun().cancel().text.startswith("The user dismissed without answering")
    assert begun().tamper().error["message"] == FROZEN
    assert begun().as_("eve").accept(urgency={"urgency": "low"}).error["message"] == FROZEN
    assert begun().later(minutes=10).accept(urgency={"urgency": "low"}).error["message"] == FROZEN
    page["count"] = clock.works(6)
    counted = Conversation(serve(page["count_year"], now=clock)).call(year=2026)
    assert (counted.done, counted.go_on().text) == (False, "78")


def test_each_round_can_run_in_a_new_process() -> None:
    talk = Conversation(book_trip.handler, fresh=True).call(city="Lisbon").accept(consent=True)
    assert talk.text.startswith("Booked MF 106 to Lisbon")


# ---- Traps


def test_finally_runs_in_every_round() -> None:
    cleaned = []

    @tool
    def tidy(*, elicit: Elicit) -> str:
        """Clean up."""
        try:
            return str(elicit("sure", "Sure?", Ok).ok)
        finally:
            cleaned.append("cleaned")

    talk = Conversation(serve(tidy)).call()
    assert cleaned == ["cleaned"]
    talk.accept(sure=YES)
    assert cleaned == ["cleaned", "cleaned"]


def test_a_program_can_accept_a_question(page: dict[str, Any]) -> None:
    talk = Conversation(serve(page["request_leave"])).call(days=300)
    while not talk.done:  # it has not been read yet
        talk.accept(**dict.fromkeys(talk.asked, True))
    assert talk.text == "300 days off."


def test_a_client_can_send_a_state_again_with_another_answer(page: dict[str, Any]) -> None:
    talk = Conversation(serve(page["request_leave"])).call(days=2)
    state = talk.state
    assert talk.accept(approval=False).text == "Not now."
    again = {"action": "accept", "content": {"approval": True}}
    assert talk.state == state
    assert talk.answer(approval=again).text == "2 days off."


def test_a_state_is_encrypted_and_only_the_client_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    @tool
    def keep(*, elicit: Elicit, step: Step) -> str:
        """Keep a secret in a step."""
        secret = step("fetch", lambda: "the-database-password")
        elicit("sure", "Sure?", Ok)
        return f"used {len(secret)} letters"

    talk = Conversation(serve(keep)).call()
    payload = talk.state.partition(".")[2]
    assert b"password" not in base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
    talk.upgrade(serve(keep))  # nothing on the server remembers that it ever sealed it
    assert talk.accept(sure=YES).text == "used 21 letters"
    monkeypatch.setenv("MCP_GENERATION", "2")
    assert talk.upgrade(serve(keep)).retry().error["message"] == FROZEN


def test_a_state_over_the_limit_ends_the_call(caplog: pytest.LogCaptureFixture) -> None:
    @tool
    def hoard(*, step: Step, elicit: Elicit) -> str:
        """Keep more than a state holds."""
        for number in range(5):
            step(f"page-{number}", lambda: random.randbytes(3_500).hex())  # noqa: S311 - nothing that compresses
        return str(elicit("sure", "Sure?", Ok).ok)

    talk = Conversation(serve(hoard)).call()
    assert talk.result["isError"]
    assert talk.text.startswith("This conversation has more to remember than it can carry.")
    assert "keep references in the state instead of documents" in caplog.text


def test_only_the_caller_who_began_a_conversation_can_continue_it(page: dict[str, Any]) -> None:
    def begun(principal: str | None) -> Conversation:
        return Conversation(page["handler"], principal=principal).call(title="Fire")

    mine = begun("ada")
    assert mine.as_("eve").accept(urgency={"urgency": "low"}).error["message"] == FROZEN
    assert mine.accept(urgency={"urgency": "low"}).text == "Opened: Fire."
    nobodys, anybody = begun(None), begun(None)
    assert anybody.tamper(lambda _state: nobodys.state).asked == ["urgency"]


def test_a_state_for_changed_arguments_is_refused(page: dict[str, Any]) -> None:
    talk = Conversation(page["handler"]).call(title="Fire")
    other = Conversation(page["handler"]).call(title="Water")
    assert other.tamper(lambda _state: talk.state).error["message"] == FROZEN
    assert inspect.signature(page["open_ticket"].function).parameters["title"].annotation is str
