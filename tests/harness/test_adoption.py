"""`mcp-functions adopt` reports side effects before a question with their lines, and writes a function's folder."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fastmcp import FastMCP
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer

from mcp_functions.adopt import adopt
from mcp_functions_harness import checks
from mcp_functions_harness.adoption import options
from mcp_functions_harness.adoption.check import check_source
from mcp_functions_harness.adoption.known_calls import (
    BACKGROUND,
    CATCHES,
    CHANGES,
    CLAIMS,
    CONCURRENT,
    HTTP_APP,
    HTTP_OPTION,
    MODULE_STATE,
    NO_HTTP_REQUEST,
    NOT_DELIVERED,
    NOT_RESTRICTING,
    RESTRICTING,
    SESSION,
    STREAM,
    UNKNOWN,
    WRITES,
)
from mcp_functions_harness.command import run

if TYPE_CHECKING:
    from collections.abc import Callable

SERVERS = Path(__file__).parents[1] / "adopt/servers"
SERVER_IMPORTS = """
import asyncio, json, random, time
from mcp.server.mcpserver import Context, MCPServer
from mcp_functions.adopt import step
from bank import ledger
server = MCPServer("s")
counts = {}
total = 0

def helper(amount):
    return ledger.reserve(amount)

async def ask(ctx, message):
    return await ctx.elicit(message, bool)
"""
ASKING_TOOL = "\n@server.tool()\nasync def pay(ctx: Context, amount: int) -> str:\n"


def find_side_effects(
    tmp_path: Path, body: str, head: str = SERVER_IMPORTS + ASKING_TOOL
) -> list[tuple[str, str, str]]:
    """Check a tool with this body; return the text of each line that was found, with its name and reason."""
    path = tmp_path / "server.py"
    path.write_text(head + body, encoding="utf-8")
    lines = path.read_text(encoding="utf-8").splitlines()
    return [(lines[each.line - 1].strip(), each.name, each.reason) for each in check_source(path).findings]


@pytest.mark.parametrize(
    ("line", "name", "reason"),
    [
        ("ledger.charge(amount)", "ledger.charge", WRITES),
        ("open('log', 'w')", "open", WRITES),
        ("ledger.quote(amount)", "ledger.quote", UNKNOWN),
        ("price = random.randint(1, 9)", "random.randint", CHANGES),
        ("now = datetime.now()", "datetime.now", CHANGES),
        ("counts['pay'] = 1", "counts", MODULE_STATE),
        ("await ctx.set_state('n', 1)", "ctx.set_state", SESSION),
        ("asyncio.create_task(ledger.sync())", "asyncio.create_task", BACKGROUND),
        ("await ctx.notify_tools_changed()", "ctx.notify_tools_changed", NOT_DELIVERED),
        ("await ctx.close_sse_stream()", "ctx.close_sse_stream", STREAM),
        ("key = get_http_headers()['x-api-key']", "get_http_headers", NO_HTTP_REQUEST),
        ("await asyncio.gather(ask(ctx, 'a'), ask(ctx, 'b'))", "asyncio.gather", CONCURRENT),
    ],
)
def test_a_side_effect_before_a_question_is_reported_with_its_line(
    tmp_path: Path, line: str, name: str, reason: str
) -> None:
    assert (line, name, reason) in find_side_effects(
        tmp_path, f"    {line}\n    return await ctx.elicit('Sure?', bool)\n"
    )


def test_a_side_effect_in_a_helper_function_is_found_at_its_call(tmp_path: Path) -> None:
    body = "    helper(amount)\n    return await ask(ctx, 'Sure?')\n"
    assert find_side_effects(tmp_path, body) == [("return ledger.reserve(amount)", "ledger.reserve", UNKNOWN)]


def test_a_change_of_a_module_variable_is_found_without_a_question(tmp_path: Path) -> None:
    body = "    global total\n    total += amount\n    return 'paid'\n"
    assert find_side_effects(tmp_path, body) == [("total += amount", "total", MODULE_STATE)]


def test_a_side_effect_after_a_question_in_a_loop_is_found(tmp_path: Path) -> None:
    body = "    for n in range(2):\n        await ask(ctx, str(n))\n        ledger.post(n)\n    return 'done'\n"
    assert find_side_effects(tmp_path, body) == [("ledger.post(n)", "ledger.post", WRITES)]


@pytest.mark.parametrize(
    "body",
    [
        "    step('charge', ledger.charge, amount)\n    return await ask(ctx, 'Sure?')\n",
        "    text = json.dumps({'n': len(str(amount))}).strip()\n    return await ask(ctx, text)\n",
        "    sure = await ask(ctx, 'Sure?')\n    ledger.charge(amount)\n    return 'paid'\n",
        "    await ctx.report_progress(1)\n    await ctx.info('asking')\n    return await ask(ctx, 'Sure?')\n",
        "    ledger.charge(amount)\n    return 'it asks nobody'\n",
    ],
)
def test_steps_reads_and_code_after_the_last_question_are_no_findings(tmp_path: Path, body: str) -> None:
    assert find_side_effects(tmp_path, body) == []


def test_functions_of_a_low_level_server_and_options_of_its_http_application_are_found(tmp_path: Path) -> None:
    source = """
