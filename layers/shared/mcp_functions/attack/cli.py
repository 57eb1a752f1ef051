"""The command line of the attacker. It prints its limits before it starts.

Exit codes: 0, no hole; 1, a hole was found; 2, the user has to change a word.
"""

from __future__ import annotations

import argparse
import json
import sys
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlsplit

from mcp_functions.attack import messages, report_writer
from mcp_functions.attack.checks import CHECKS
from mcp_functions.attack.client import CALLER, Client
from mcp_functions.attack.runner import attack
from mcp_functions.attack.scan import Bounds

if TYPE_CHECKING:
    from collections.abc import Sequence

HOLES, USAGE, INTERRUPTED = 1, 2, 130
UNAUTHORIZED = 401
ABOUT = """\
attacks an MCP server of your own, of revision 2026-07-28, as a hostile client would, and reports what it let happen.
It calls what the server offers, with invented arguments and answers: run it where nothing can be lost."""


class UsageError(Exception):
    """An error that the user can correct, in one line."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    try:
        return _run(parser().parse_args(argv))
    except UsageError as error:
        sys.stderr.write(f"mcp_functions.attack: {error}\n")
        return USAGE
    except KeyboardInterrupt:
        return INTERRUPTED


def _run(options: argparse.Namespace) -> int:
    _check_host(options.url, options.yes_this_is_mine)
    named = named_calls(options.tool, options.arguments)
    headers, other_headers = _headers(options.header), _headers(options.other_header)
    _check_writable(options.json)
    _check_reachable(options.url, headers)
    names = ", ".join(name for name, _arguments in named)
    sys.stdout.write(f"{options.url}: at most {options.requests} requests, {options.seconds:g} s, one at a time.\n")
    sys.stdout.write(f"Nothing but {names} is called.\n" if named else "Everything listed is called.\n")
    sys.stdout.flush()
    report = attack(
        options.url,
        headers=headers,
        other_headers=other_headers,
        named=named,
        lifetime=options.lifetime,
        bounds=Bounds(options.requests, options.seconds),
        checks=[check for check in CHECKS if not options.only or check.name in options.only],
    )
    if options.json:
        text = json.dumps(report_writer.data(report), indent=2)
        Path(options.json).write_text(text + "\n", encoding="utf-8")
    sys.stdout.write(report_writer.text(report, secured=bool(headers)))
    return HOLES if report.holes else 0


def _check_writable(file: str | None) -> None:
    """Refuse a file for the report before the run, which takes minutes."""
    try:
        if file:
            Path(file).touch()
    except OSError as error:
        text = f"--json {file}: {error.strerror}"
        raise UsageError(text) from None


def _check_host(url: str, confirmed: str | None) -> None:
    """Refuse an invalid URL, and another machine that the user has not named twice."""
    try:
        address = urlsplit(url)
        scheme, host, _port = address.scheme, address.hostname or "", address.port
    except ValueError:
        scheme, host = "", ""
    if scheme not in {"http", "https"} or not host:
        text = f"{url!r} is no http:// or https:// URL"
        raise UsageError(text)
    if not _is_loopback(host) and confirmed != host:
        text = f"{host} is not this machine. Attack nobody else's server; if it is yours: --yes-this-is-mine {host}"
        raise UsageError(text)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _check_reachable(url: str, headers: Sequence[tuple[str, str]]) -> None:
    """Refuse a server that does not answer `server/discover`."""
    client = Client(url, {CALLER: headers}, requests=1, seconds=30)
    response = client.send(messages.write(messages.message("server/discover", {}))).response
    if response.result is not None:
        return
    text = f"{url} does not answer server/discover of 2026-07-28: {response}"
    if response.status == 0:
        text = f"{url} does not answer ({response.failed})"
    elif response.status == UNAUTHORIZED:
        text = f"{url} wants credentials: --header 'Authorization: Bearer ...'"
    raise UsageError(text)


def named_calls(tools: Sequence[str], arguments: Sequence[str]) -> list[tuple[str, dict[str, Any]]]:
    """Return each tool with its arguments.

    Args:
        tools: their names.
        arguments: JSON objects; a tool without one gets none.

    Raises:
        UsageError: there are too many, or one is no JSON object.

    """
    if len(arguments) > len(tools):
        text = "--arguments belongs to a --tool"
        raise UsageError(text)
    without_arguments = len(tools) - len(arguments)
    texts = [*arguments, *["{}"] * without_arguments]
    return [(name, json_object("--arguments", text)) for name, text in zip(tools, texts, strict=True)]


def json_object(option: str, text: str) -> dict[str, Any]:
    """Read an option that is a JSON object.

    Raises:
        UsageError: it is none.

    """
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        message = f"{option} must be a JSON object, not {text!r}"
        raise UsageError(message)
    return value


def _headers(lines: Sequence[str]) -> list[tuple[str, str]]:
    pairs = []
    for line in lines:
        name, colon, value = line.partition(":")
        if not name.strip() or not colon:
            text = "a header is written 'Name: value'"
            raise UsageError(text)
        pairs.append((name.strip(), value.strip()))
    return pairs


class _Parser(argparse.ArgumentParser):
    """Reports a wrong option in one line."""

    def error(self, message: str) -> NoReturn:
        """Raise the message, and name the help."""
        text = f"{message}. See --help"
        raise UsageError(text)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command's words."""
    words = _Parser(prog="python -m mcp_functions.attack", description=ABOUT)
    words.add_argument("url", help="the MCP endpoint, e.g. http://127.0.0.1:8000/mcp")
    for flag, metavar, text in (
        ("--header", "'NAME: VALUE'", "the caller's credentials"),
        ("--other-header", "'NAME: VALUE'", "a second person's"),
        ("--tool", "NAME", "a tool that asks; may be repeated. Nothing else is called"),
        ("--arguments", "JSON", "of each --tool, in their order"),
    ):
        words.add_argument(flag, action="append", default=[], metavar=metavar, help=text)
    names = [check.name for check in CHECKS]
    words.add_argument("--only", action="append", choices=names, metavar="CHECK", help="run this check alone")
    lifetime = "of a state, as the server promises; the command waits until it has passed"
    words.add_argument("--lifetime", type=float, metavar="SECONDS", help=lifetime)
    words.add_argument("--requests", type=int, default=Bounds().requests, help="at most (%(default)s)")
    words.add_argument("--seconds", type=float, default=Bounds().seconds, help="at most (%(default)s)")
    words.add_argument("--json", metavar="FILE", help="write the report, with every byte of what proves a finding")
    words.add_argument("--yes-this-is-mine", metavar="HOST", help="needed for any host but this machine")
    return words
