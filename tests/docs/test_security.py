"""The page "Security", its runbooks, the attacks on the sign-in: quotations are exact, names exist, the code runs."""

from __future__ import annotations

import base64
import json
import logging
import re
import shlex
import tomllib
from functools import cache
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter
from awslambdaric.lambda_runtime_log_utils import JsonFormatter  # type: ignore[import-untyped]  # it has no types
from botocore.exceptions import NoCredentialsError

from mcp_functions.aws.errors import ClientError, HTTPClientError
from mcp_functions.observability import Notes, lines
from mcp_functions.protocol.errors import Busy, InvalidRequestState, McpError
from mcp_functions.seal.envelope import MAX_CHARS
from mcp_functions.seal.key_choice import EPOCH_SECONDS, last_use
from mcp_functions.seal.keyring import SKEW_SECONDS
from mcp_functions.seal.kms import KmsKey
from mcp_functions.seal.request_state import FLOW_FACTOR
from mcp_functions.settings import Settings
from mcp_functions_harness import template
from mcp_functions_harness.commands import open as opening
from mcp_functions_harness.testing import Conversation, deployed
from tests.docs.pages import ROOT, Page
from tests.support import filters
from tests.support.reasons import CLAIM_REASONS, TOKEN_REASONS

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE = Page.named("security.md")
RUNBOOKS = Page.named("runbooks.md")
SIGN_IN = Page.at(ROOT / "layers/shared/mcp_functions/oauth/sign-in.md")
TEMPLATE = template.read(ROOT / "template.yaml")["Resources"]
CLAIMS: dict[str, dict[str, list[str]]] = tomllib.loads(
    (ROOT / "tests/docs/security_claims.toml").read_text(encoding="utf-8")
)
SEAT = {"seat": {"seat": "window"}}


# ---- What it names and quotes