async def call(ctx, params):
    ledger.charge(1)
    return await ctx.session.elicit_form("Sure?", {})

server = Server("s", on_call_tool=call)

app = server.streamable_http_app(host="0.0.0.0", auth=settings, token_verifier=verifier, **more)
subprocess.run(command, check=True)
server.run(transport="http", middleware=[Gate])
"""
    assert [(name, reason) for _line, name, reason in find_side_effects(tmp_path, source, "")] == [
        ("ledger.charge", WRITES),
        ("server.streamable_http_app(**=…)", HTTP_OPTION),
        ("server.streamable_http_app(auth=…)", HTTP_OPTION),
        ("server.streamable_http_app(token_verifier=…)", HTTP_OPTION),
        ("server.run(middleware=…)", HTTP_OPTION),
    ]


@pytest.mark.parametrize(
    ("catching", "found"),
    [
        ("except:\n        agreed = True", "except"),
        ("except BaseException:\n        agreed = True", "except"),
        ("except (OSError, BaseException) as error:\n        agreed = True", "except"),
        ("finally:\n        return 'paid'", "return"),
        ("except BaseException:\n        raise", None),
        ("except Exception:\n        agreed = True", None),
        ("finally:\n        agreed = True", None),
    ],
)
def test_code_that_catches_the_end_of_a_round_is_found(tmp_path: Path, catching: str, found: str | None) -> None:
    body = f"    try:\n        agreed = await ctx.elicit('Sure?', bool)\n    {catching}\n    return 'paid'\n"
    findings = [(name, reason) for _line, name, reason in find_side_effects(tmp_path, body)]
    assert findings == ([(found, CATCHES)] if found else [])


def test_an_http_application_and_what_reads_a_request_or_a_token_are_found_in_the_whole_file(tmp_path: Path) -> None:
    source = """
class Gate(Middleware):
    async def on_call_tool(self, context, call_next):
        if dependencies.get_http_headers().get("x-api-key", KEY) != KEY:
            raise PermissionError

async def guard(ctx, call_next):
    if ctx.request and ctx.request_context.request.headers.get("x-api-key") != KEY:
        raise PermissionError

@server.tool
def pay():
    return get_access_token().claims["role"]

def create_app():
    app = server.http_app(path="/mcp")
    app.add_middleware(ApiKey)
    return app

