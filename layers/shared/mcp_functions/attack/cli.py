"""The command `attack`: reads its options, attacks a server, and prints the report. It prints its limits first.

Exit codes: 0, no hole; 1, a hole was found; 2, an option is wrong or the server cannot be attacked; 130, Ctrl-C.
"""

import json
import os
from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

import click

from mcp_functions.attack import messages, report_writer
from mcp_functions.attack.checks import CHECKS
from mcp_functions.attack.client import send
from mcp_functions.attack.runner import attack
from mcp_functions.attack.scan import DEFAULT_BOUNDS, Bounds

# exit codes
HOLES = 1
USAGE = 2
INTERRUPTED = 130
UNAUTHORIZED = 401  # HTTP


def _headers(_context: click.Context, _parameter: click.Parameter, lines: Sequence[str]) -> list[tuple[str, str]]:
    pairs = []
    for line in lines:
        name, colon, value = line.partition(":")
        if not name.strip() or not colon:
            text = "a header is written 'Name: value'"
            raise click.BadParameter(text)
        pairs.append((name.strip(), value.strip()))
    return pairs


def _writable(_context: click.Context, _parameter: click.Parameter, file: Path | None) -> Path | None:
    """Refuse a file for the report before the run, which takes minutes; an older report in it stays until then."""
    if file and not os.access(file if file.exists() else file.parent, os.W_OK):
        text = f"{file} cannot be written"
        raise click.BadParameter(text)
    return file


FILE = click.Path(dir_okay=False, path_type=Path)
NAMES = [check.name for check in CHECKS]
HEADER: dict[str, Any] = {"multiple": True, "callback": _headers, "metavar": "'NAME: VALUE'"}
TOOL = "A tool that asks; repeatable. No other is called."
LIFETIME = "Of a state, as the server promises; the command waits until it has passed."
PROOF = "Write the report, with every byte of what proves a finding."


@click.command("attack")
@click.argument("url")
@click.option("--header", "headers", help="The caller's credentials.", **HEADER)
@click.option("--other-header", "other_headers", help="A second person's.", **HEADER)
@click.option("--tool", "tools", multiple=True, metavar="NAME", help=TOOL)
@click.option("--arguments", multiple=True, metavar="JSON", help="Of each --tool, in their order.")
@click.option("--only", multiple=True, type=click.Choice(NAMES), metavar="CHECK", help="Run this check alone.")
@click.option("--lifetime", type=float, metavar="SECONDS", help=LIFETIME)
@click.option("--requests", type=int, default=DEFAULT_BOUNDS.requests, show_default=True, help="At most.")
@click.option("--seconds", type=float, default=DEFAULT_BOUNDS.seconds, show_default=True, help="At most.")
@click.option("--json", "file", type=FILE, callback=_writable, metavar="FILE", help=PROOF)
@click.option("--yes-this-is-mine", "confirmed_host", metavar="HOST", help="Needed for any host but this machine.")
def command(  # noqa: PLR0913 - the options of a command
    url: str,
    *,
    headers: list[tuple[str, str]],
    other_headers: list[tuple[str, str]],
    tools: Sequence[str],
    arguments: Sequence[str],
    only: Sequence[str],
    lifetime: float | None,
    requests: int,
    seconds: float,
    file: Path | None,
    confirmed_host: str | None,
) -> int:
    """Attack a server of your own, of revision 2026-07-28, as a hostile client would.

    It calls what the server at URL offers, with invented arguments and answers: run it where nothing can be lost.
    """
    _check_host(url, confirmed_host)
    named = named_calls(tools, arguments)
    _check_reachable(url, headers)
    click.echo(f"{url}: at most {requests} requests, {seconds:g} s, one at a time.")
    click.echo(f"Nothing but {', '.join(tools)} is called." if tools else "Everything listed is called.")
    report = attack(
        url,
        headers=headers,
        other_headers=other_headers,
        named=named,
        lifetime=lifetime,
        bounds=Bounds(requests, seconds),
        checks=[check for check in CHECKS if not only or check.name in only],
    )
    if file:
        file.write_text(json.dumps(report_writer.as_json(report), indent=2) + "\n", encoding="utf-8")
    click.echo(report_writer.as_text(report, secured=bool(headers)), nl=False)
    return HOLES if report.holes else 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; an error that the user can correct is one line."""
    try:
        code: int = command.main(argv, prog_name="python -m mcp_functions.attack", standalone_mode=False)
    except click.ClickException as error:
        click.echo(f"mcp_functions.attack: {error.format_message()}", err=True)
        return USAGE
    except click.Abort:
        return INTERRUPTED
    return code


def _refuse(text: str) -> NoReturn:
    raise click.ClickException(text)


def _check_host(url: str, confirmed: str | None) -> None:
    """Refuse an invalid URL, and another machine that the user has not named twice."""
    host = _host_of(url)
    if not host:
        _refuse(f"{url!r} is no http:// or https:// URL")
    if not _is_loopback(host) and confirmed != host:
        _refuse(f"{host} is not this machine. Attack nobody else's server; if it is yours: --yes-this-is-mine {host}")


def _host_of(url: str) -> str:
    """Return the host of an http:// or https:// URL; "" if the text is none."""
    try:
        address = urlsplit(url)
        _port = address.port  # a property that raises ValueError if the port is invalid
    except ValueError:
        return ""
    if address.scheme not in {"http", "https"}:
        return ""
    return address.hostname or ""


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _check_reachable(url: str, headers: Sequence[tuple[str, str]]) -> None:
    """Refuse a server that does not answer `server/discover`."""
    response = send(url, messages.write(messages.message("server/discover", {})), headers, seconds=30)
    if response.result is not None:
        return
    if response.status == 0:
        _refuse(f"{url} does not answer ({response.failed})")
    if response.status == UNAUTHORIZED:
        _refuse(f"{url} wants credentials: --header 'Authorization: Bearer ...'")
    _refuse(f"{url} does not answer server/discover of 2026-07-28: {response}")


def named_calls(tools: Sequence[str], arguments: Sequence[str]) -> list[tuple[str, dict[str, Any]]]:
    """Return each tool with its arguments.

    Args:
        tools: the names of the tools.
        arguments: a JSON object for each tool, in their order; the last tools may have none.

    Raises:
        ClickException: there are too many, or one is no JSON object.
    """
    if len(arguments) > len(tools):
        _refuse("--arguments belongs to a --tool")
    texts = [*arguments, *["{}"] * (len(tools) - len(arguments))]
    return [(name, json_object("--arguments", text)) for name, text in zip(tools, texts, strict=True)]


def json_object(option: str, text: str) -> dict[str, Any]:
    """Read an option that is a JSON object.

    Raises:
        ClickException: it is none.
    """
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        _refuse(f"{option} must be a JSON object, not {text!r}")
    return value