@cache
def every_test() -> set[str]:
    """Return the names of all tests of the repository."""
    files = (path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    return {name for text in files for name in re.findall(r"^ *(?:async )?def (test_\w+)", text, re.MULTILINE)}


def as_read(text: str) -> str:
    """Return the text of a page as a reader sees it, on one line."""
    return " ".join(re.sub(r"\[([^]]*)\]\([^)]*\)|[`*]", r"\1", text).split())


@pytest.mark.parametrize(
    ("page", "title", "least"), [(PAGE, "Threats", 20), (SIGN_IN, "Attacks", 20), (PAGE, "Single use", 8)]
)
def test_every_row_of_a_table_has_tests(page: Page, title: str, least: int) -> None:
    section = re.split(rf"^## (?:\d\. )?{title}$", page.text, flags=re.MULTILINE)[1].partition("\n## ")[0]
    rows = [as_read(line) for line in section.splitlines() if line[:1] == "|"][2:]
    assert len(rows) >= least
    claims = CLAIMS[f"{title}: the table"]
    assert [row for row in rows if not any(words in row for words in claims)] == []


def test_every_claim_is_on_a_page_once_and_has_tests() -> None:
    text = as_read(PAGE.text + RUNBOOKS.text + SIGN_IN.text)
    claims = {words: tests for section in CLAIMS.values() for words, tests in section.items()}
    assert [words for words in claims if text.count(words) != 1] == []
    assert [test for tests in claims.values() for test in tests if test not in every_test()] == []
    assert all(claims.values())


def test_the_page_explains_only_reasons_that_the_log_uses() -> None:
    table = RUNBOOKS.text.partition("| Reason |")[2].partition("\n\n")[0]
    named = {reason for row in table.splitlines()[2:] for reason in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert len(named) > 15
    assert named <= TOKEN_REASONS | CLAIM_REASONS


def test_the_page_states_the_lifetimes_of_the_code() -> None:
    assert (EPOCH_SECONDS, SKEW_SECONDS) == (15 * 60, 60)
    assert last_use(0) == 30 * 60
    assert FLOW_FACTOR == 6
    assert MAX_CHARS == 24 * 1024
    assert "10 minutes" in PAGE.text
    assert "24 KiB as a token" in PAGE.text
    settings = Settings({"MCP_STACK": "shop"})
    assert settings.max_state_chars == MAX_CHARS
    assert f"{settings.question_seconds // 60} minutes, and its result" in PAGE.text
    assert settings.max_task_ttl == 7 * 24 * 3600
    assert "a day, at most a week" in PAGE.text
    assert "max(1 hour, 6 \u00d7 `answer_within`), at most 16 rounds" in PAGE.text
    assert "30 minutes, one lifetime and a minute" in PAGE.text


def test_the_command_open_accepts_the_options_of_the_page() -> None:
    (shell,) = re.findall(r"```sh\n(python .*?)```", RUNBOOKS.text, re.DOTALL)
    words = shlex.split(shell.replace("\\\n", " ").partition("<")[0])
    assert words[:3] == ["python", "-m", "mcp_functions_harness"]
    assert words[3] == "open"
    chosen = opening.command.make_context("open", words[4:]).params
    assert chosen["service"] == "my-stack/update_work_item"
    assert json.loads(chosen["arguments"])["workItemId"] == 4522


# ---- Alarms


def counts(metric: str, line: str) -> bool:
    """Say whether the template's filter for a metric counts a line."""
    made = [one["Properties"] for one in TEMPLATE.values() if one["Type"] == "AWS::Logs::MetricFilter"]
    (pattern,) = [one["FilterPattern"] for one in made if one["MetricTransformations"][0]["MetricName"] == metric]
    return filters.matches(pattern, json.loads(line))


def log_lines_of(error: McpError, *, http: int | None = None) -> tuple[str, str]:
    """Write the line of a refusal as Lambda's runtime does, and as Powertools does; `http`: what the client got."""
    notes = Notes()
    notes.add_error(error)
    notes.status = error.status if http is None else http
    level, message, more = lines.level_of(notes), lines.message(notes), lines.all_fields(notes)
    record = logging.LogRecord("mcp_functions", level, "lines.py", 1, message, None, None)
    vars(record).update(more)
    by_powertools = LambdaPowertoolsFormatter().format(record)
    vars(record).update({"aws_request_id": "00000000-0000-0000-0000-000000000000", "tenant_id": None})
    return str(JsonFormatter().format(record)), json.dumps({"logger": "mcp_functions", **json.loads(by_powertools)})


def error_of_kms(said: Exception | dict[str, Any]) -> McpError:
    """Say what becomes of what KMS says when a data key is wanted."""

    class Client:
        def generate_data_key(self, **_asked: object) -> dict[str, Any]:
            if isinstance(said, Exception):
                raise said
            return said

    with pytest.raises(McpError) as error:
        KmsKey("arn:aws:kms:eu-west-1:123456789012:key/a", Client).generate({})
    return error.value


DENIALS = [
    *(ClientError("AccessDeniedException", 400), ClientError("DisabledException", 400)),
    *(ClientError("KMSInvalidStateException", 400), ClientError("NotFoundException", 400)),
    *(ClientError("InvalidKeyUsageException", 400), ClientError("UnrecognizedClientException", 400)),
    *({"KeyId": "another", "Plaintext": b""}, NoCredentialsError()),
]
OUTAGES = [
    *(ClientError("ThrottlingException", 400), ClientError("KMSInternalException", 500)),
    *(ClientError("DependencyTimeoutException", 503), ClientError("KeyUnavailableException", 500)),
    *(ClientError("ExpiredTokenException", 400), ClientError("502", 502)),
    *(error() for error in HTTPClientError.__subclasses__()),
]


@pytest.mark.parametrize("http", [None, 200], ids=["today", "2025"])
@pytest.mark.parametrize("exception", DENIALS, ids=repr)
def test_a_denial_of_kms_raises_the_alarm_for_the_operator(
    exception: Exception | dict[str, Any], http: int | None
) -> None:
    error = error_of_kms(exception)
    assert all(counts("Misconfigured", line) for line in log_lines_of(error, http=http))


@pytest.mark.parametrize("http", [None, 200], ids=["today", "2025"])
@pytest.mark.parametrize("exception", OUTAGES, ids=repr)
def test_an_outage_of_kms_raises_its_alarm_and_not_that_for_the_operator(
    exception: Exception, http: int | None
) -> None:
    lines_of_it = log_lines_of(error_of_kms(exception), http=http)
    assert all(counts("Outages", line) and not counts("Misconfigured", line) for line in lines_of_it)


def test_client_errors_match_no_alarm() -> None:
    errors = [*map(InvalidRequestState, TOKEN_REASONS | CLAIM_REASONS), Busy("unwrap_budget"), Busy("used_busy")]
    written = [line for error in errors for line in log_lines_of(error)]
    assert not any(counts(metric, line) for metric in ("Misconfigured", "Outages") for line in written)


def test_no_data_key_is_logged_even_with_everything_at_debug(caplog: pytest.LogCaptureFixture) -> None:
    # botocore would: at DEBUG it writes every answer, and KMS's are data keys in plaintext.
    with deployed():
        key = KmsKey(boto3.client("kms").list_keys()["Keys"][0]["KeyArn"])
        said = {}
        for level, name in ((logging.DEBUG, None), (logging.INFO, None), (logging.DEBUG, "mcp_functions")):
            caplog.clear()
            with caplog.at_level(logging.INFO), caplog.at_level(level, name):
                plaintext, _wrapped = key.generate({"purpose": "mcp-request-state"})
            said[level, name] = base64.b64encode(plaintext).decode() in caplog.text
    assert said == {(logging.DEBUG, None): False, (logging.INFO, None): False, (logging.DEBUG, "mcp_functions"): False}


# ---- Custom cryptography


@pytest.fixture
def names() -> dict[str, Any]:
    return PAGE.run()


@pytest.fixture
def talk() -> Callable[..., Conversation]:
    """Begin a conversation with an example, where no KMS key is configured."""

    def begin(handler: Any, **options: Any) -> Conversation:  # noqa: ANN401 - of the page
        return Conversation(handler, **options).call(city="Lisbon")

    return begin


def test_a_conversation_completes_with_data_keys_of_another_kms(
    names: dict[str, Any], talk: Callable[..., Conversation]
) -> None:
    with deployed(MCP_KMS_KEYS=None):
        held = talk(names["handler"])
        assert held.state.startswith("ks1.")
        assert held.accept(**SEAT).text == "Booked: Lisbon, window."
        rotated = names["serve"](names["book_flight"], wrapping=[names["new"]])
        assert talk(names["handler"]).upgrade(rotated).accept(**SEAT).status == 200
        only_old = names["serve"](names["book_flight"], wrapping=[names["old"]])
        assert talk(names["handler"]).upgrade(only_old).accept(**SEAT).status == 400
        assert talk(names["handler"]).tamper(lambda token: token[:60] + "AAAA" + token[64:]).status == 400


def test_another_kms_refuses_the_data_key_of_another_function(
    names: dict[str, Any], talk: Callable[..., Conversation]
) -> None:
    with deployed(MCP_KMS_KEYS=None):
        here, there = talk(names["handler"]), talk(names["handler"].fresh(), function="elsewhere")
        there.rounds = here.rounds
        assert there.accept(**SEAT).status == 400


def test_a_conversation_completes_with_another_codec(names: dict[str, Any], talk: Callable[..., Conversation]) -> None:
    with deployed(MCP_KMS_KEYS=None):
        held = talk(names["sealed_by_fernet"])
        assert held.state.startswith("gAAAA")
        assert held.accept(**SEAT).text == "Booked: Lisbon, window."


@pytest.mark.parametrize(
    "change", [lambda token: token[:-1], lambda token: token[:-9] + "AAAAAAAA=", lambda _token: ""]
)
def test_another_codec_refuses_changed_states_and_other_principals(
    names: dict[str, Any], talk: Callable[..., Conversation], change: Callable[[str], str]
) -> None:
    with deployed(MCP_KMS_KEYS=None):
        held = talk(names["sealed_by_fernet"]).tamper(change)
        assert (held.status, held.error["message"]) == (400, "Invalid or expired requestState")
        assert talk(names["sealed_by_fernet"], principal="alice").as_("bob").accept(**SEAT).status == 400
