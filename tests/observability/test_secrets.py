"""Failures whose texts contain a secret: no log, no output and no error response contains it.

`tests/support/planted.py` searches while these run, as it does for the whole suite. These tests make sure that there is
something to find, and that it would be found.

No `from __future__ import annotations` here, because most authors' modules have none.
"""

import asyncio
import io
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import pytest
from aws_lambda_powertools import Tracer
from aws_lambda_powertools.utilities.idempotency import IdempotencyConfig, idempotent_function
from awslambdaric.lambda_runtime_log_utils import JsonFormatter  # type: ignore[import-untyped]  # it has no types
from botocore.exceptions import ClientError
from pydantic import BaseModel, field_validator

from mcp_functions import Elicit, Log, Question, Step, ToolError, prompt, resource, serve, tool
from mcp_functions.annotated import Header
from mcp_functions.front_door import FrontDoor
from mcp_functions.handlers import catalog
from mcp_functions.http.exchange import Endpoint
from mcp_functions.http.gateway import LambdaFunction
from mcp_functions.low_level import InputRequiredResult, RequestState
from mcp_functions.protocol.errors import Misconfigured, TemporarilyUnavailable
from mcp_functions.protocol.messages import Principal
from mcp_functions_harness import Harness, template
from mcp_functions_harness.testing import Conversation, deployed
from tests.docs import powertools
from tests.support import modes, planted, wire
from tests.support.endpoints import make_function
from tests.support.planted import SECRET, UNSPEAKABLE
from tests.support.settings import make_settings

ROOT = Path(__file__).parents[2]
EVE = Principal(f"https://{UNSPEAKABLE}.example", UNSPEAKABLE, UNSPEAKABLE)


class Name(BaseModel):
    name: str

    @field_validator("name")
    @classmethod
    def _proper(cls, name: str) -> str:
        if name.startswith("no "):
            message = f"{name} is no name"
            raise ValueError(message)
        return name


def _raise(_elicit: Elicit, _step: Step, how: str, known: str) -> None:
    raise LookupError(known, how)


def _chain(elicit: Elicit, step: Step, how: str, known: str) -> None:
    try:
        _raise(elicit, step, how, known)
    except LookupError as error:
        raise KeyError(known) from error


def _group(_elicit: Elicit, _step: Step, how: str, known: str) -> None:
    raise ExceptionGroup(known, [ValueError(how), ToolError("three")])


def _break_a_step(_elicit: Elicit, step: Step, _how: str, known: str) -> None:
    step("breaks", {"x": 1}.__getitem__, known)


def _change_arguments(_elicit: Elicit, step: Step, how: str, known: str) -> None:
    step(how, len, known)
    step(how, len, how)


def _ask_two_questions(elicit: Elicit, _step: Step, how: str, _known: str) -> None:
    elicit.together(Question(how, Name, key=how), Question(f"{how}!", Name, key=how))


def _ask_a_bad_form(elicit: Elicit, _step: Step, how: str, known: str) -> None:
    elicit(how, how, {known: how})  # type: ignore[arg-type]


def _show_a_bad_page(elicit: Elicit, _step: Step, how: str, _known: str) -> None:
    elicit.url(how, how, f"javascript:{how}")


def _keep_too_much(_elicit: Elicit, step: Step, how: str, known: str) -> None:
    step(how, lambda: known * 9000)


def _keep_no_json(_elicit: Elicit, step: Step, how: str, known: str) -> None:
    step(how, lambda: {known: object()})


FAILURES = {
    way.__name__.removeprefix("_"): way
    for way in (
        _raise, _chain, _group, _break_a_step, _change_arguments, _ask_two_questions, _ask_a_bad_form, _show_a_bad_page,
        _keep_too_much, _keep_no_json,
    )
}  # fmt: skip


@tool
def fail(how: str, *, elicit: Elicit, step: Step) -> str:
    known = step("known", lambda: UNSPEAKABLE)
    if way := FAILURES.get(how.partition(" ")[0]):
        way(elicit, step, how, known)
    return elicit("name", f"{how}?", Name).name


@tool
async def fail_in_a_task(how: str, *, elicit: Elicit) -> str:
    async def task() -> str:
        raise ValueError(UNSPEAKABLE, how)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(task())
    return elicit("name", how, Name).name


class Promise(BaseModel):
    total: int

    @field_validator("total", mode="before")
    @classmethod
    def _quote(cls, total: object) -> object:
        if isinstance(total, str):
            message = f"{total} is no total"
            raise ValueError(message)  # noqa: TRY004 - as authors do
        return total


