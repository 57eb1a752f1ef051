"""`open TOKEN`: its words, and what they mean for `opening`."""

from __future__ import annotations

import sys
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from mcp_functions.local import environment, functions
from mcp_functions.local.harness import STATE_DIR
from mcp_functions.local.problems import Problem
from mcp_functions.protocol import json_reader
from mcp_functions.protocol.constants import CALLS
from mcp_functions.protocol.errors import ParseError
from mcp_functions.protocol.messages import Principal

if TYPE_CHECKING:
    import argparse
    from contextlib import AbstractContextManager
    from pathlib import Path

    from mcp_functions.local.opening import Holder, Request

LOCAL_STAGE, AWS_STAGE = "local", "prod"
STDIN = "-"


def add_command(commands: Any, common: argparse.ArgumentParser) -> None:  # noqa: ANN401 - argparse's own has no public name
    """Add `open` to the command line."""
    opened = commands.add_parser("open", parents=[common], help="say why a requestState is refused")
    opened.add_argument("token", metavar="TOKEN", help="a requestState (ks1.…), or - to read it from stdin")
    opened.add_argument("--show-state", action="store_true", help="print the user's answers and the state, too")
    key = opened.add_argument_group("the key (default: the harness's own, of .mcp-functions/)")
    key.add_argument("--key", action="append", default=[], metavar="ARN", help="one of MCP_KMS_KEYS; may be repeated")
    key.add_argument("--service", metavar="S", help="<stack>/<function>, or the audience that serve() names")
    key.add_argument("--stage", metavar="S", help=f"default: {AWS_STAGE} with --key, else {LOCAL_STAGE}")
    key.add_argument("--generation", default="1", metavar="G", help="default: 1")
    request = opened.add_argument_group("the request that was refused, to compare with")
    request.add_argument("--function", metavar="NAME", help="the function's folder; with --key, --service says it")
    request.add_argument("--method", choices=CALLS, help="what it called")
    request.add_argument("--target", metavar="NAME", help="the name of the tool or prompt, or the URI")
    request.add_argument("--arguments", metavar="JSON", help="params.arguments")
    request.add_argument("--principal", nargs=3, metavar=("ISS", "SUB", "CLIENT"), help='who sent it; CLIENT may be ""')
    request.add_argument("--nobody", action="store_true", help="it came without a principal (AuthMode none)")
    request.add_argument("--answer-within", type=int, metavar="SECONDS", help="the function's answer_within")
    opened.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the command: 0 if nothing speaks against the token, 1 if something does."""
    from mcp_functions.local import opening  # noqa: PLC0415 - the only command that needs cryptography

    text, now = sys.stdin.read().strip() if options.token == STDIN else options.token, time.time()
    explained = opening.shown(text, now=now)
    if not explained.reasons:
        request = _request(options)
        try:
            with _holder(options) as holder:
                explained = opening.explain(text, holder, request, now=now, show_state=options.show_state)
        except Problem:
            sys.stdout.write("".join(f"{line}\n" for line in explained.lines))  # no key is needed for that much
            raise
    sys.stdout.write(f"{explained}\n")
    return 1 if explained.reasons else 0


def _request(options: argparse.Namespace) -> Request:
    from mcp_functions.local.opening import UNKNOWN, Request  # noqa: PLC0415 - see `run`

    principal = Principal(*options.principal) if options.principal else None
    return Request(
        method=options.method or UNKNOWN,
        target=UNKNOWN if options.target is None else options.target,
        arguments=UNKNOWN if options.arguments is None else _json(options.arguments),
        principal=principal if principal or options.nobody else UNKNOWN,
        answer_within=options.answer_within,
    )


def _json(text: str) -> Any:  # noqa: ANN401 - JSON is any value
    try:
        return json_reader.loads(text)  # as the server reads it: the digest counts
    except ParseError:
        unread = "--arguments is not JSON: give params.arguments as the client sent them, in quotes"
        raise Problem(unread) from None


def _holder(options: argparse.Namespace) -> AbstractContextManager[Holder]:
    from mcp_functions.local import opening  # noqa: PLC0415 - see `run`
    from mcp_functions.seal.data_keys import Scope  # noqa: PLC0415 - see `run`

    stage = options.stage or (AWS_STAGE if options.key else LOCAL_STAGE)
    if options.key:
        if not options.service:
            missing = "--key needs --service: a data key opens for one <stack>/<function>, or for a shared audience"
            raise Problem(missing)
        arns = [arn.strip() for listed in options.key for arn in listed.split(",")]
        return nullcontext(opening.aws_keys(arns, Scope(options.service, stage, options.generation)))
    named = options.service or (f"{environment.STACK}/{options.function}" if options.function else None)
    scopes = [Scope(service, stage, options.generation) for service in _services(options.functions, named)]
    return opening.local_key(STATE_DIR, scopes, scopes[0] if named else None)


def _services(directory: Path, named: str | None) -> list[str]:
    """List whose state it may be on this machine: the function's that was named, and then any other's."""
    if named and not directory.is_dir():
        return [named]
    others = [f"{environment.STACK}/{app.parent.name}" for app in functions.find(directory)]
    return [named, *(service for service in others if service != named)] if named else others
