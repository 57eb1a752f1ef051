"""Exceptions that an author's code raises by accident: what the client, the log and the author's tests show of them.

No `from __future__ import annotations` here, because most authors' modules have none.
"""

import ast
import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter

import mcp_functions
from mcp_functions import Elicit, Question, RequestState, Step, ToolError, prompt, resource, serve, tool
from mcp_functions.http.exchange import Endpoint
from mcp_functions.http.gateway import LambdaFunction, WorkFailed
from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.testing import Conversation
from tests.legacy.test_questions import text as legacy_text
from tests.legacy.world import DOORS, World
from tests.support import wire

SECRET = "planted-unspeakable"  # noqa: S105 - and the whole suite searches for it
CRASHED = "The tool {} failed unexpectedly. The server's log says why."


class Own(BaseException):
    """As an author may define one."""


class Name(BaseModel):
    name: str


RAISED: list[BaseException] = [
    LookupError(SECRET),
    SystemExit(SECRET),
    KeyboardInterrupt(SECRET),
    asyncio.CancelledError(SECRET),
    GeneratorExit(SECRET),
    Own(SECRET),
    ExceptionGroup(SECRET, [ValueError(SECRET), ToolError("three")]),
    BaseExceptionGroup(SECRET, [Own(SECRET)]),
]


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [vars(record) for record in caplog.records if hasattr(record, "outcome")]


def alone(raised: BaseException) -> LambdaFunction:
    @tool
    def breaks() -> str:
        raise raised

    return serve(breaks)


def conversing(raised: BaseException) -> LambdaFunction:
    @tool
    def breaks(*, elicit: Elicit) -> str:
        if elicit.possible:
            raise raised
        return ""

    return serve(breaks)


def awaited(raised: BaseException) -> LambdaFunction:
    @tool
    async def breaks(*, step: Step) -> str:
        async def work() -> str:
            raise raised

        return await step.wait("work", work)

    return serve(breaks)


# ---- A tool


@pytest.mark.parametrize("served", [alone, conversing, awaited], ids=lambda made: made.__name__)
@pytest.mark.parametrize("raised", RAISED, ids=lambda error: type(error).__name__)
def test_a_tool_that_raises_is_a_tool_error_with_only_the_tools_name(
    served: Callable[[BaseException], LambdaFunction], raised: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    talk = Conversation(served(raised)).call()
    assert (talk.status, talk.result["isError"], talk.text) == (200, True, CRASHED.format("breaks"))
    (line,) = lines(caplog)
    assert (line["outcome"], line["reason"], line["levelname"]) == ("crashed", type(raised).__name__, "ERROR")
    assert f"failed: {type(raised).__name__} at " in caplog.text
    assert f"{__file__}:" in caplog.text
    assert SECRET not in caplog.text


def test_the_author_of_a_test_has_the_exception_itself() -> None:
    assert str(Conversation(alone(LookupError("which"))).call().raised) == "which"


def test_a_keyboard_interrupt_on_lambda_is_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_LAMBDA_RUNTIME_API", "127.0.0.1:9001")
    assert Conversation(alone(KeyboardInterrupt())).call().result["isError"] is True


def test_the_line_of_an_endless_recursion_is_short(caplog: pytest.LogCaptureFixture) -> None:
    @tool
    def breaks() -> str:
        return breaks.function()

    assert Conversation(serve(breaks)).call().text == CRASHED.format("breaks")
    assert len(caplog.messages[-1]) < 20 * 200
    assert "more < " in caplog.messages[-1]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18", "2025-11-25"])
def test_a_client_of_2025_gets_the_same_result(door: str, version: str, caplog: pytest.LogCaptureFixture) -> None:
    @tool
    def breaks() -> str:
        """Break."""
        raise SystemExit(SECRET)

    client = World(breaks, door=door).client()
    client.initialize(version)
    assert legacy_text(client.call("breaks")) == CRASHED.format("breaks")
    assert [line["outcome"] for line in lines(caplog) if line["levelname"] == "ERROR"] == ["crashed"]


@pytest.mark.parametrize("door", DOORS)
def test_a_crash_outside_tools_is_a_request_error_for_2025_clients_too(door: str) -> None:
    @prompt
    def brief(topic: str) -> str:
        """Brief."""
        return topic

    @brief.complete("topic")
    def topics(_value: str, _arguments: Mapping[str, str]) -> list[str]:
        raise SystemExit(SECRET)

    client = World(brief, door=door).client()
    client.initialize("2025-11-25")
    (event,) = client.send("completion/complete", TOPIC)
    assert event.data["error"]["code"] == -32603
    assert client.response["statusCode"] == 200


def test_a_misconfigured_worker_shows_no_details(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(WorkFailed, match=r"^$"):
        wired_by(SystemExit(SECRET))({"mcpTask": {"id": "x", "owner": None}}, wire.Context())
    assert [line["outcome"] for line in lines(caplog)] == ["crashed"]
    assert SECRET not in caplog.text


def test_a_later_error_in_a_batch_does_not_hide_a_crash(caplog: pytest.LogCaptureFixture) -> None:
    @tool
    def breaks() -> str:
        """Break."""
        raise SystemExit(SECRET)

    client = World(breaks).client()
    client.initialize("2025-03-26")
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "breaks", "arguments": {}}}
    client.http("POST", [call, {"jsonrpc": "2.0", "id": 2, "method": "ping"}])
    assert [line["outcome"] for line in lines(caplog) if line["levelname"] == "ERROR"] == ["crashed"]