@tool
def promise(how: str) -> Promise:
    return Promise.model_construct(total=f"{UNSPEAKABLE} {how}")


@tool
def sized(size: int, region: Annotated[str, Header("Region")] = "eu", *, log: Log) -> str:
    log("no such level", SECRET)
    return region * size


class Kept(BaseModel):
    secret: str = ""


@tool
def keeps(how: str, *, state: RequestState[Kept]) -> InputRequiredResult:
    kept = Kept(secret=f"{UNSPEAKABLE} {how} {state.value}")
    return InputRequiredResult({}, request_state=kept)


@prompt
def brief(topic: str) -> str:
    raise LookupError(UNSPEAKABLE, topic)


@brief.complete("topic")
def _topics(value: str, _arguments: Mapping[str, str]) -> list[str]:
    raise LookupError(UNSPEAKABLE, value)


@resource("notes://{owner}")
def note(owner: str) -> str:
    raise LookupError(UNSPEAKABLE, owner)


@pytest.fixture(autouse=True)
def _everything(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level(logging.DEBUG, "mcp_functions"):
        yield


def log_text(caplog: pytest.LogCaptureFixture) -> str:
    """Write what was logged as Lambda's runtime would."""
    return "".join(JsonFormatter().format(record) for record in caplog.records)


def send(function: LambdaFunction, method: str, params: dict[str, Any], **options: Any) -> dict[str, Any]:  # noqa: ANN401
    meta = {"progressToken": SECRET, "traceparent": SECRET, "x.example/note": SECRET}
    event = wire.event(wire.message(method, params, meta=meta, id=SECRET), **options)
    return function(event, wire.Context())


# ---- It would be found


@pytest.fixture
def take_leaks() -> Iterator[Callable[[], list[str]]]:
    yield planted.take_leaks
    planted.take_leaks()


@pytest.mark.parametrize("mark", [SECRET, UNSPEAKABLE, "hunter2"])
def test_the_search_finds_a_secret_in_a_log_line(take_leaks: Callable[[], list[str]], mark: str) -> None:
    apart = logging.getLogger("mcp_functions.x")
    apart.disabled = True  # or pytest would show it, and that would be found too
    apart.handle(apart.makeRecord(apart.name, logging.WARNING, __file__, 1, "failed: %s", (mark,), None))
    assert "a log record of mcp_functions.x" in take_leaks()[0]
    logging.getLogger("mcp_functions").warning("failed", extra={"reason": mark})
    assert [leak.partition(":")[0] for leak in take_leaks()] == ["a field of a log record of mcp_functions"]


def test_the_search_finds_a_secret_in_a_record_below_the_log_level(
    take_leaks: Callable[[], list[str]], caplog: pytest.LogCaptureFixture
) -> None:
    def wire_nothing(_name: str, _now: object) -> Endpoint:
        raise Misconfigured(SECRET)

    caplog.set_level(logging.CRITICAL, "mcp_functions")
    send(LambdaFunction(wire_nothing), "tools/list", {})
    assert [leak.partition(":")[0] for leak in take_leaks()] == ["the line of a request"]


def test_the_search_finds_a_planted_secret_in_a_response(take_leaks: Callable[[], list[str]]) -> None:
    @tool
    def tell() -> str:
        return UNSPEAKABLE

    Conversation(serve(tell)).call()
    assert [leak.partition(":")[0] for leak in take_leaks()] == ["a response"]


def test_a_test_that_leaks_a_secret_fails(take_leaks: Callable[[], list[str]]) -> None:
    report = pytest.TestReport(
        "x", ("x", 1, "x"), {}, "passed", None, "call", [("Captured stdout call", f"… {SECRET}")]
    )
    assert planted.fail_leaking_test(report).failed
    assert SECRET in str(report.longrepr)
    assert take_leaks() == []


# ---- Authors' functions


@pytest.mark.parametrize("how", FAILURES)
def test_a_failing_function_leaks_no_secret(how: str, caplog: pytest.LogCaptureFixture) -> None:
    talk = Conversation(serve(fail)).call(how=f"{how} {SECRET}")
    assert (talk.status, talk.result["isError"]) == (200, True)
    assert "ERROR" in log_text(caplog)


def test_a_recorded_step_of_another_type_leaks_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    def price() -> Kept:
        return Kept(secret=UNSPEAKABLE)

    def changed() -> Promise:
        return Promise(total=1)

    @tool
    def first(*, step: Step, elicit: Elicit) -> str:
        step("price", price)
        return elicit("name", "Who?", Name).name

    @tool(name="first")
    def second(*, step: Step, elicit: Elicit) -> str:
        return f"{step('price', changed)} {elicit('name', 'Who?', Name)}"

    talk = Conversation(serve(first)).call().upgrade(serve(second)).accept(name={"name": SECRET})
    assert talk.result["isError"] is True
    assert "does not fit what … says it returns" in log_text(caplog)


def test_a_failing_task_leaks_no_secret() -> None:
    assert Conversation(serve(fail_in_a_task)).call(how=SECRET).result["isError"] is True


def test_a_result_of_the_wrong_type_leaks_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    assert Conversation(serve(promise)).call(how=SECRET).result["isError"] is True
    assert "something else than its signature promises" in log_text(caplog)


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("prompts/get", {"name": "brief", "arguments": {"topic": SECRET}}),
        ("resources/read", {"uri": f"notes://{SECRET}"}),
        (
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "brief"}, "argument": {"name": "topic", "value": SECRET}},
        ),
    ],
)
def test_failing_prompts_resources_and_completers_leak_no_secret(method: str, params: dict[str, Any]) -> None:
    assert json.loads(send(serve(brief, note), method, params)["body"])["error"]["code"] == -32603


