"""Chromium opens the page at `/` and runs conversations there, also with hostile tools and hostile pages."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Literal

import pytest

from mcp_functions_harness import Harness
from mcp_functions_harness.command import run as main
from mcp_functions_harness.loopback import HttpResponse, Loopback
from tests.browser import chromium
from tests.browser.chromium import Tab
from tests.browser.page_functions import FUNCTIONS, MARKUP
from tests.harness.conftest import write_functions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mcp_functions_harness.loopback import HttpRequest
    from tests.browser.chromium import DevTools

TAB, ENTER, SPACE = 9, 13, 32
HAS_ENDED = "document.querySelector('.round:last-child .outcome')"
HAS_QUESTION = "document.querySelector('.question')"
HOSTILE_TEXTS = [
    "it's", 'a "quote"', "back\\slash\\n", "line\nbreak", "$(touch pwned) `touch pwned` ${HOME} !!",
    "'; touch pwned; '", '"""', "%s {0} {{x}}", "\u202egnp.exe\u2066", "\u2028\u2029", "\x1b[2Jgone\x00\x7f\x9b",
    "🌍 ñ", "@/etc/passwd", "-o x",
]  # fmt: skip


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    chromium.find_chromium()
    root = tmp_path_factory.mktemp("project")
    directory = write_functions(root / "functions", FUNCTIONS)
    assert main(["catalog", "--functions", str(directory)]) == 0
    return root


@pytest.fixture(scope="module")
def harness(project: Path) -> Iterator[Harness]:
    with Harness(project / "functions", state_dir=project / "state") as running:
        yield running


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevTools]:
    rules = "--host-resolver-rules=MAP rebind.example 127.0.0.1"
    with chromium.running(tmp_path_factory.mktemp("profile"), rules) as running:
        yield running


