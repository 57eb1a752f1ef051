"""The log has the rule of the package that an author's code broke, but none of the values that broke it.

`DeveloperError.rule` is a text without values, and goes to the log. `str(DeveloperError)` has the values too, and only
the author's tests show it. Here an author makes keys from answers. The last tests read the source of the package: each
rule in it is a constant text. The decorators read real annotations at run time, so this module does not import
`annotations` from `__future__`.
"""

import ast
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

import mcp_functions
from mcp_functions import Elicit, Question, Step, serve, tool
from mcp_functions.low_level import InputRequiredResult, RequestState
from mcp_functions.protocol.errors import DeveloperError
from mcp_functions_harness.testing import Conversation

SECRET = "planted-unspeakable"  # noqa: S105 - tests/support/planted.py searches every response and log line for it


class Name(BaseModel):
    name: str


def logged_reason(caplog: pytest.LogCaptureFixture) -> str:
    """Return the reason in the last line of a request."""
    lines = [vars(record) for record in caplog.records if hasattr(record, "outcome")]
    return str(lines[-1]["reason"])


def _use_a_key_twice(_elicit: Elicit, step: Step, key: str) -> None:
    step(key, len, "a")
    step(key, len, "ab")


def _ask_with_one_key_twice(elicit: Elicit, _step: Step, key: str) -> None:
    elicit.together(Question("A?", Name, key=key), Question("B?", Name, key=key))


def _return_no_json(_elicit: Elicit, step: Step, key: str) -> None:
    step(key, lambda: {key: object()})


def _return_too_much(_elicit: Elicit, step: Step, key: str) -> None:
    step(key, lambda: key * 9000)


def _nest_steps(_elicit: Elicit, step: Step, key: str) -> None:
    step(key, lambda: step("inner", len, "x"))


def _pass_no_json(_elicit: Elicit, step: Step, key: str) -> None:
    step(key, str, object())


def _forget_to_await(_elicit: Elicit, step: Step, key: str) -> None:
    async def work() -> None: ...

    step(key, work)  # type: ignore[unused-coroutine]


def _ask_inside_a_step(elicit: Elicit, step: Step, key: str) -> None:
    step("outer", lambda: elicit(key, "A?", Name).name)


def _ask_without_a_form(elicit: Elicit, _step: Step, key: str) -> None:
    elicit("form", "A?", type(key, (), {}))


RULE_BREAKERS = [
    _use_a_key_twice,
    _ask_with_one_key_twice,
    _return_no_json,
    _return_too_much,
    _nest_steps,
    _pass_no_json,
    _forget_to_await,
    _ask_inside_a_step,
    _ask_without_a_form,
]


@pytest.mark.parametrize("break_rule", RULE_BREAKERS)
@pytest.mark.parametrize("answer", ["planted-secret", "zq"])
def test_the_log_has_the_broken_rule_and_its_place_but_not_the_key(
    break_rule: Callable[[Elicit, Step, str], None], answer: str, caplog: pytest.LogCaptureFixture
) -> None:
    @tool
    def breaks(*, elicit: Elicit, step: Step) -> str:
        break_rule(elicit, step, elicit("name", "Who?", Name).name)
        return "unbroken"

    talk = Conversation(serve(breaks)).call().accept(name={"name": answer})
    assert isinstance(talk.raised, DeveloperError)
    assert answer in str(talk.raised)
    assert logged_reason(caplog) == talk.raised.rule
    assert f"{__file__}:" in caplog.messages[-1]
    assert answer not in caplog.text


def test_the_log_has_no_value_of_a_result_that_does_not_match_its_return_type(caplog: pytest.LogCaptureFixture) -> None:
    class Total(BaseModel):
        by_person: dict[str, dict[str, int]]

    @tool
    def sums() -> Total:
        return Total.model_construct(by_person={"zq": {SECRET: "many"}})

    talk = Conversation(serve(sums)).call()
    assert logged_reason(caplog) == "… returned something else than its signature promises: it …"
    assert "zq" not in caplog.text
    assert str(talk.raised).endswith("it by_person a value a value must be an integer")