def test_a_failing_audit_leaks_no_secret() -> None:
    def audit(_record: object) -> None:
        raise OSError(UNSPEAKABLE)

    assert Conversation(serve(fail, audit=audit)).call(how=SECRET).error["code"] == -32603


# ---- What clients send


@pytest.mark.parametrize(
    ("method", "params", "headers"),
    [
        ("tools/call", {"name": "sized", "arguments": {"size": SECRET}}, {}),
        ("tools/call", {"name": "sized", "arguments": {"size": 1, SECRET: {SECRET: [SECRET]}}}, {}),
        ("tools/call", {"name": "sized", "arguments": [SECRET]}, {}),
        ("tools/call", {"name": "sized", "arguments": {"size": 1}}, {}),
        ("tools/call", {"name": "sized", "arguments": {"size": 1}}, {"mcp-param-region": SECRET}),
        ("tools/call", {"name": "sized", "arguments": {"size": 1}}, {"mcp-name": SECRET}),
        ("tools/call", {"name": SECRET}, {}),
        ("tools/call", {"name": {SECRET: SECRET}}, {}),
        ("tools/call", {"name": "keeps", "arguments": {"how": "x"}, "requestState": SECRET}, {}),
        ("tools/call", {"name": "keeps", "arguments": {"how": "x"}, "requestState": f"ks1.{SECRET}"}, {}),
        ("tools/call", {"name": "keeps", "arguments": {"how": "x"}, "requestState": {SECRET: SECRET}}, {}),
        ("tools/call", {"name": "keeps", "arguments": {"how": "x"}, "inputResponses": {SECRET: SECRET}}, {}),
        ("prompts/get", {"name": "brief", "arguments": {SECRET: SECRET}}, {}),
        ("prompts/get", {"name": SECRET}, {}),
        ("resources/read", {"uri": f"{SECRET}://x"}, {}),
        ("resources/read", {"uri": SECRET}, {"mcp-method": SECRET}),
        ("completion/complete", {"ref": {"type": SECRET}, "argument": SECRET}, {}),
        ("tools/list", {"cursor": SECRET}, {}),
        (SECRET, {}, {}),
        ("tools/list", {}, {"mcp-protocol-version": SECRET}),
        ("tools/list", {}, {"origin": f"https://{SECRET}.example"}),
        ("tools/list", {}, {"content-type": SECRET, "content-encoding": SECRET}),
        ("tools/list", {}, {"x-amzn-oidc-identity": SECRET, "authorization": f"Bearer {SECRET}"}),
    ],
)
def test_invalid_requests_leak_no_secret(method: str, params: dict[str, Any], headers: dict[str, str]) -> None:
    assert send(serve(sized, keeps, brief, note), method, params, headers=headers)["statusCode"]