class User:
    """Sees labels and buttons by their texts, and uses them."""

    def __init__(self, tab: Tab, url: str) -> None:
        self.tab, self.url = tab, url.removesuffix("/mcp")
        tab.open(f"{self.url}/", "Tools")
        tab.wait("document.querySelector('nav button')")

    def run(self, script: str) -> Any:  # noqa: ANN401 - a value of JavaScript
        """Run a function body in the page; it fails the test if it throws."""
        done = self.tab.do(
            "Runtime.evaluate", expression=f"(async () => {{{script}}})()", awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in done, (script, done, self.tab.text)
        return done["result"].get("value")

    def press(self, text: str) -> None:
        """Press the last button, or open the last details, with a text."""
        button = (
            f"[...document.querySelectorAll('button, summary')].filter((one) => one.textContent === {json.dumps(text)})"
        )
        self.run(f"{button}.at(-1).click()")

    def fill(self, **fields: object) -> None:
        """Fill in controls by the text of their label, with _ for a space."""
        for label, value in fields.items():
            self.run(FILL % (json.dumps(label), json.dumps(value)))

    def begin(self, offer: str, verb: str = "Call", **fields: object) -> None:
        """Choose an offer, fill in its form, and send it."""
        self.press(offer)
        self.fill(**fields)
        self.press(verb)

    def until(self, expression: str) -> None:
        self.tab.wait(expression)

    def rounds(self, count: int) -> None:
        self.until(f"document.querySelectorAll('.round').length === {count}")

    @property
    def outcome(self) -> str:
        self.until(HAS_ENDED)
        return str(self.run("return document.querySelector('.round:last-child .outcome').innerText"))

    def copied(self, button: str) -> str:
        self.press(button)
        self.until("document.querySelector('#copies pre')")
        return str(self.run("return document.querySelector('#copies pre').textContent"))


FILL = """
const named = (one) => one.textContent.replace(/ \\(optional\\).*|, as JSON.*/, '').replaceAll(' ', '_') === %s;
const label = [...document.querySelectorAll('main label')].filter(named).at(-1);
const control = document.getElementById(label.htmlFor);
const value = %s;
if (control.type === 'checkbox') control.checked = value;
else if (control.tagName === 'SELECT') [...control.options].find((one) => one.text === value).selected = true;
else control.value = value;
control.dispatchEvent(new Event('change', { bubbles: true }));
"""


@pytest.fixture
def user(tools: DevTools, harness: Harness) -> User:
    return User(Tab(tools), harness.url)


def test_the_page_runs_a_conversation_round_by_round(user: User) -> None:
    user.begin("work", city="Lisbon")
    user.until(HAS_QUESTION)
    assert "Where would you like to sit?" in user.tab.text
    user.fill(seat="12A")
    user.press("Answer")
    user.rounds(2)
    user.until(f"{HAS_QUESTION}?.innerText.includes('Take 12A?')")
    user.fill(agree=True)
    user.press("Answer")
    user.rounds(3)
    assert user.outcome == "Result\n\nBooked 12A in Lisbon."
    facts = user.run("return [...document.querySelectorAll('.facts')].map((one) => one.innerText)")
    assert [fact.split(" · ")[:3] for fact in facts] == [
        [" work", "asks seat", facts[0].split(" · ")[2]],
        [" work", "seat answered", "asks agree"],
        [" work", "agree answered", "ended"],
    ]
    assert all(" ms" in fact and "request " in fact for fact in facts)
    assert ["state " in fact for fact in facts] == [True, True, False]
    assert user.tab.complaints == []


def test_the_page_shows_steps_logs_and_progress(user: User) -> None:
    user.begin("work", city="Rome")
    user.until(HAS_QUESTION)
    notes = user.run("return document.querySelector('.notes').innerText")
    assert "info" in notes
    assert "looking for Rome" in notes
    assert "1 of 2 half done" in notes
    assert "reserve" in user.run("return document.querySelector('.steps').innerText")


def test_the_function_receives_a_value_of_every_type_from_the_page(user: User) -> None:
    user.begin("fill", word="hi", count="7", loud="Yes", size="S", more='{"a": [1, null]}')
    user.until(HAS_QUESTION)
    user.fill(
        Some_text="hello", mail="a@b.example", site="https://b.example/x", day="2026-07-28",
        moment="2026-07-28T12:30:00",
        whole="3", real="2.5", yes=False, plain="b", titled="The Y", old="Two", q=True, r=True,
    )  # fmt: skip
    user.run(
        "[...document.querySelectorAll('.question label')].find((one) => one.textContent === 'The S').control.click()"
    )
    user.press("Answer")
    user.rounds(2)
    document = json.loads(user.outcome.removeprefix("Result\n\n"))
    assert document["arguments"] == ["hi", 7, True, "S", {"a": [1, None]}]
    answer = document["answer"]
    moment = user.run("return new Date('2026-07-28T12:30:00').toISOString()")
    assert answer.pop("moment").replace("Z", "") == moment.replace(".000Z", "")
    assert answer == {
        "text": "hello", "mail": "a@b.example", "site": "https://b.example/x", "day": "2026-07-28", "whole": 3,
        "real": 2.5,
        "yes": False, "maybe": None, "plain": "b", "titled": "y", "old": "o2", "many": ["q", "r"], "named": ["s"],
        "optional": None,
    }  # fmt: skip


def test_a_form_is_validated_before_sending_but_raw_json_is_not(user: User) -> None:
    user.begin("fill", word="hi")
    user.until(HAS_QUESTION)
    user.press("Answer")
    assert user.run("return document.querySelectorAll('.question :invalid').length") > 5
    user.press("Write JSON")
    user.fill(JSON='{"text": "x"}')
    user.press("Answer")
    user.rounds(2)
    user.until(HAS_QUESTION)
    assert "asks all" in user.tab.text


def test_a_value_without_an_input_field_is_entered_as_json(user: User) -> None:
    user.begin("odd", anything="[1]", either='"x"')
    assert user.outcome == "Result\n\nanything=[1], either=x"


def test_the_page_reports_invalid_json_in_a_form(user: User) -> None:
    user.press("echo")
    user.press("Write JSON")
    user.fill(JSON="{")
    user.press("Call")
    user.until("document.querySelector('.call .problem').textContent.startsWith('JSON: ')")


@pytest.mark.parametrize(("button", "message"), [("Decline", "declined"), ("Cancel", "dismissed")])
def test_the_user_can_decline_or_cancel_a_question(user: User, button: str, message: str) -> None:
    user.begin("work", city="Rome")
    user.until(HAS_QUESTION)
    user.press(button)
    user.rounds(2)
    assert "The tool failed" not in user.outcome
    assert message in user.outcome


def test_the_page_begins_with_the_url_and_marks_what_may_ask(user: User) -> None:
    user.until("document.querySelector('.offered')")
    said = user.run("return document.getElementById('main').textContent")
    assert f"{user.url}/mcp" in said
    assert "claude mcp add" in said
    marked = user.run("return [...document.querySelectorAll('.offered li')].map((one) => one.textContent)")
    assert {"work may ask", "briefing", "rules", "ticket"} <= set(marked)
    user.run("[...document.querySelectorAll('.offered a')].find((one) => one.textContent === 'work').click()")
    user.until("document.querySelector('main form')")
    user.run("document.getElementById('server').click()")
    user.until("document.querySelector('.offered')")


def test_a_crash_shows_its_traceback_and_a_click_in_the_list_clears_the_status(user: User) -> None:
    user.begin("crash", text="x")
    assert "The tool failed" in user.outcome
    assert 'raise LookupError(f"no {text}")' in user.outcome
    assert user.run("return document.getElementById('status').textContent").startswith("Round 1: ")
    user.press("work")
    assert user.run("return document.getElementById('status').textContent") == ""


def test_an_argument_is_completed_while_the_user_types(user: User) -> None:
    user.press("greeting")
    user.run("document.querySelector('main input').focus()")
    user.fill(city="Li")
    user.run("document.querySelector('main input').dispatchEvent(new Event('input'))")
    listed = "[...document.querySelectorAll('datalist option')].map((one) => one.value)"
    user.until(f"{listed}.join() === 'Lisbon,Lima'")


def test_a_long_text_has_a_field_of_several_lines(user: User) -> None:
    user.press("crash")
    assert user.run("return document.querySelector('main .field textarea.long') !== null")


def test_progress_has_one_bar_with_its_last_value(user: User) -> None:
    user.begin("count")
    assert "two" in user.outcome
    assert user.run("return [...document.querySelectorAll('.round progress')].map((one) => one.value)") == [2]


def test_the_user_can_decline_one_of_two_questions(user: User) -> None:
    user.begin("plan")
    user.until(HAS_QUESTION)
    user.fill(where="Rome", With_this_question="Decline")
    user.press("Answer")
    user.rounds(2)
    assert "declined" in user.outcome
    assert "where answered · when declined" in user.run("return document.querySelector('.round:last-child').innerText")
    assert 'talk.answer(where={"action": "accept", "content": {"where": "Rome"}}, when={"action": "decline"})' in (
        user.copied("Copy the conversation as a test")
    )


def test_a_url_question_shows_its_address_but_does_not_open_it(user: User) -> None:
    user.begin("visit")
    user.until(HAS_QUESTION)
    link = "document.querySelector('.question a')"
    address = "https://accounts.example/connect?x=1"
    assert user.run(f"return [{link}.href, {link}.textContent, {link}.rel]") == [
        address,
        address,
        "noopener noreferrer",
    ]
    user.press("Answer")
    user.rounds(2)
    assert user.outcome == "Result\n\nConnected."


def test_the_user_answers_sampling_and_roots_requests(user: User) -> None:
    user.begin("think")
    user.until(HAS_QUESTION)
    assert "What do you think?" in user.tab.text
    user.fill(The_answer_of_your_model="Cheese")
    user.press("Answer")
    user.rounds(2)
    user.until(HAS_QUESTION)
    user.press("Answer")
    user.rounds(3)
    assert user.outcome == "Result\n\nCheese in ['file:///home/me/project']"


def test_a_task_asks_a_question_and_completes(user: User) -> None:
    user.begin("audit", year="2025")
    user.until(HAS_QUESTION)
    assert "Task input_required" in user.tab.text
    user.fill(write_off=True)
    user.press("Answer")
    assert user.outcome == "Result\n\nWritten off."


def test_the_user_can_cancel_a_task(user: User) -> None:
    user.begin("audit", year="2025")
    user.until(HAS_QUESTION)
    user.press("Cancel the task")
    user.until("document.querySelector('.task').innerText.includes('Task cancelled')")


def test_a_tool_with_tasks_runs_in_rounds_or_is_refused_if_tasks_are_off(user: User) -> None:
    user.run("document.getElementById('tasks').click()")
    user.begin("audit", year="2025")
    user.until("document.querySelector('.round')")
    assert "Task " not in user.tab.text


def test_the_page_gets_prompts_resources_and_templates(user: User) -> None:
    user.begin("briefing", "Get", topic="tides")
    assert "user\n\nWrite about tides." in user.outcome
    user.begin("rules", "Read")
    assert "No shoes." in user.outcome
    user.begin("ticket", "Read", number="a/7")
    assert "This is ticket a/7." in user.outcome


def test_the_page_opens_a_request_state_on_request(user: User) -> None:
    user.begin("work", city="Rome")
    user.until(HAS_QUESTION)
    user.fill(seat="window seat")
    user.press("Answer")
    user.rounds(2)
    user.until(HAS_QUESTION)
    wire = user.run("return document.querySelector('.round:last-child').textContent")
    assert "Inside the state" not in wire
    user.press("Look inside the state")
    user.until("document.querySelector('.round:last-child .inside')")
    inside = user.run("return document.querySelector('.round:last-child .inside').innerText")
    assert "window seat" in inside
    assert "12A in Rome" in inside
    assert "as in the request" in inside


def test_the_page_shows_that_a_changed_state_is_refused_and_a_repeated_round_accepted(user: User) -> None:
    user.begin("work", city="Rome")
    user.until(HAS_QUESTION)
    user.press("Change one character of the state")
    user.until("document.querySelectorAll('.trial').length === 1")
    refused = user.run("return document.querySelector('.trial').innerText")
    assert "HTTP 400, -32602" in refused
    assert "tag: it was changed on its way" in refused
    user.press("Send this round again")
    user.until("document.querySelectorAll('.trial').length === 2")
    assert "the same answer" in user.run("return document.querySelectorAll('.trial')[1].innerText")
    user.fill(seat="1A")
    user.press("Answer")
    user.rounds(2)
    user.until(f"{HAS_QUESTION}?.innerText.includes('Take 1A?')")


def test_the_page_keeps_input_when_a_round_is_sent_again(user: User) -> None:
    user.begin("work", city="Rome")
    user.until(HAS_QUESTION)
    user.fill(seat="half ty")
    user.press("Send this round again")
    user.until("document.querySelector('.trial')")
    assert user.run("return document.querySelector('.question input').value") == "half ty"


def run_command(folder: Path, *command: str) -> str:
    """Run a command, and return what it wrote."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603 - what is copied
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_copied_call_is_quoted_for_the_shell_and_for_python(user: User, project: Path, tmp_path: Path) -> None:
    text = "".join(HOSTILE_TEXTS)
    user.press("echo")
    user.press("Write JSON")
    user.fill(JSON=json.dumps({"text": text, "value": {one: [one, True, None, 1.5] for one in HOSTILE_TEXTS}}))
    user.press("Call")
    user.until(HAS_QUESTION)
    user.fill(word=text)
    user.press("Answer")
    user.rounds(2)
    user.until(HAS_ENDED)
    command = user.copied("Copy the last round as curl")
    assert all(character.isprintable() or character == "\n" for character in command)
    shell = shutil.which("bash") or "/bin/sh"
    printed_text = json.loads(run_command(tmp_path, shell, "-c", command))["result"]["content"][0]["text"]
    assert printed_text.startswith(f"{text}|")
    test = user.copied("Copy the conversation as a test")
    assert all(character.isprintable() or character == "\n" for character in test)
    (tmp_path / "test_copied.py").write_text(test, encoding="utf-8")
    options = ["-q", "-p", "no:cacheprovider", f"--rootdir={project}", "-o", f"pythonpath={project}"]
    assert "1 passed" in run_command(tmp_path, sys.executable, "-m", "pytest", *options, "test_copied.py")
    assert [file.name for file in tmp_path.iterdir() if file.name not in {"test_copied.py", "__pycache__"}] == []


@pytest.mark.parametrize("name", ["self", "__debug__", "__proto__", "class", "name", "a b", "it's", "\u202e"])
def test_a_copied_test_is_valid_python_for_any_names(user: User, name: str) -> None:
    answers = json.dumps(json.dumps({name: {"action": "accept", "content": {"a": 1, "b": 2}}}))
    arguments = json.dumps(json.dumps({name: 1}))
    copied = user.run(
        "const { pytest } = await import('/page/copies.js');"
        f"const params = {{ name: 't', arguments: JSON.parse({arguments}) }};"
        "const call = { method: 'tools/call', title: 't', params };"
        f"const answered = {{ inputs: {{ inputResponses: JSON.parse({answers}) }}, questions: [], result: {{}} }};"
        "const asked = { inputs: {}, questions: [['q', {}]], asks: true };"
        "return pytest({ call, rounds: [asked, answered], folder: 't', client: { access: null } });"
    )
    compile(copied, "test_copied.py", "exec")
    given = [node.keywords for node in ast.walk(ast.parse(copied)) if isinstance(node, ast.Call) and node.keywords]
    assert [[one.arg or ast.literal_eval(one.value) for one in each] for each in given] in (
        [[name], [name]],
        [[{name: 1}], [{name: {"a": 1, "b": 2}}]],
    )


def test_the_page_shows_markup_of_a_tool_as_text(user: User) -> None:
    user.tab.do("Page.addScriptToEvaluateOnNewDocument", source="window.alert = () => { document.title = 'ALERT'; };")
    user.tab.do("Page.reload")
    user.until("document.querySelector('nav button')")
    user.press(MARKUP)
    user.until("document.querySelector('main form')")
    user.press("Call")
    user.until(HAS_QUESTION)
    assert MARKUP in user.run("return document.querySelector('.question legend').textContent")
    assert MARKUP in user.run("return document.querySelector('.notes').textContent")
    user.run("document.querySelector('.question select').selectedIndex = 1")
    user.press("Answer")
    user.rounds(2)
    assert MARKUP in user.outcome
    for button in ("Copy the conversation as a test", "Copy the last round as curl"):
        user.copied(button)
    found = user.run(
        "return document.querySelectorAll('img, iframe, object, .injected, script:not([src=\"/page/page.js\"])').length"
    )
    assert found == 0
    assert user.run("return [...document.querySelectorAll('main a')].map((one) => one.href)") == [
        "https://ok.example/x"
    ]
    assert "ALERT" not in user.run("return document.title")
    assert user.tab.complaints == []


ATTACKS = """
const results = {};
const attempt = async (name, options) => {
  try {
    const answer = await fetch(%(home)s + name, options);
    results[name + JSON.stringify(options)] = answer.type === "opaque" ? "opaque" : await answer.text();
  } catch (error) { results[name + JSON.stringify(options)] = "failed"; }
};
for (const credentials of ["omit", "include"]) {
  await attempt("/", { credentials });
  await attempt("/page/page.js", { credentials });
  const json = { "Content-Type": "application/json" };
  const post = { method: "POST", credentials, body: "{}" };
  await attempt("/mcp", { ...post, headers: json });
  for (const name of ["open", "executions", "access"]) {
    const path = `/page/control/${name}`;
    await attempt(path, { ...post, headers: { ...json, "X-Page-Token": "x" } });
    await attempt(path, { ...post, headers: { "Content-Type": "text/plain" }, mode: "no-cors" });
    await attempt(path, { credentials });
  }
}
return results;
"""


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_a_page_of_another_origin_can_neither_read_nor_control_anything(
    harness: Harness, tools: DevTools, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[object] = []
    monkeypatch.setattr("mcp_functions_harness.page.controls.explain", lambda *given, **_: opened.append(given))
    home = harness.url.removesuffix("/mcp")
    with Loopback(max_body=1 << 20) as other:
        other.start(hostile_page)
        user = Tab(tools)
        user.open(other.url.replace("127.0.0.1", name), "Hostile")
        asked = user.do(
            "Runtime.evaluate", expression=f"(async () => {{{ATTACKS % {'home': json.dumps(home)}}}})()",
            awaitPromise=True, returnByValue=True,
        )  # fmt: skip
        results = asked["result"]["value"]
        assert set(results.values()) <= {"failed", "opaque"}, results
        assert len(results) == 24
        user.evaluate(f"window.other = window.open({json.dumps(home + '/')})")
        readable = "(() => { try { return other.document.body.innerText } catch { return 'refused' } })()"
        assert user.evaluate(readable) in {"refused", ""}
    assert opened == []


def test_another_page_cannot_frame_the_page(harness: Harness, tools: DevTools) -> None:
    with Loopback(max_body=1 << 20) as other:
        other.start(hostile_page)
        tab = Tab(tools)
        tab.open(other.url, "Hostile")
        address = json.dumps(harness.url.removesuffix("mcp"))
        tab.evaluate(f"Object.assign(document.body.appendChild(document.createElement('iframe')), {{src: {address}}})")
        tab.wait(f"performance.getEntriesByType('resource').some(({{ name }}) => name === {address})")
        tab.evaluate("0")
        assert [text for text in tab.complaints if "frame-ancestors 'none'" in text]


def hostile_page(_request: HttpRequest) -> HttpResponse:
    return HttpResponse(200, (("content-type", "text/html"),), b"<title>x</title><p>Hostile</p>")


def test_a_name_that_resolves_to_this_machine_gets_no_page(harness: Harness, tools: DevTools) -> None:
    port = harness.url.removesuffix("/mcp").rpartition(":")[2]
    tab = Tab(tools)
    tab.open(f"http://rebind.example:{port}/", "Forbidden")
    assert "page-token" not in str(tab.evaluate("document.documentElement.outerHTML"))
    assert tab.evaluate("document.querySelector('script')") is None


@pytest.mark.parametrize("mode", ["jwt", "oauth"])
def test_the_page_signs_in_at_the_local_issuer(project: Path, tools: DevTools, mode: Literal["jwt", "oauth"]) -> None:
    with Harness(project / "functions", state_dir=project / mode, auth=mode) as running:
        user = User(Tab(tools), running.url)
        assert "Signed in as local-user" in user.tab.text
        user.begin("work", city="Oslo")
        user.until(HAS_QUESTION)
        assert 'principal="local-user"' in user.copied("Copy the conversation as a test")
        curl = user.copied("Copy the last round as curl")
        assert '"Authorization: Bearer $TOKEN"' in curl


def test_the_page_lists_a_project_with_tools_only(tmp_path: Path, tools: DevTools) -> None:
    only = {name: text for name, text in FUNCTIONS.items() if name in {"mcp/app.py", "work/app.py"}}
    directory = write_functions(tmp_path / "functions", only)
    assert main(["catalog", "--functions", str(directory)]) == 0
    with Harness(directory, state_dir=tmp_path / "state") as harness:
        tab = Tab(tools)
        user = User(tab, harness.url)
        assert user.run("return document.getElementById('status').textContent") == ""
        assert user.run("return [...document.querySelectorAll('nav h2')].map((one) => one.textContent)") == ["Tools"]


def test_the_page_calls_a_tool_of_a_project_without_functions_mcp(tmp_path: Path, tools: DevTools) -> None:
    directory = write_functions(tmp_path / "functions", {"work/app.py": FUNCTIONS["work/app.py"]})
    with Harness(directory, state_dir=tmp_path / "state") as running:
        user = User(Tab(tools), running.url)
        user.begin("work", city="Oslo")
        user.until(HAS_QUESTION)


@pytest.mark.skipif(sys.platform != "linux", reason="the runtime client is Linux's")
def test_the_page_works_with_processes_of_the_runtime(project: Path, tools: DevTools) -> None:
    with Harness(project / "functions", state_dir=project / "runtime", runtime=True) as running:
        user = User(Tab(tools), running.url)
        user.begin("work", city="Oslo")
        user.until(HAS_QUESTION)
        assert ", cold" in user.run("return document.querySelector('.facts').innerText")
        user.press("Change one character of the state")
        user.until("document.querySelector('.trial')")
        user.press("Decline")
        user.rounds(2)
        assert "declined" in user.outcome


def test_the_keyboard_alone_is_enough(user: User) -> None:
    tab = user.tab
    for _ in range(40):
        tab.press("Tab", TAB)
        if tab.evaluate("document.activeElement.textContent") == "work":
            break
    tab.press("Enter", ENTER, "\r")
    assert tab.evaluate("document.activeElement.id") == "main"
    tab.press("Tab", TAB)
    tab.type("Rome")
    tab.press("Enter", ENTER, "\r")
    user.until(f"{HAS_QUESTION}?.contains(document.activeElement)")
    tab.type("2B")
    tab.press("Enter", ENTER, "\r")
    user.rounds(2)
    user.until(f"{HAS_QUESTION}?.contains(document.activeElement)")
    tab.press(" ", SPACE, " ")
    tab.press("Enter", ENTER, "\r")
    user.rounds(3)
    assert "Booked 2B in Rome." in user.outcome


def test_a_screen_reader_reads_labels_and_status_messages(user: User) -> None:
    user.begin("fill", word="hi")
    user.until(HAS_QUESTION)
    read = user.tab.accessible()
    for expected in (
        ("navigation", "What the server offers"), ("button", "Answer"), ("textbox", "Some text"),
        ("group", "Fill this in"),
        ("spinbutton", "whole"), ("combobox", "titled"), ("checkbox", "The S"), ("heading", "fill"), ("list", "Rounds"),
    ):  # fmt: skip
        assert expected in read, expected
    unnamed = [
        role for role, name in read if role in {"button", "textbox", "combobox", "checkbox", "spinbutton"} and not name
    ]
    assert unnamed == []
    assert user.run("return document.querySelector('[role=status]').textContent").startswith("Round 1: fill · asks all")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1280])
def test_the_page_fits_a_phone_and_follows_the_colour_scheme(
    user: User, tmp_path: Path, width: int, scheme: str
) -> None:
    user.tab.do("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=width < 500)
    user.tab.do("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    user.begin("work", city="Rome")
    user.until(HAS_QUESTION)
    user.press("On the wire")
    assert user.run("return document.documentElement.scrollWidth") <= width
    paper, ink = user.run("const style = getComputedStyle(document.body); return [style.backgroundColor, style.color]")
    brightness = [sum(map(int, color[4:-1].split(","))) for color in (paper, ink)]
    assert (brightness[0] > brightness[1]) == (scheme == "light")
    user.tab.screenshot(tmp_path / "page.png")  # for people to look at
