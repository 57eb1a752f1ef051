"""`call`: calls a tool, a prompt or a resource, and asks the user at the terminal what the server asks."""

import contextlib
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

import click

from mcp_functions_harness import catalog
from mcp_functions_harness.calling import conversation, server, words
from mcp_functions_harness.calling.answering import Answers
from mcp_functions_harness.calling.terminal import Refusal, Terminal, result_text
from mcp_functions_harness.commands import options
from mcp_functions_harness.terminal.safe_text import safe_line
from mcp_functions_harness.verification.options import Access


def _complete(context: click.Context, _parameter: click.Parameter, prefix: str) -> list[str]:
    """List the tools and prompts of the catalog for the shell."""
    if "functions" not in context.params:
        return []
    entries = catalog.read(context.params["functions"])
    names = [entry["name"] for entry in (*entries.get("tools", ()), *entries.get("prompts", ()))]
    return [name for name in names if name.startswith(prefix)]


def _read_pairs(_context: click.Context, _parameter: click.Parameter, words: Sequence[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise click.BadParameter(f"write KEY=VALUE, not {word!r}.")
        pairs[key] = value
    return pairs


class CallOptions(Access):
    """The options about the server and the answers."""

    answers: Mapping[str, str]  # the values of --answer, by KEY or KEY.FIELD
    keys_to_decline: Sequence[str]  # keys of questions
    keys_to_cancel: Sequence[str]
    functions: Path
    runtime: bool


@click.command("call")
@click.argument("target", metavar="NAME-OR-URI", shell_complete=_complete)
@click.argument("arguments", nargs=-1, metavar="[KEY=VALUE|JSON]...")
@click.option("--url", metavar="URL", help="Of a server, e.g. http://127.0.0.1:8000/mcp. Default: the functions here.")
@click.option(
    "--answer", "answers", multiple=True, callback=_read_pairs, metavar="KEY=VALUE", help="Of a question; repeatable."
)
@click.option("--decline", "keys_to_decline", multiple=True, metavar="KEY", help="A question to decline; repeatable.")
@click.option("--cancel", "keys_to_cancel", multiple=True, metavar="KEY", help="A question to cancel; repeatable.")
@click.option("--complete", "argument", metavar="ARGUMENT", help="List the values that the server suggests for it.")
@click.option("--json", "as_json", is_flag=True, help="Write the result as JSON to stdout, and the rest to stderr.")
@click.option("--token", envvar="MCP_FUNCTIONS_TOKEN", metavar="TOKEN", help="Default: MCP_FUNCTIONS_TOKEN.")
@click.option("--region", metavar="R", help="Default: as the AWS CLI decides.")
@click.option("--profile", metavar="P", help="Default: as the AWS CLI decides.")
@options.functions
@options.runtime
def command(
    target: str,
    arguments: Sequence[str],
    url: str | None,
    argument: str | None,
    *,
    as_json: bool,
    **chosen: Unpack[CallOptions],
) -> int:
    """Call a tool or a prompt, or read a resource, and answer its questions at the terminal.

    A form with several fields is answered with --answer KEY.FIELD=VALUE, or KEY={JSON}. With --complete, NAME-OR-URI is
    a prompt or a URI template, and the arguments are what its user has typed so far. Exit codes: 0, a result; 1, the
    tool reports an error; 2, the call is wrong, or was refused.
    """
    terminal = Terminal(sys.stderr if as_json else sys.stdout)
    refusals: dict[str, Refusal] = dict.fromkeys(chosen["keys_to_decline"], "decline")
    refusals |= dict.fromkeys(chosen["keys_to_cancel"], "cancel")
    answers = Answers(terminal=terminal, options=chosen["answers"], refusals=refusals)
    with contextlib.ExitStack() as running:
        if url:
            called = server.of_url(url, chosen, terminal)
        else:
            called = running.enter_context(server.of_folder(chosen["functions"], terminal, runtime=chosen["runtime"]))
        if argument:
            result: Any = conversation.complete(called, target, argument, arguments)
        else:
            call = words.read_call(called, target, arguments, terminal)
            result = conversation.run_call(called, call, answers, terminal)
    if as_json:
        click.echo(json.dumps(result, ensure_ascii=False, indent=2))
    elif argument:
        click.echo("\n".join(map(safe_line, result)))
    else:
        terminal.write(result_text(result))
    return 1 if not argument and result.get("isError") else 0