manager = StreamableHTTPSessionManager(app=server)
"""
    assert [(name, reason) for _line, name, reason in find_side_effects(tmp_path, source, "")] == [
        ("dependencies.get_http_headers", NO_HTTP_REQUEST),
        ("ctx.request", NO_HTTP_REQUEST),
        ("ctx.request_context.request", NO_HTTP_REQUEST),
        ("….claims", CLAIMS),
        ("server.http_app", HTTP_APP),
        ("StreamableHTTPSessionManager", HTTP_APP),
    ]


def test_the_command_adopt_lists_findings_and_the_tools_that_ask(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "server.py"
    path.write_text(
        SERVER_IMPORTS + ASKING_TOOL + "    ledger.charge(amount)\n    return await ask(ctx, 'Sure?')\n",
        encoding="utf-8",
    )
    assert run(["adopt", "--check", f"{path}:server"]) == 1
    output_lines = capsys.readouterr().out.splitlines()
    assert output_lines == [
        f"{path}:18: pay: ledger.charge: {WRITES}",
        f"{path}: it cannot be loaded (ModuleNotFoundError: No module named 'bank'): its options are unknown",
        'Refused until you accept that they run again in every round: adopt(server, replay=["pay"])',
    ]
    assert run(["adopt", "--check", f"{SERVERS / 'bank.py'}:server"]) == 0


def test_the_command_does_not_advise_replay_for_a_tool_that_returns_its_questions_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "gate.py"
    path.write_text(
        """
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import InputRequiredResult

server = MCPServer("gate")


@server.tool()
async def delete(ctx: Context) -> str:
    if ctx.protocol_version >= "2026-07-28":
        return InputRequiredResult()
    return (await ctx.elicit("Sure?", bool)).action
""",
        encoding="utf-8",
    )
    run(["adopt", "--check", f"{path}:server"])
    output = capsys.readouterr().out
    assert "Refused until" not in output
    assert "They return InputRequiredResult too, so they are not refused at 2026-07-28: delete." in output


RESTRICTED_SERVER = """
from fastmcp import FastMCP
from fastmcp.server.auth import StaticTokenVerifier
from mcp.server.request_state import RequestStateSecurity

print("a line of the server's own")
server = FastMCP("restricted", auth=StaticTokenVerifier({}, required_scopes=["write"])MORE)


@server.custom_route("/health", methods=["GET"])
async def health(request):
    return None


@server.tool
def erase() -> str:
    return "erased"