def test_the_log_has_the_rule_of_a_request_state_that_cannot_be_written(caplog: pytest.LogCaptureFixture) -> None:
    class State(BaseModel):
        value: Any = None

    @tool
    def plans(*, state: RequestState[State]) -> InputRequiredResult:
        return InputRequiredResult({}, request_state=State(value=object() if state.value else None))

    Conversation(serve(plans)).call()
    assert logged_reason(caplog).startswith("request_state: a … that holds this cannot be read again")


def test_braces_in_a_rule_are_no_place_for_a_value() -> None:
    assert DeveloperError("{x}").rule == "{x}"


def test_the_rule_has_an_ellipsis_for_each_value_of_the_message() -> None:
    error = DeveloperError("{x!r} is no {name}", x="{y}", name=1)
    assert str(error) == "'{y}' is no 1"
    assert error.rule == "… is no …"


# ---- Each rule in the source of the package is a constant text

# The calls that take a rule, and the position of the rule in their arguments.
RULE_POSITIONS = {"DeveloperError": 0, "fail": 0, "_fail": 0, "NotJson": 0}
TYPE_NAMES = {"type_name", "name"}  # functions that return the name of a type
# Variables of a module that have a rule already: their values are checked where they are made.
RULE_VARIABLES = {
    "round.py": {"rule"},  # the parameter of `fail`
    "step_call.py": {"rule"},  # the parameter of `_fail`
    "results.py": {"reason", "allowed"},  # str(NotJson); TOOL or RESOURCE
    "forms.py": {"reason"},  # constants, the parameter of `_refuse`
    "sampling.py": {"error"},  # NotJson
    "plain_values.py": {"error", "type(value).__name__"},  # NotJson; the name of a type
}


def is_rule(text: ast.expr, function: ast.AST, rule_variables: set[str]) -> bool:
    """Return whether a text consists of constants and names of types, and so of no value."""
    match text:
        case ast.Constant():
            return True
        case ast.Call(func=called):
            return ast.unparse(called) in TYPE_NAMES
        case ast.JoinedStr(values=parts):
            pass
        case ast.FormattedValue(value=part):
            parts = [part]
        case ast.BinOp(left=left, op=ast.Add(), right=right) | ast.IfExp(body=left, orelse=right):
            parts = [left, right]
        case _:
            name = ast.unparse(text)
            if name in rule_variables or name.isupper():
                return True
            parts = assigned_values(name, function)
    return bool(parts) and all(is_rule(part, function, rule_variables) for part in parts)


def assigned_values(name: str, function: ast.AST) -> list[ast.expr]:
    assignments = [node for node in ast.walk(function) if isinstance(node, ast.Assign)]
    return [node.value for node in assignments if name in map(ast.unparse, node.targets)]


def rules_in(call: ast.Call) -> list[ast.expr]:
    """Return the argument of a call that is a rule; [] if the call takes none."""
    called = ast.unparse(call.func)
    position = RULE_POSITIONS.get(called.rpartition(".")[2])
    if position is None or called == "fail":  # a round's `fail` is a method; the function is another one
        return []
    keywords = [keyword.value for keyword in call.keywords if keyword.arg == "rule"]
    return call.args[position : position + 1] + keywords


def find_rules_with_values(source: str, file: str) -> list[str]:
    """Return the place of each rule of a module that may hold a value."""
    rule_variables = RULE_VARIABLES.get(file, set())
    nodes = ast.walk(ast.parse(source))
    return [
        f"{file}:{rule.lineno} {ast.unparse(rule)}"
        for function in nodes
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for call in ast.walk(function)
        if isinstance(call, ast.Call)
        for rule in rules_in(call)
        if not is_rule(rule, function, rule_variables)
    ]


def test_a_rule_is_a_constant_text() -> None:
    files = [file for file in Path(mcp_functions.__file__).parent.rglob("*.py") if "scaffold" not in file.parts]
    assert len(files) > 100
    assert [find_rules_with_values(file.read_text(encoding="utf-8"), file.name) for file in files] == [[]] * len(files)


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
def test_the_search_finds_a_rule_with_a_value(line: str) -> None:
    assert len(find_rules_with_values(f"def broken(self, key):\n    {line}\n", "any.py")) == 1


@pytest.fixture(autouse=True)
def _log_everything(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "mcp_functions")