@pytest.mark.parametrize(
    "body",
    [
        SECRET,
        f'{{"{SECRET}": ',
        f'["{SECRET}"]',
        f'"{SECRET}"',
        f'{{"jsonrpc": "2.0", "method": "{SECRET}"}}',
        f"\ud800{SECRET}",
    ],
)
def test_a_malformed_body_leaks_no_secret(body: str) -> None:
    assert serve(sized)(wire.event(body), wire.Context())["statusCode"] in {202, 400}


@pytest.mark.parametrize(
    "answer", [{"name": f"no {SECRET}"}, {"name": [SECRET]}, {SECRET: SECRET}, {"name": f"no {SECRET}", "more": SECRET}]
)
def test_an_invalid_answer_leaks_no_secret(answer: dict[str, Any]) -> None:
    talk = Conversation(serve(fail)).call(how=SECRET).accept(name=answer)
    assert talk.asked == ["name"]


def test_states_of_other_callers_arguments_and_times_leak_no_secret() -> None:
    function = serve(fail)
    alice = Principal("https://issuer.example", f"{UNSPEAKABLE}-alice", "client")
    with deployed(
        MCP_AUTH_MODE="jwt", MCP_JWT_ISSUER=alice.iss, MCP_JWT_AUDIENCE="us", MCP_RESOURCE_URL="https://m.example/mcp"
    ):
        talk = Conversation(function, principal=alice).call(how=SECRET)
        assert talk.as_(alice._replace(sub=f"{UNSPEAKABLE}-eve")).accept(name={"name": SECRET}).status == 400
        assert talk.tamper(lambda token: token[:-9] + "AAAAAAAAA").status == 400
        assert talk.later(hours=2).accept(name={"name": SECRET}).status == 400


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": EVE.iss}, {"aud": UNSPEAKABLE}, {"aud": None, "client_id": UNSPEAKABLE}, {"exp": UNSPEAKABLE},
        {"token_use": UNSPEAKABLE, "sub": ""}, {"sub": None}, {"scope": UNSPEAKABLE}, {"azp": UNSPEAKABLE},
    ],
)  # fmt: skip
def test_tokens_for_another_audience_leak_no_secret(claims: dict[str, Any]) -> None:
    @tool(scopes=["work:write"])
    def close() -> str:
        return "closed"

    good = {"iss": "https://i.example", "sub": UNSPEAKABLE, "aud": "us", "exp": "99999999999"}
    context = {"authorizer": {"jwt": {"claims": {k: v for k, v in (good | claims).items() if v is not None}}}}
    with deployed(
        MCP_AUTH_MODE="jwt",
        MCP_JWT_ISSUER="https://i.example",
        MCP_JWT_AUDIENCE="us",
        MCP_RESOURCE_URL="https://m.example/mcp",
    ):
        assert send(serve(close), "tools/call", {"name": "close"}, context=context)["statusCode"] in {401, 403}


@pytest.mark.parametrize("mode", ["iam", "jwt"])
def test_a_route_without_its_authorizer_leaks_no_secret(mode: str) -> None:
    context = {"authorizer": {"lambda": {UNSPEAKABLE: UNSPEAKABLE}}, "identity": {"user": UNSPEAKABLE}}
    with deployed(
        MCP_AUTH_MODE=mode,
        MCP_JWT_ISSUER="https://i.example",
        MCP_JWT_AUDIENCE="us",
        MCP_RESOURCE_URL="https://m.example/mcp",
    ):
        assert send(serve(sized), "tools/list", {}, context=context)["statusCode"] == 500


# ---- KMS, and other seals


class SealFactory:
    """A KMS that fails with secrets in its words."""

    id = "vault"

    def __init__(self, failure: Exception) -> None:
        self.failure: Exception | None = None
        self._later = failure

    def generate(self, _context: dict[str, str]) -> tuple[bytes, bytes]:
        if self.failure:
            raise self.failure
        self.failure = self._later
        return b"k" * 32, b"w"

    def unwrap(self, _wrapped: bytes, _context: dict[str, str]) -> bytes:
        raise self._later


@pytest.mark.parametrize(
    "failure",
    [
        ClientError({"Error": {"Code": "AccessDeniedException", "Message": UNSPEAKABLE}}, "Decrypt"),
        OSError(UNSPEAKABLE), LookupError(UNSPEAKABLE), TemporarilyUnavailable("kms:ThrottlingException"),
    ],
)  # fmt: skip
def test_a_failing_kms_leaks_no_secret(failure: Exception) -> None:
    vault = SealFactory(failure)
    function = serve(fail, wrapping=[vault])
    talk = Conversation(function).call(how=SECRET)
    assert talk.upgrade(function.fresh()).accept(name={"name": SECRET}).status in {400, 500, 503}
    assert Conversation(function.fresh()).call(how=SECRET).status in {500, 503}