"""
OWN_PRINCIPAL = ', request_state_security=RequestStateSecurity(keys=["0" * 32], bind_principal=lambda ctx: "me")'


def test_the_command_and_adopt_say_the_same_about_the_options_of_a_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    project, path = tmp_path / "project", tmp_path / "restricted.py"
    assert run(["init", str(project)]) == 0
    path.write_text(RESTRICTED_SERVER.replace("MORE", ""), encoding="utf-8")
    names: dict[str, Any] = {}
    exec(path.read_text(encoding="utf-8"), names)  # noqa: S102 - the server above
    capsys.readouterr()
    with caplog.at_level("WARNING", "mcp_functions"):
        adopt(names["server"])
    said = [f"{path}: {message}" for message in caplog.messages]
    assert [line.partition(":")[2].split(":")[0] for line in said] == [" FastMCP(auth=…)", " custom_route('/health')"]
    assert run(["adopt", "--check", f"{path}:server"]) == 1
    assert capsys.readouterr().out.splitlines() == said
    assert run(["adopt", f"{path}:server", "--into", str(project / "functions")]) == 0
    assert capsys.readouterr().out.splitlines()[: len(said)] == said


def test_the_command_and_adopt_refuse_the_same_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project, path = tmp_path / "project", tmp_path / "restricted.py"
    assert run(["init", str(project)]) == 0
    path.write_text(RESTRICTED_SERVER.replace("MORE", OWN_PRINCIPAL), encoding="utf-8")
    names: dict[str, Any] = {}
    exec(path.read_text(encoding="utf-8"), names)  # noqa: S102 - the server above
    with pytest.raises(ValueError, match="bind_principal") as refused:
        adopt(names["server"])
    capsys.readouterr()
    for words in (["--check", f"{path}:server"], [f"{path}:server", "--into", str(project / "functions")]):
        assert run(["adopt", *words]) > 0
        assert capsys.readouterr().out.splitlines()[0] == f"{path}: {refused.value}"
    assert not (project / "functions/restricted").exists()


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("import os\nos._exit(4)", "its process ended with exit code 4"),
        ("other = 1", "AttributeError: module 'broken' has no attribute 'server'"),
        ("server = 1", "TypeError: adopt takes one server"),
    ],
)
def test_a_server_that_does_not_load_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, failure: str
) -> None:
    (tmp_path / "broken.py").write_text(text, encoding="utf-8")
    assert run(["adopt", "--check", f"{tmp_path / 'broken.py'}:server"]) == 1
    assert f"it cannot be loaded ({failure}" in capsys.readouterr().out


def test_a_server_that_runs_when_it_is_loaded_is_given_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(options, "SECONDS", 0.1)
    (tmp_path / "running.py").write_text("import time\ntime.sleep(60)", encoding="utf-8")
    assert run(["adopt", "--check", f"{tmp_path / 'running.py'}:server"]) == 1
    assert "call run() only under `if __name__ == '__main__'`" in capsys.readouterr().out


@pytest.mark.parametrize(
    "make",
    [FastMCP.http_app, MCPServer.streamable_http_app, MCPServer.sse_app, Server.streamable_http_app],
    ids=lambda make: make.__qualname__,
)
def test_the_check_knows_each_option_of_an_http_application(make: Callable[..., Any]) -> None:
    assert set(inspect.signature(make).parameters) - {"self"} <= RESTRICTING | NOT_RESTRICTING


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["server.py"], "server.py is not FILE.py:VARIABLE"),
        (["nowhere.py:server"], "nowhere.py cannot be read as Python"),
        ([f"{SERVERS / 'bank.py'}:server", "--into", "elsewhere"], "--into names a project's functions/ folder"),
    ],
)
def test_a_server_that_cannot_be_adopted_is_reported_in_one_line(
    words: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["adopt", *words]) == 2
    assert problem in capsys.readouterr().err


def test_the_error_for_a_server_in_a_package_explains_how_to_move_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "server.py").write_text("from .tools import server\n", encoding="utf-8")
    assert run(["adopt", f"{tmp_path / 'server.py'}:server", "--into", "functions"]) == 2
    assert "server.py:1 imports from its own package" in capsys.readouterr().err


def test_adopt_into_writes_a_function_with_tests_that_compare_its_lists_with_the_original(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project, source = tmp_path / "project", tmp_path / "shop"
    assert run(["init", str(project)]) == 0
    source.mkdir()
    (source / "prices.py").write_text("PRICE = 7\n", encoding="utf-8")
    (source / "server.py").write_text(
        "from mcp.server.mcpserver import MCPServer\nfrom prices import PRICE\n\nmcp = MCPServer('shop')\n\n"
        "@mcp.tool()\ndef price(item: str) -> int:\n    '''Say a price.'''\n    return PRICE\n",
        encoding="utf-8",
    )
    assert run(["adopt", f"{source / 'server.py'}:mcp", "--into", str(project / "functions")]) == 0
    assert "Not carried over" in capsys.readouterr().out
    written = sorted(path.name for path in (project / "functions/shop").glob("*.*"))
    assert written == ["app.py", "prices.py", "requirements.txt", "server.py"]
    assert (project / "functions/shop/requirements.txt").read_text(encoding="utf-8") == "mcp==2.3.0\n"
    assert list(checks.complaints(checks.read(project))) == []
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/functions/test_shop.py"]
    ran = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)  # noqa: S603 - of this test
    assert ran.returncode == 0, ran.stdout
