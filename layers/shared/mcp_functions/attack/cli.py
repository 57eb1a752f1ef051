"""The command line of the attacker: it says what it will do, to whom, and how much of it; and asks for no more.

Exit code 1 if a hole was found, 2 for what the user can put right.
"""

from __future__ import annotations

import argparse
import json
import sys
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mcp_functions.attack import reporting
from mcp_functions.attack.checks import CHECKS
from mcp_functions.attack.hunt import Bounds
from mcp_functions.attack.messages import message, write
from mcp_functions.attack.running import attack
from mcp_functions.attack.sending import CALLER, Line

if TYPE_CHECKING:
    from collections.abc import Sequence

HOLES, USAGE = 1, 2
UNAUTHORIZED = 401
ABOUT = """\
attacks an MCP server of your own, of revision 2026-07-28, as a hostile client would, and reports what it let happen.
It calls what the server offers, with invented arguments and answers: run it where nothing can be lost."""
START = """\
{url}: at most {requests} requests, {seconds:g} s, one at a time.
{calls}
"""


class Problem(Exception):
    """What the user can put right, in one line."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        argv: its words, without the program's own.

    """
    options = parser().parse_args(argv)
    try:
        return _run(options)
    except Problem as problem:
        sys.stderr.write(f"mcp_functions.attack: {problem}\n")
        return USAGE
    except KeyboardInterrupt:
        return 130


def _run(options: argparse.Namespace) -> int:
    _own(options.url, options.yes_this_is_mine)
    bounds = Bounds(options.requests, options.seconds)
    named = _named(options.tool, options.arguments)
    headers, other = _headers(options.header), _headers(options.other_header)
    _writable(options.json)
    _reachable(options.url, headers)
    calls = (
        f"Nothing but {', '.join(name for name, _arguments in named)} is called."
        if named
        else "Everything listed is called."
    )
    sys.stdout.write(START.format(url=options.url, requests=bounds.requests, seconds=bounds.seconds, calls=calls))
    sys.stdout.flush()
    chosen = [check for check in CHECKS if not options.only or check.name in options.only]
    report = attack(
        options.url,
        headers=headers,
        other_headers=other,
        named=named,
        lifetime=options.lifetime,
        bounds=bounds,
        checks=chosen,
    )
    if options.json:
        Path(options.json).write_text(json.dumps(reporting.data(report), indent=2) + "\n", encoding="utf-8")
    sys.stdout.write(reporting.text(report, secured=bool(headers)))
    return HOLES if report.holes else 0


def _writable(file: str | None) -> None:
    """See now whether the report can be written: nobody wants to hear after ten minutes that it cannot.

    Raises:
        Problem: it cannot.

    """
    try:
        if file:
            Path(file).touch()
    except OSError as error:
        text = f"--json {file}: {error.strerror}"
        raise Problem(text) from None


def _own(url: str, said: str | None) -> None:
    """Let nobody attack what is not his by a slip: what is not on this machine must be named twice.

    Raises:
        Problem: the URL is none, or somebody's.

    """
    try:
        address = urlsplit(url)
        host, _port = address.hostname or "", address.port
    except ValueError:
        host, address = "", None
    if address is None or address.scheme not in {"http", "https"} or not host:
        text = f"{url!r} is no http:// or https:// URL"
        raise Problem(text)
    if not _is_loopback(host) and said != host:
        text = f"{host} is not this machine. Attack nobody else's server; if it is yours: --yes-this-is-mine {host}"
        raise Problem(text)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _reachable(url: str, headers: Sequence[tuple[str, str]]) -> None:
    line = Line(url, {CALLER: headers}, requests=1, seconds=30)
    answer = line.send(write(message("server/discover", {}))).answer
    if answer.status == 0:
        text = f"{url} does not answer ({answer.failed})"
        raise Problem(text)
    if answer.status == UNAUTHORIZED:
        text = f"{url} wants credentials: --header 'Authorization: Bearer ...'"
        raise Problem(text)
    if answer.result is None:
        text = f"{url} does not answer server/discover of 2026-07-28: {answer}"
        raise Problem(text)


def _named(tools: Sequence[str], arguments: Sequence[str]) -> list[tuple[str, dict[str, Any]]]:
    if len(arguments) > len(tools):
        text = "--arguments belongs to a --tool"
        raise Problem(text)
    given = [*arguments, *["{}"] * (len(tools) - len(arguments))]
    return [(name, _object(text)) for name, text in zip(tools, given, strict=True)]


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        message = f"--arguments must be a JSON object, not {text!r}"
        raise Problem(message)
    return value


def _headers(lines: Sequence[str]) -> list[tuple[str, str]]:
    pairs = [line.partition(":") for line in lines]
    if any(not name.strip() or not colon for name, colon, _value in pairs):
        text = "a header is written 'Name: value'"
        raise Problem(text)
    return [(name.strip(), value.strip()) for name, _colon, value in pairs]


def parser() -> argparse.ArgumentParser:
    """Say which words the command takes."""
    words = argparse.ArgumentParser(prog="python -m mcp_functions.attack", description=ABOUT)
    words.add_argument("url", help="the MCP endpoint, e.g. http://127.0.0.1:8000/mcp")
    words.add_argument(
        "--header", action="append", default=[], metavar="'NAME: VALUE'", help="the caller's credentials"
    )
    words.add_argument("--other-header", action="append", default=[], metavar="'NAME: VALUE'", help="a second person's")
    words.add_argument(
        "--tool", action="append", default=[], help="that asks; again for others. Nothing else is called"
    )
    words.add_argument(
        "--arguments", action="append", default=[], metavar="JSON", help="of each --tool, in their order"
    )
    words.add_argument(
        "--only", action="append", choices=[check.name for check in CHECKS], metavar="CHECK", help="try it alone"
    )
    words.add_argument(
        "--lifetime", type=float, metavar="SECONDS", help="of a state, as you promise it; it is waited for"
    )
    words.add_argument("--requests", type=int, default=Bounds().requests, help="at most (%(default)s)")
    words.add_argument("--seconds", type=float, default=Bounds().seconds, help="at most (%(default)s)")
    words.add_argument("--json", metavar="FILE", help="write the report, with every byte of what proves a finding")
    words.add_argument("--yes-this-is-mine", metavar="HOST", help="needed for any host but this machine")
    return words