def test_a_failing_codec_leaks_no_secret() -> None:
    class Codec:
        def seal(self, payload: bytes, /) -> str:
            if SECRET.encode() in payload:
                raise LookupError(payload)
            return payload.hex()

        def unseal(self, token: str, /) -> bytes:
            raise LookupError(UNSPEAKABLE, token)

    talk = Conversation(serve(fail, codec=Codec())).call(how="well")
    assert talk.accept(name={"name": SECRET}).status == 400


# ---- The endpoint


class Invoke:
    """Lambda's Invoke API, which answers or fails with secrets in its words."""

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def invoke(self, **_asked: object) -> dict[str, Any]:
        if isinstance(self.answer, Exception):
            raise self.answer
        error = {"FunctionError": "Unhandled"} if isinstance(self.answer, dict) else {}
        return {"Payload": io.BytesIO(json.dumps(self.answer).encode()), **error}


@pytest.mark.parametrize(
    "answer",
    [
        {"errorType": "LookupError", "errorMessage": UNSPEAKABLE, "stackTrace": [UNSPEAKABLE]},
        {"errorType": UNSPEAKABLE, "errorMessage": UNSPEAKABLE}, UNSPEAKABLE, [UNSPEAKABLE],
        ClientError({"Error": {"Code": "AccessDeniedException", "Message": UNSPEAKABLE}}, "Invoke"),
        OSError(UNSPEAKABLE),
    ],
)  # fmt: skip
def test_a_failing_function_behind_the_endpoint_leaks_no_secret(answer: object) -> None:
    settings = make_settings(auth_mode="none")
    door = FrontDoor(catalog.build([sized], "sized"), settings, lambda: Invoke(answer))
    endpoint = make_function(settings, door.answer)
    assert send(endpoint, "tools/call", {"name": "sized", "arguments": {"size": SECRET}})["statusCode"] in {200, 500}


# ---- What Powertools records: by default, and as the template has it


RESULT = "planted-result"


@tool
def remember(how: str, *, step: Step) -> str:
    """Store a note."""
    if how == "raise":
        raise LookupError(UNSPEAKABLE)
    return str(step("kept", idempotent_tool, how=how))


def idempotent_tool(*, how: str) -> str:
    return RESULT if how else ""


def call_remember(how: str = SECRET) -> dict[str, Any]:
    return wire.event(wire.message("tools/call", {"name": "remember", "arguments": {"how": how}}))