# ---- What is no tool


def brief_that(raised: BaseException) -> LambdaFunction:
    @prompt
    def brief(topic: str) -> str:  # noqa: ARG001 - of the prompt
        raise raised

    @brief.complete("topic")
    def topics(_value: str, _arguments: Mapping[str, str]) -> list[str]:
        raise raised

    @resource("notes://{owner}")
    def note(owner: str) -> str:  # noqa: ARG001 - of the URI
        raise raised

    return serve(brief, note)


def wired_by(raised: BaseException) -> LambdaFunction:
    def wire_nothing(_name: str, _now: object) -> Endpoint:
        raise raised

    return LambdaFunction(wire_nothing)


def audited_by(raised: BaseException) -> LambdaFunction:
    @tool
    def asks(*, elicit: Elicit) -> str:
        return elicit("name", "Who?", Name).name

    def audit(_record: object) -> None:
        raise raised

    return serve(asks, audit=audit)


TOPIC = {"ref": {"type": "ref/prompt", "name": "brief"}, "argument": {"name": "topic", "value": "x"}}


@pytest.mark.parametrize("raised", RAISED, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize(
    ("served", "method", "params", "status"),
    [
        (brief_that, "prompts/get", {"name": "brief", "arguments": {"topic": "x"}}, 200),
        (brief_that, "resources/read", {"uri": "notes://x"}, 200),
        (brief_that, "completion/complete", TOPIC, 200),
        (audited_by, "tools/call", {"name": "asks"}, 200),
        (wired_by, "tools/call", {"name": "asks"}, 500),  # the caller is not known yet
    ],
)
def test_a_crash_outside_tools_is_an_error_that_the_client_can_read(  # noqa: PLR0913, PLR0917 - what goes in, and out
    served: Callable[[BaseException], LambdaFunction],
    method: str,
    params: dict[str, Any],
    status: int,
    raised: BaseException,
    caplog: pytest.LogCaptureFixture,
) -> None:
    sent = wire.event(wire.message(method, params, capabilities=wire.FORMS))
    response = served(raised)(sent, wire.Context())
    assert (response["statusCode"], json.loads(response["body"])["error"]["code"]) == (status, -32603)
    (line,) = lines(caplog)
    assert (line["outcome"], line["reason"]) == ("crashed", type(raised).__name__)
    assert SECRET not in caplog.text + response["body"]


# ---- What is meant for the model


class Closed(ValueError):
    """A subclass of a named exception, not named itself."""


def told(raised: BaseException) -> Callable[[], str]:
    def breaks() -> str:
        raise raised

    return breaks


@pytest.mark.parametrize("kind", [ValueError, LookupError])
def test_the_text_of_an_exception_that_is_named_is_for_the_model(kind: type[Exception]) -> None:
    named = tool(errors=(ValueError, LookupError))(told(kind("No flight on Sundays.")))
    talk = Conversation(serve(named)).call()
    assert (talk.result["isError"], talk.text, talk.raised) == (True, "No flight on Sundays.", None)


def test_an_exception_is_named_by_its_exact_type(caplog: pytest.LogCaptureFixture) -> None:
    def check() -> str:
        return str(TypeAdapter(int).validate_python(SECRET))  # pydantic's ValidationError is a ValueError, and quotes

    for broken in (check, told(Closed(SECRET)), told(KeyError(SECRET))):
        talk = Conversation(serve(tool(name="breaks", errors=(ValueError, LookupError))(broken))).call()
        assert talk.text == CRASHED.format("breaks")
    assert SECRET not in caplog.text


def test_exceptions_that_serve_names_are_added_to_those_of_each_tool() -> None:
    first = tool(name="first", errors=(ValueError,))(told(LookupError("No such flight.")))
    second = tool(name="second")(told(LookupError("No such hotel.")))
    function = serve(first, second, errors=(LookupError,))
    assert Conversation(function).call("first").text == "No such flight."
    assert Conversation(function).call("second").text == "No such hotel."
    assert Conversation(serve(second)).call("second").text == CRASHED.format("second")  # another deployment of it


def test_an_exception_without_a_text_is_reported_by_its_type() -> None:
    assert Conversation(serve(tool(errors=(ValueError,))(told(ValueError())))).call().text == "ValueError"


def test_a_named_exception_in_a_task_of_an_async_tool_is_for_the_model_too() -> None:
    @tool(errors=(ValueError,))
    async def books() -> str:
        async def fly() -> str:
            message = "No flight on Sundays."
            raise ValueError(message)

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(fly())
        return ""

    assert Conversation(serve(books)).call().text == "No flight on Sundays."


@pytest.mark.parametrize("module", ["mcp.server.fastmcp.exceptions", "fastmcp.exceptions"])
def test_a_tool_error_of_the_sdks_is_one_of_ours(module: str) -> None:
    theirs = type("ToolError", (Exception,), {"__module__": module})
    assert Conversation(serve(tool(told(theirs("No paper."))))).call().text == "No paper."
    assert Conversation(serve(tool(told(type("Jam", (theirs,), {})("No ink."))))).call().text == "No ink."


def test_a_tool_error_of_another_library_is_a_crash() -> None:
    theirs = type("ToolError", (Exception,), {"__module__": "acme.mcp"})
    assert Conversation(serve(tool(told(theirs("x"))))).call().text == CRASHED.format("breaks")


@pytest.mark.parametrize("wrong", ["ValueError", (ValueError("x"),), (KeyboardInterrupt,), ("ValueError",), 7])
def test_an_option_that_names_no_exceptions_is_refused_at_its_declaration(wrong: Any) -> None:  # noqa: ANN401 - anything
    with pytest.raises(TypeError, match=rf"{Path(__file__).name}.*errors is a tuple of exception classes"):
        tool(errors=wrong)(told(ValueError()))
    with pytest.raises(TypeError, match="errors is a tuple of exception classes"):
        serve(tool(told(ValueError())), errors=wrong)


# ---- Broken rules: keys are made of answers


def _read_again(_elicit: Elicit, step: Step, key: str) -> None:
    step(key, len, "a")
    step(key, len, "ab")


def _ask_twice(elicit: Elicit, _step: Step, key: str) -> None:
    elicit.together(Question(key, "A?", Name), Question(key, "B?", Name))


def _keep_no_json(_elicit: Elicit, step: Step, key: str) -> None:
    step(key, lambda: {key: object()})


def _keep_too_much(_elicit: Elicit, step: Step, key: str) -> None:
    step(key, lambda: key * 9000)


def _nest(_elicit: Elicit, step: Step, key: str) -> None:
    step(key, lambda: step("inner", len, "x"))


def _pass_no_json(_elicit: Elicit, step: Step, key: str) -> None:
    step(key, str, object())


def _forget_to_await(_elicit: Elicit, step: Step, key: str) -> None:
    async def work() -> None: ...

    step(key, work)  # type: ignore[unused-coroutine]


def _ask_inside(elicit: Elicit, step: Step, key: str) -> None:
    step("outer", lambda: elicit(key, "A?", Name).name)


def _show_no_form(elicit: Elicit, _step: Step, key: str) -> None:
    elicit("form", "A?", type(key, (), {}))


RULES = [
    _read_again, _ask_twice, _keep_no_json, _keep_too_much, _nest, _pass_no_json, _forget_to_await, _ask_inside,
    _show_no_form,
]  # fmt: skip


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize(("answer", "key"), [("planted-secret", "PLANTED-SECRET"), ("zq", "zq")])
def test_a_broken_rule_is_logged_without_the_key_that_an_answer_made(
    rule: Callable[[Elicit, Step, str], None], answer: str, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    @tool
    def breaks(*, elicit: Elicit, step: Step) -> str:
        name = elicit("name", "Who?", Name).name
        rule(elicit, step, name.upper() if name != "zq" else name)
        return "unbroken"

    talk = Conversation(serve(breaks)).call().accept(name={"name": answer})
    assert (talk.status, talk.text) == (200, CRASHED.format("breaks"))
    line = lines(caplog)[-1]
    assert (line["outcome"], line["reason"]) == ("crashed", talk.raised.rule if talk.raised else "")  # type: ignore[attr-defined]
    assert f"{__file__}:" in caplog.messages[-1]  # the log names the place instead
    assert key not in caplog.text
    assert key in str(talk.raised)


def test_members_of_a_result_are_not_logged_where_it_breaks_its_promise(caplog: pytest.LogCaptureFixture) -> None:
    class Total(BaseModel):
        by_person: dict[str, dict[str, int]]

    @tool
    def sums() -> Total:
        return Total.model_construct(by_person={"zq": {SECRET: "many"}})

    talk = Conversation(serve(sums)).call()
    assert (talk.status, talk.text) == (200, CRASHED.format("sums"))
    assert lines(caplog)[-1]["reason"] == "… returned something else than its signature promises: it …"
    assert "zq" not in caplog.text
    assert f"by_person.zq.{SECRET}" in str(talk.raised)


def test_a_state_that_cannot_be_kept_is_logged_by_its_rule(caplog: pytest.LogCaptureFixture) -> None:
    class Kept(BaseModel):
        value: Any = None

    @tool
    def keeps(*, state: RequestState[Kept]) -> mcp_functions.InputRequiredResult:
        return mcp_functions.InputRequiredResult({}, request_state=Kept(value=object() if state.value else None))

    assert Conversation(serve(keeps)).call().text == CRASHED.format("keeps")
    assert lines(caplog)[-1]["reason"].startswith("request_state: a … that holds this cannot be read again")


RULE_AT = {
    "DeveloperError": 0,
    "fail": 0,
    "_fail": 0,
    "NotJson": 0,
    "_UnsupportedValue": 1,
}  # name to index of the argument
TYPE_NAMES = {"type_name", "name", "reason.format"}  # functions that return the name of a type
# Names whose values are such rules: checked where they are made, or texts of NotJson.
CHECKED = {
    "round.py": {"rule"},  # as `fail` was given it
    "step_call.py": {"rule"},  # as `_fail` was given it
    "results.py": {"reason", "allowed"},  # str(NotJson); TOOL or RESOURCE
    "forms.py": {"reason"},  # constants that `_refuse` is given
    "client_questions.py": {"error"},  # NotJson
    "plain_values.py": {"reason", "error.reason"},  # of _UnsupportedValue
}


def is_rule(text: ast.expr, scope: ast.AST, checked: set[str]) -> bool:
    """Tell a text that is made of constants and names of types alone, and so of no value."""
    parts: list[ast.expr] = []
    match text:
        case ast.JoinedStr(values=parts):
            pass
        case ast.FormattedValue(value=part):
            parts = [part]
        case ast.BinOp(left=left, op=ast.Add(), right=right) | ast.IfExp(body=left, orelse=right):
            parts = [left, right]
        case ast.Constant():
            return True
        case ast.Call(func=function):
            return ast.unparse(function) in TYPE_NAMES
    if parts:
        return all(is_rule(part, scope, checked) for part in parts)
    name = ast.unparse(text)
    made = [
        each.value
        for each in ast.walk(scope)
        if isinstance(each, ast.Assign) and name in map(ast.unparse, each.targets)
    ]
    return name in checked or name.isupper() or (bool(made) and all(is_rule(each, scope, checked) for each in made))


def loose_rules(source: str, file: str) -> list[str]:
    """Find each rule of a module that may hold a value: it would be logged."""
    tree = ast.parse(source)
    scopes = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    calls = [(call, scope) for scope in scopes for call in ast.walk(scope) if isinstance(call, ast.Call)]
    return [
        f"{file}:{call.lineno} {ast.unparse(call)}"
        for call, scope in calls
        if ast.unparse(call.func) != "fail"  # the function of another room: a round's `fail` is a method
        if (name := ast.unparse(call.func).rpartition(".")[2]) in RULE_AT
        for rule in [*call.args[RULE_AT[name] :][:1], *(each.value for each in call.keywords if each.arg == "rule")]
        if not is_rule(rule, scope, CHECKED.get(file, set()))
    ]


def test_a_rule_is_a_constant_text() -> None:
    """`DeveloperError.rule` goes to the log: it may name types, and values go beside it."""
    files = [file for file in Path(mcp_functions.__file__).parent.rglob("*.py") if "scaffold" not in file.parts]
    assert len(files) > 100
    loose = [rule for file in files for rule in loose_rules(file.read_text(encoding="utf-8"), file.name)]
    assert loose == []


@pytest.mark.parametrize(
    "line",
    [
        "raise DeveloperError(f'step {key!r} is odd')",
        "rule = f'step {key!r} is odd'\n    self.round.fail(rule)",
        "raise DeveloperError('step ' + key)",
        "raise DeveloperError(str(key))",
        "raise DeveloperError('step %s' % key)",
        "raise DeveloperError(rule=f'step {key!r} is odd')",
        "raise NotJson(f'{key} is none')",
    ],
)
def test_a_rule_that_quotes_a_value_would_be_found(line: str) -> None:
    assert len(loose_rules(f"def broken(self, key):\n    {line}\n", "any.py")) == 1


def test_a_rule_shows_braces_that_hold_no_value() -> None:
    assert (str(DeveloperError("{x} is no {name}", x="{y}", name=1)), DeveloperError("{x}").rule) == (
        "{y} is no 1",
        "{x}",
    )
    assert DeveloperError("{x!r} is no {name}", x="a", name="b").rule == "… is no …"


@pytest.fixture(autouse=True)
def _everything(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "mcp_functions")
