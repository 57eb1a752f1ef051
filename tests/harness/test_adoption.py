"""`mcp-functions adopt` reports side effects before a question with their lines, and writes a function's folder."""

from __future__ import annotations

import inspect
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fastmcp import FastMCP
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer

from mcp_functions.adopt import adopt
from mcp_functions_harness import checks
from mcp_functions_harness.adoption import requirements, trial
from mcp_functions_harness.adoption.check import check_sources
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
from mcp_functions_harness.adoption.sources import Sources
from mcp_functions_harness.checks.packages import with_dependencies
from mcp_functions_harness.command import run
from mcp_functions_harness.commands.adopt import NOT_LOADED

if TYPE_CHECKING:
    from collections.abc import Callable

SERVERS = Path(__file__).parents[1] / "adopt/servers"
SERVER_IMPORTS = """
import asyncio, json, random, time
from mcp import types
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import TextContent
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
    return [(lines[each.line - 1].strip(), each.name, each.reason) for each in check_sources(Sources(path)).findings]


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
        "    text = TextContent(type='text', text=str(types.Tool()))\n    return await ask(ctx, text.text)\n",
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
        f"{path}:20: pay: ledger.charge: {WRITES}",
        f"{path}: {NOT_LOADED.format('ModuleNotFoundError: No module named ' + repr('bank') + ', in server.py:7')}",
        f"{path}:7: bank is not installed here: add its package to requirements.txt if the server needs it",
        'Refused until you accept that they run again in every round: adopt(server, replay=["pay"])',
    ]
    assert run(["adopt", "--check", f"{SERVERS / 'clinic.py'}:server"]) == 0


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
    monkeypatch.setattr(trial, "SECONDS", 0.1)
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


STATE = """
from collections import defaultdict
from contextlib import asynccontextmanager
from fastmcp import Context, FastMCP
from shelf import CASE, Shelf
import shelf

class Store:
    made = []
    def __init__(self):
        self.rows = {}
    def save(self, key):
        self.rows[key] = 1
    def read(self, key):
        return self.rows.get(key)

class Book(Store):
    one = None
    @classmethod
    def get(cls):
        if cls.one is None:
            cls.one = cls()
        return cls.one
    def tool(self, key):
        self.rows.pop(key)

server = FastMCP("s")
store = Store()
lists = defaultdict(list)

def make(server):
    carts = {}
    count = 0
    @server.tool
    def add(key: str, ctx: Context):
        nonlocal count
        LINE
    return add

def remember(target, key):
    target.append(key)

def current():
    return store

server.tool(Book().tool)
make(server)
"""
SHELF = """
COUNT = 0

class Shelf:
    def __init__(self):
        self.books = []

    def put(self, book):
        self.books.append(book)

CASE = Shelf()

def put(book):
    CASE.books.append(book)
"""
OF_THE_METHOD = ("self.rows.pop", "server.py")  # what Book.tool changes, which is a tool too


def find_changes(tmp_path: Path, line: str) -> set[tuple[str, str]]:
    """Check a tool with this line; return the names of what it changes, with their files."""
    (tmp_path / "shelf.py").write_text(SHELF, encoding="utf-8")
    (tmp_path / "server.py").write_text(STATE.replace("LINE", line), encoding="utf-8")
    findings = check_sources(Sources(tmp_path / "server.py")).findings
    return {(each.name, each.file) for each in findings if each.reason == MODULE_STATE}


@pytest.mark.parametrize(
    ("line", "changed", "file"),
    [
        ("store.save(key)", "self.rows", "server.py"),
        ("current().save(key)", "self.rows", "server.py"),
        ("Book.get().save(key)", "self.rows", "server.py"),
        ("store.made.append(key)", "store.made.append", "server.py"),
        ("Store.made.append(key)", "Store.made.append", "server.py"),
        ("carts[key] = 1", "carts", "server.py"),
        ("cart = carts.get(key); cart.append(key)", "cart.append", "server.py"),
        ("cart = carts[key] = []; cart.append(key)", "cart.append", "server.py"),
        ("count += 1", "count", "server.py"),
        ("remember(lists[key], key)", "target.append", "server.py"),
        ("for each in lists.values(): each.clear()", "each.clear", "server.py"),
        ("ctx.request_context.lifespan_context.hits += 1", "ctx.request_context.lifespan_context.hits", "server.py"),
        ("app = ctx.lifespan_context; app.cache[key] = 1", "app.cache", "server.py"),
        ("CASE.put(key)", "self.books.append", "shelf.py"),
        ("shelf.put(key)", "CASE.books.append", "shelf.py"),
        ("shelf.COUNT += 1", "shelf.COUNT", "server.py"),
        ("asyncio.to_thread(store.save, key)", "self.rows", "server.py"),
    ],
)
def test_a_change_of_what_outlives_a_call_is_found_in_objects_closures_and_other_files(
    tmp_path: Path, line: str, changed: str, file: str
) -> None:
    found = find_changes(tmp_path, line)
    assert (changed, file) in found
    assert found <= {(changed, file), ("cls.one", "server.py"), ("carts", "server.py"), OF_THE_METHOD}


@pytest.mark.parametrize(
    "line",
    [
        "mine = Store(); mine.save(key)",
        "Shelf().put(key)",
        "rows = dict(lists); rows[key] = 1",
        "rows = []; remember(rows, key)",
        "store.read(key); return len(carts) + count",
        "text = str(store.read(key)); names = [text]; names.append(key)",
    ],
)
def test_what_a_call_makes_itself_may_change(tmp_path: Path, line: str) -> None:
    assert find_changes(tmp_path, line) == {OF_THE_METHOD}


LOADED = """
import importlib, sqlite3
from pathlib import Path
from mcp.server.mcpserver import MCPServer