@pytest.fixture
def powertools_variables(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Set what the template sets for Powertools."""
    everywhere = template.read(ROOT / "template.yaml")["Globals"]["Function"]["Environment"]["Variables"]
    names = ("POWERTOOLS_LOGGER_", "POWERTOOLS_TRACER_")
    variables = {name: value for name, value in everywhere.items() if name.startswith(names)}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return variables


def test_the_template_turns_powertools_recording_off(
    powertools_variables: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trace, logger = powertools.traced(monkeypatch), powertools.logger()
    handler = Tracer().capture_lambda_handler(logger.inject_lambda_context(serve(remember, logger=logger)))
    for how in (SECRET, "raise"):
        handler(call_remember(how), wire.Context())
    assert set(powertools_variables.values()) == {"false"}
    assert trace.metadata == {}
    log_text = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["outcome"] for line in log_text] == ["complete", "crashed"]
    assert planted.take_leaks() == []


@pytest.mark.parametrize("asked", [True, False])
def test_powertools_logs_an_event_only_if_it_is_configured_to(
    powertools_variables: dict[str, str],  # noqa: ARG001 - its variables
    *,
    asked: bool,
) -> None:
    out = io.StringIO()
    logger = powertools.logger(stream=out)
    handler = logger.inject_lambda_context(serve(remember, logger=logger), log_event=asked or None)
    handler(call_remember("a word"), wire.Context())
    assert ("a word" in out.getvalue()) is asked  # nothing planted: the search would find it, as it should


@pytest.mark.parametrize("captured", [True, False])
def test_a_trace_has_the_response_unless_that_is_switched_off(
    monkeypatch: pytest.MonkeyPatch, *, captured: bool
) -> None:
    trace = powertools.traced(monkeypatch)
    if not captured:
        monkeypatch.setenv("POWERTOOLS_TRACER_CAPTURE_RESPONSE", "false")
    Tracer().capture_lambda_handler(serve(remember))(call_remember(), wire.Context())
    assert (RESULT in str(trace.metadata)) is captured


def test_a_trace_holds_no_exception_of_a_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = powertools.traced(monkeypatch)
    Tracer().capture_lambda_handler(serve(remember))(call_remember("raise"), wire.Context())
    assert trace.metadata
    assert UNSPEAKABLE not in str(trace.metadata)


def test_an_idempotency_item_holds_the_result_and_no_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    store, config = powertools.Store(), IdempotencyConfig()
    config.register_lambda_context(wire.Context())  # type: ignore[arg-type]  # as much of it as is read
    once = idempotent_function(idempotent_tool, data_keyword_argument="how", persistence_store=store, config=config)
    monkeypatch.setitem(globals(), "idempotent_tool", once)
    serve(remember)(call_remember(), wire.Context())
    (record,) = store.records.values()
    assert RESULT in record.response_data
    assert SECRET not in f"{record.idempotency_key} {record.payload_hash}"
    assert planted.take_leaks() == []


# ---- In processes of their own

APP = f"""
import logging
from mcp_functions import Elicit, ToolError, serve, tool
from pydantic import BaseModel

class Name(BaseModel):
    name: str

@tool
def fail(how: str, *, elicit: Elicit) -> str:
    if how == "exit":
        raise SystemExit("{UNSPEAKABLE}")
    name = elicit("name", how + "?", Name).name
    raise LookupError("{UNSPEAKABLE}", how, name)

handler = serve(fail)
"""
TEMPLATE = """
Resources:
  Key: {Type: AWS::KMS::Key}
  Fail:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: functions/fail/
      MemorySize: 512
      Timeout: 28
      Environment:
        Variables: {MCP_STACK: x, MCP_STAGE: x, MCP_AUTH_MODE: x, MCP_KMS_KEYS: !GetAtt Key.Arn}
      LoggingConfig: {LogFormat: JSON, ApplicationLogLevel: DEBUG}
"""


POWERTOOLS = """
from aws_lambda_powertools import Logger
logger = Logger(level="DEBUG")
handler = logger.inject_lambda_context(serve(fail, logger=logger))
"""


@pytest.mark.parametrize("more", ["", POWERTOOLS], ids=["lambda", "powertools"])
def test_the_logs_of_the_real_runtime_hold_no_secret(tmp_path: Path, more: str) -> None:
    modes.skip_without_runtime()
    (tmp_path / "functions/fail").mkdir(parents=True)
    (tmp_path / "functions/fail/app.py").write_text(APP + more, encoding="utf-8")
    (tmp_path / "template.yaml").write_text(TEMPLATE, encoding="utf-8")
    said: list[str] = []
    with Harness(
        tmp_path / "functions", port=0, runtime=True, on_log=lambda _folder, line: said.append(line)
    ) as harness:
        answers = [
            post(harness.url + "/fail", {"how": SECRET}),
            post(harness.url + "/fail", {"how": [SECRET]}),
            post(harness.url + "/fail", {"how": SECRET}, requestState=SECRET),
        ]
        assert "result" in answers[0], answers
        state = answers[0]["result"]["requestState"]
        responses = {"name": {"action": "accept", "content": {"name": SECRET}}}
        answers.append(post(harness.url + "/fail", {"how": SECRET}, requestState=state, inputResponses=responses))
        answers.append(post(harness.url + "/fail", {"how": "exit"}))
    told = [json.loads(line) for line in said if line.startswith("{") and '"outcome"' in line]
    assert [line["outcome"] for line in told] == ["input_required", "complete", "refused", "crashed", "crashed"]
    assert [answer["result"]["isError"] for answer in answers[-2:]] == [True, True]
    assert all(("function_memory_size" in line) is bool(more) for line in told)
    assert not [line for line in said if "planted-" in line]
    assert UNSPEAKABLE not in str(answers)


def post(url: str, arguments: dict[str, Any], **more: Any) -> Any:  # noqa: ANN401 - JSON
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    message = wire.message("tools/call", {"name": "fail", "arguments": arguments, **more})
    request = Request(url, json.dumps(message).encode(), wire.headers(message))  # noqa: S310 - loopback
    try:
        with urlopen(request) as response:  # noqa: S310 - loopback
            return json.load(response)
    except HTTPError as refused:
        with refused:
            return json.load(refused)
