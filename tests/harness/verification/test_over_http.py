"""`mcp-functions verify URL` reports each wrong response of the harness in one line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from mcp_functions_harness import Harness, command
from mcp_functions_harness.loopback import HttpRequest, HttpResponse, json_response

from .conftest import FOLDERS, SIGNER, damage_state, demand_signature

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .conftest import Verified

    Verify = Callable[..., Verified]
    Gate = Callable[..., str]

AWS_ONLY = ("skipped", "needs AWS: name the stack instead of its URL")
COUNT = ("--tool", "count", "--arguments", '{"most": 3}')
GREET = ("--tool", "greet", "--answers", '{"who": {"who": "Ada"}, "how": {"how": "Servus"}}')


def test_verify_accepts_a_server_without_sign_in(harness: Harness, verify: Verify) -> None:
    verified = verify(harness.url)
    assert verified.code == 0
    assert verified.lines == {
        "endpoint": ("ok", f"{harness.url} answers; mode none, everybody may call"),
        "closed routes": (
            "skipped",
            "mode none, everybody may call; --auth iam, jwt or oauth says that it should not be so",
        ),
        "open routes": ("skipped", "mode none has no closed ones, and no origin is allowed; --origin names one"),
        "lists": ("ok", "4 handlers, as in the catalog"),
        "functions": ("ok", f"{FOLDERS} functions answer at /mcp/<folder>, and list what the catalog has of them"),
        "conversation": ("ok", "letter was complete after 2 rounds"),
        "task": ("skipped", "no read-only tool is a task; name one: --tool NAME --arguments JSON"),
        "stack": AWS_ONLY,
        "logs": AWS_ONLY,
        "alarms": AWS_ONLY,
    }


def test_every_request_of_a_run_has_an_id_of_its_own(harness: Harness, verify: Verify, gate: Gate) -> None:
    ids: list[int] = []

    def note_id(request: HttpRequest) -> HttpRequest:
        if request.body:
            ids.append(json.loads(request.body)["id"])
        return request

    assert verify(gate(harness.url, note_id)).code == 0
    assert ids == list(range(1, len(ids) + 1))


def test_a_tool_is_called_only_by_its_name(harness: Harness, verify: Verify) -> None:
    before = len(harness.invocations)
    verify(harness.url)
    called = [invocation.folder for invocation in harness.invocations[before:]]
    lists = 1  # of each function
    assert [called.count(folder) for folder in ("greet", "delete")] == [lists, lists]
    assert verify(harness.url, *GREET).lines["conversation"] == ("ok", "greet was complete after 3 rounds")


def test_a_tool_that_only_reads_is_called_without_its_name(
    harness: Harness, verify: Verify, gate: Gate, directory: Path
) -> None:
    listed = json.loads((directory / "mcp/catalog.json").read_text(encoding="utf-8"))["tools"]
    hinted = [tool | {"annotations": {"readOnlyHint": tool["name"] == "count"}} for tool in listed]

    def decide(request: HttpRequest) -> HttpRequest | HttpResponse:
        if b"tools/list" not in (request.body or b""):
            return request
        result = {"resultType": "complete", "tools": hinted}
        return json_response(200, {"jsonrpc": "2.0", "id": 1, "result": result})

    outcome, text = verify(gate(harness.url, decide)).lines["task"]
    assert (outcome, text.rpartition(" after ")[0]) == ("ok", "count was complete")


@pytest.mark.parametrize(
    ("words", "check", "why"),
    [
        (("--tool", "greed"), "conversation", "there is no tool greed"),
        (("--tool", "delete"), "conversation", "delete reported an error in round 1"),
        (
            ("--tool", "delete", "--arguments", '{"name": "x"}'),
            "conversation",
            "delete reported an error in round",
        ),
        (
            ("--tool", "greet", "--answers", '{"who": {"who": "nobody"}}'),
            "conversation",
            "greet reported an error in round 2",
        ),
        (("--tool", "greet", "--answers", '{"who": {"who": 7}}'), "conversation", "greet reported an error in round"),
        (("--tool", "greet", "--answers", '{"who": "cancel"}'), "conversation", "greet reported an error in round 2"),
        ((*COUNT, "--seconds", "0"), "task", "count did not end within 0 s"),
        (("--auth", "jwt"), "closed routes", "is in mode none, not jwt: everybody may call"),
        (("--origin", "https://pages.example"), "open routes", "a preflight of https://pages.example is answered"),
    ],
)
def test_verify_reports_each_failed_check_in_one_line(
    words: tuple[str, ...], check: str, why: str, harness: Harness, verify: Verify
) -> None:
    verified = verify(harness.url, *words)
    assert verified.code == 1
    assert list(verified.failed()) == [check]
    assert why in verified.failed()[check]


@pytest.mark.parametrize(
    ("target", "words", "why"),
    [
        ("http://localhost:1/mcp", ("--answers", "[]"), "--answers must be a JSON object"),
        ("http://localhost:1/mcp", ("--arguments", "{}"), "--arguments belongs to a --tool"),
        ("http://localhost:1/mcp", ("--profile", "nobody-has-this"), "nobody-has-this"),
        ("http://localhost:1/mcp", ("--seconds", "-1"), "Invalid value for '--seconds'"),
    ],
)
def test_verify_reports_an_invalid_command_line_in_one_line_with_exit_code_2(
    target: str, words: tuple[str, ...], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.run(["verify", target, *words]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert why in err


def test_verify_reports_an_unreachable_server_as_one_failed_check(verify: Verify) -> None:
    verified = verify("http://127.0.0.1:1/mcp")
    assert (verified.code, list(verified.lines)) == (1, ["endpoint"])
    assert verified.failed()["endpoint"].endswith("no answer (ConnectionRefusedError)")


def test_verify_reports_a_url_without_an_endpoint_as_one_failed_check(harness: Harness, verify: Verify) -> None:
    verified = verify(harness.url.removesuffix("/mcp"))
    assert "is no MCP endpoint of 2026-07-28: HTTP 404" in verified.failed()["endpoint"]


def test_verify_skips_the_checks_of_a_missing_catalog(harness: Harness, verify: Verify, tmp_path: Path) -> None:
    lines = verify(harness.url, "--functions", str(tmp_path)).lines
    assert [lines[name][0] for name in ("lists", "functions", "conversation")] == ["skipped", "skipped", "ok"]


# ---- Tokens and signatures


def test_verify_reaches_closed_routes_with_a_signature(
    harness: Harness, verify: Verify, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = gate(harness.url, demand_signature)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", SIGNER.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SIGNER.secret_key)
    lines = verify(url, "--region", "eu-central-1", "--auth", "iam", *COUNT).lines
    assert lines["endpoint"] == ("ok", f"{url} answers; mode iam, callers sign their requests")
    assert lines["closed routes"] == ("ok", f"/mcp and {FOLDERS} functions refuse a caller without credentials")
    assert lines["open routes"] == ("ok", "OPTIONS /mcp")
    assert [lines[name][0] for name in ("lists", "functions", "conversation", "task")] == ["ok"] * 4

    refused = verify(url, "--region", "us-east-1")
    assert refused.failed() == {"endpoint": "your credentials are refused: HTTP 403, no JSON-RPC response"}
    assert refused.lines["lists"] == ("skipped", "the endpoint refuses your credentials")


def test_verify_without_aws_credentials_runs_only_the_checks_that_need_none(
    harness: Harness, verify: Verify, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = gate(harness.url, demand_signature)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    verified = verify(url)
    assert verified.code == 0
    assert verified.lines["closed routes"][0] == "ok"
    assert verified.lines["task"] == ("skipped", "callers sign their requests, and there are no AWS credentials here")


# ---- Broken deployments


def test_verify_reports_an_open_route_that_must_be_closed_and_the_reverse(
    harness: Harness, verify: Verify, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    def decide(request: HttpRequest) -> HttpRequest | HttpResponse:
        if request.target == "/mcp/greet":
            return request
        if request.method == "OPTIONS":
            return json_response(403, {"message": "Forbidden"})
        return demand_signature(request)

    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    verified = verify(gate(harness.url, decide))
    assert verified.code == 1
    assert verified.failed() == {
        "closed routes": "/mcp/greet answers HTTP 200 to a caller without credentials",
        "open routes": "OPTIONS /mcp answers HTTP 403, so no page can send a preflight",
    }


def test_verify_reports_a_refused_request_state(harness: Harness, verify: Verify, gate: Gate) -> None:
    verified = verify(gate(harness.url, damage_state), *GREET)
    assert list(verified.failed()) == ["conversation"]
    why = "greet: the state of round 1 was not accepted: HTTP 400, error -32602"
    assert verified.failed()["conversation"].startswith(why)


def test_verify_reports_a_list_that_differs_from_the_catalog(
    harness: Harness, verify: Verify, directory: Path, tmp_path: Path
) -> None:
    changed = json.loads((directory / "mcp/catalog.json").read_text(encoding="utf-8"))
    changed["tools"] = [tool for tool in changed["tools"] if tool["name"] != "count"]
    changed["prompts"][0]["description"] = "Draft two letters."
    (tmp_path / "mcp").mkdir()
    (tmp_path / "mcp/catalog.json").write_text(json.dumps(changed), encoding="utf-8")
    failed = verify(harness.url, "--functions", str(tmp_path)).failed()
    assert failed["lists"].startswith("the endpoint differs from the catalog (+ tools count, ~ prompts letter):")
    assert failed["functions"] == "letter (~ prompts letter)"


def test_verify_reports_a_function_that_does_not_start(harness: Harness, verify: Verify, gate: Gate) -> None:
    def decide(request: HttpRequest) -> HttpRequest | HttpResponse:
        return json_response(500, {"message": "no"}) if request.target == "/mcp/count" else request

    verified = verify(gate(harness.url, decide))
    assert verified.failed() == {"functions": "count (tools/list: HTTP 500, no JSON-RPC response)"}


def test_verify_reports_a_task_whose_poll_gets_no_answer(harness: Harness, verify: Verify, gate: Gate) -> None:
    def decide(request: HttpRequest) -> HttpRequest:
        if b"tasks/get" in (request.body or b""):
            raise ConnectionResetError
        return request

    verified = verify(gate(harness.url, decide), *COUNT)
    assert verified.failed() == {"task": "the task of count did not complete: no answer (RemoteDisconnected)"}
    assert verified.lines["stack"] == AWS_ONLY


def test_verify_reports_a_completed_task_without_a_result(harness: Harness, verify: Verify, gate: Gate) -> None:
    completed = {"jsonrpc": "2.0", "id": 1, "result": {"taskId": "count.1", "status": "completed"}}

    def decide(request: HttpRequest) -> HttpRequest | HttpResponse:
        return json_response(200, completed) if b"tasks/get" in (request.body or b"") else request

    verified = verify(gate(harness.url, decide), *COUNT)
    why = "the task is completed, and has no result"
    assert verified.failed() == {"task": f"the task of count did not complete: {why}"}


def test_verify_prints_text_of_a_server_as_one_printable_line(harness: Harness, verify: Verify, gate: Gate) -> None:
    error = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "\x1b[2J\nok       stack: all is well"}}

    def decide(request: HttpRequest) -> HttpRequest | HttpResponse:
        return json_response(500, error) if b"tools/list" in (request.body or b"") else request

    verified = verify(gate(harness.url, decide))
    assert verified.lines["stack"] == AWS_ONLY
    assert r"error -32603: \u001b[2J\nok       stack" in verified.failed()["lists"]