server = MCPServer("s")
db = sqlite3.connect(":memory:", check_same_thread=False)
for path in sorted((Path(__file__).parent / "plugins").glob("*.py")):
    plugin = importlib.import_module(f"plugins.{path.stem}")
    for tool in (plugin.write,):
        server.add_tool(tool)

@server.tool()
def count() -> int:
    return db.execute("select 1").fetchone()[0]
"""


def test_tools_that_only_the_loaded_server_knows_are_checked_in_every_copied_file_and_unseen_objects_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plugins").mkdir()
    plugin = "NOTES = []\n\ndef write(text: str) -> int:\n    NOTES.append(text)\n    return len(NOTES)\n"
    (tmp_path / "plugins/notes.py").write_text(plugin, encoding="utf-8")
    (tmp_path / "server.py").write_text(LOADED, encoding="utf-8")
    assert run(["adopt", "--check", f"{tmp_path / 'server.py'}:server"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"{tmp_path / 'plugins/notes.py'}:4: write: NOTES.append: {MODULE_STATE}",
        "Not seen: what these keep for the next call: db.execute (sqlite3.connect)",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "from mcp.server.fastmcp import FastMCP\nserver = FastMCP('old')\n",
            ":1 is of mcp 1.x: its FastMCP is MCPServ",
        ),
        (
            "from mcp.server import Server\nserver = Server('old')\n\n@server.list_tools()\nasync def tools(): ...\n",
            ":4 is of mcp 1.x: in 2.x, a low-level server takes its functions when it is made: Server(name, on_list_t",
        ),
        ("from mcp.server.mcpserver import Gone\n", "this one seems to be of an earlier release (ImportError"),
    ],
)
def test_one_sentence_says_that_a_server_is_of_an_earlier_library(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    (tmp_path / "server.py").write_text(text, encoding="utf-8")
    assert run(["adopt", "--check", f"{tmp_path / 'server.py'}:server"]) == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert "adopt needs a server of mcp 2.x or FastMCP 4" in line
    assert said in line


def test_an_installed_library_that_is_too_old_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "server.py").write_text("from fastmcp import FastMCP\nserver = FastMCP('s')\n", encoding="utf-8")
    monkeypatch.setattr(metadata, "version", lambda _name: "2.14.1")
    assert run(["adopt", "--check", f"{tmp_path / 'server.py'}:server"]) == 1
    assert "FastMCP 4, and fastmcp 2.14.1 is installed here: pip install 'fastmcp>=4'" in capsys.readouterr().out


def test_packages_that_do_not_fit_into_a_lambda_are_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requirements, "MAX_BYTES", 1_000_000)
    assert run(["adopt", "--check", f"{SERVERS / 'library.py'}:server"]) == 1
    assert "MB unzipped, and Lambda takes 1 MB" in capsys.readouterr().out


def test_the_requirements_name_what_was_installed_and_an_extra_that_is_here_for_no_other_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def install(name: str, *lines: str, modules: str = "", origin: str = "{}") -> None:
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        header = "\n".join(["Metadata-Version: 2.1", f"Name: {name}", "Version: 1.0", *lines])
        (info / "METADATA").write_text(header, encoding="utf-8")
        (info / "RECORD").write_text("".join(f"{each}/__init__.py,,\n" for each in modules.split()), encoding="utf-8")
        (info / "direct_url.json").write_text(origin, encoding="utf-8")

    install("whole", "Requires-Dist: slim[client]==1.0")
    install("slim", "Provides-Extra: client", "Requires-Dist: needed; extra == 'client'", modules="slimmodule")
    install("needed", modules="needed")
    install("driver", "Provides-Extra: binary", "Requires-Dist: inside; extra == 'binary'", modules="driver")
    install("inside", modules="inside")
    install("forked", modules="forked", origin='{"url": "https://x/y", "vcs_info": {"vcs": "git", "commit_id": "a1"}}')
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    for cached in (requirements.needs_of_all, requirements.by_module, requirements.packages_with_modules):
        monkeypatch.setattr(requirements, cached.__name__, cached.__wrapped__)
    lines = requirements.lines_for({"slimmodule", "driver", "forked"})
    assert lines == ["driver[binary]==1.0", "forked @ git+https://x/y@a1", "whole==1.0"]
    assert with_dependencies(["whole==1.0"]) == {"whole", "slim", "needed"}
    assert with_dependencies(["slim==1.0"]) == {"slim"}


def test_a_server_is_loaded_with_the_packages_of_its_requirements_and_no_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "server.py"
    path.write_text(
        "import importlib.util\nfrom mcp.server.mcpserver import MCPServer\n\nserver = MCPServer('s')\n"
        "if not importlib.util.find_spec('moto'):\n    @server.tool()\n    def ping() -> str:\n        return 'pong'\n",
        encoding="utf-8",
    )
    assert run(["adopt", "--check", f"{path}:server"]) == 0, capsys.readouterr().out


def files_of(project: Path) -> dict[str, bytes]:
    """Return the files of a project, without what Python compiled."""
    files = (path for path in project.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(project)): path.read_bytes() for path in files}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("raise RuntimeError('no')", "RuntimeError: no, in server.py:1"),
        ("from fastmcp import FastMCP\ndef server():\n    return FastMCP('s')", "server is a function: adopt a file"),
        ("from fastmcp import FastMCP\nserver = FastMCP('s')", "it has no tool, prompt or resource once its file is"),
        ("import os\nos.environ['BRING_KEY']", "it reads BRING_KEY while it loads: set it for this command"),
    ],
)
def test_a_server_that_cannot_be_adopted_is_not_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    project, path = tmp_path / "project", tmp_path / "server.py"
    assert run(["init", str(project)]) == 0
    path.write_text(text, encoding="utf-8")
    before = files_of(project)
    assert run(["adopt", f"{path}:server", "--into", str(project / "functions"), "--name", "mine"]) == 2
    assert said in capsys.readouterr().out
    assert files_of(project) == before


def test_what_was_written_is_taken_back_if_the_project_does_not_load_then(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = tmp_path / "project"
    assert run(["init", str(project)]) == 0
    (project / "functions/broken").mkdir()
    (project / "functions/broken/app.py").write_text("raise RuntimeError('half written')\n", encoding="utf-8")
    before = files_of(project)
    assert run(["adopt", f"{SERVERS / 'library.py'}:server", "--into", str(project / "functions")]) == 2
    assert "half written" in capsys.readouterr().err
    assert files_of(project) == before
    assert not (project / "functions/library").exists()


def test_a_name_that_a_function_cannot_have_leads_to_the_option_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project, path = tmp_path / "project", tmp_path / "My-Server.py"
    assert run(["init", str(project)]) == 0
    path.write_text((SERVERS / "library.py").read_text(encoding="utf-8"), encoding="utf-8")
    assert run(["adopt", f"{path}:server", "--into", str(project / "functions")]) == 2
    assert "choose a name with --name" in capsys.readouterr().err


WEATHER = {
    "__init__.py": "",
    ".env": "SECRET=1",
    "cities.json": '["Bern"]',
    "tests/test_it.py": "import pytest",
    "cities.py": """
import json
from pathlib import Path

CITIES = json.loads(Path(__file__).with_name("cities.json").read_text())
""",
    "server.py": """
from mcp.server.mcpserver import MCPServer
from .cities import CITIES

mcp = MCPServer("weather")

@mcp.tool()
def cities() -> list[str]:
    return CITIES
""",
}


def test_a_server_in_a_package_is_copied_with_its_package_and_data_and_without_secrets(tmp_path: Path) -> None:
    project, package = tmp_path / "project", tmp_path / "src/weather"
    assert run(["init", str(project)]) == 0
    for name, text in WEATHER.items():
        (package / name).parent.mkdir(exist_ok=True, parents=True)
        (package / name).write_text(text, encoding="utf-8")
    assert run(["adopt", f"{package / 'server.py'}:mcp", "--into", str(project / "functions")]) == 0
    folder = project / "functions/weather"
    copied = {str(path.relative_to(folder)) for path in folder.rglob("*.*") if "__pycache__" not in path.parts}
    inside = {f"weather/{name}" for name in ("__init__.py", "cities.json", "cities.py", "server.py")}
    assert copied == {"app.py", "requirements.txt", *inside}
    assert "from weather.server import mcp as server" in (folder / "app.py").read_text(encoding="utf-8")


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
