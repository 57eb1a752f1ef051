"""The command line: `serve`, `demo`, `next`, `catalog`, `kms`, `open`, `init`, `new`, `block`.

An error that the user can correct is one line on stderr and exit code 2. SIGINT and SIGTERM end every command quietly.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import logging
import signal
import sys
import time
import traceback
from ipaddress import AddressValueError, IPv4Address
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TextIO

from mcp_functions.http.identity import NO_AUTHENTICATION
from mcp_functions.local import banner, catalog, next_event, own_tables, scaffold
from mcp_functions.local.doubles import keyfile
from mcp_functions.local.doubles.dynamodb import PROTOCOL
from mcp_functions.local.doubles.kms import MAX_REQUEST, KmsApi
from mcp_functions.local.harness import STATE_DIR, Harness, stored_tables
from mcp_functions.local.inspection import command as open_command
from mcp_functions.local.loopback import HOST, Loopback
from mcp_functions.local.problems import DemoError, Problem, first_line, not_installed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mcp_functions.local.lambdas import Invocation
    from mcp_functions.local.loopback import HttpRequest

USAGE = 2  # exit code for an error that the user can correct
INTERRUPTED = 130  # exit code of a command that Ctrl-C ended
DEFAULT_PORT = 8000
KMS_PORT = 8001
LOOK_SECONDS = 0.2
ANSWERED = tuple(f"answered: {outcome}" for outcome in ("complete", "input_required", "shed", "forwarded"))
STOPPING = (signal.SIGINT, signal.SIGTERM)


def main(argv: Sequence[str] | None = None, *, prog: str = "python -m mcp_functions.local") -> int:
    """Run one command.

    Args:
        argv: its arguments, without the program's name.
        prog: the program's name, for the help.

    Returns:
        The exit code: 0; 1 if `catalog --check` finds a difference, a `demo` fails, or `open` finds a reason to refuse
        the token; 2 for a problem.
    """
    options = argparse.Namespace(debug=False)
    try:
        _parser(prog).parse_args(argv, options)
        return int(options.run(options))
    except Problem as problem:
        if options.debug and problem.__cause__:
            traceback.print_exception(problem.__cause__)
        sys.stderr.write(f"mcp-functions: {problem}\n")
        return USAGE


class _Parser(argparse.ArgumentParser):
    """Reports a wrong option in one line, like every other error."""

    def error(self, message: str) -> NoReturn:
        """Raise the message, and name the help."""
        text = f"{message}. See {self.prog} --help"
        raise Problem(text)


def _parser(prog: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = _Parser(prog=prog, description="MCP functions on this machine")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--debug", action="store_true", help="show whole tracebacks")
    project = argparse.ArgumentParser(add_help=False, parents=[common])
    project.add_argument("--functions", type=Path, default=Path("functions"), metavar="DIR", help="default: functions")
    running = argparse.ArgumentParser(add_help=False, parents=[project])
    running.add_argument("--runtime", action="store_true", help="run functions as processes of the real Lambda runtime")

    serve = commands.add_parser("serve", parents=[running], help="serve every function until Ctrl-C")
    serve.add_argument("--port", type=int, default=DEFAULT_PORT, metavar="N", help=f"default: {DEFAULT_PORT}; 0: any")
    tokens = "jwt: require an access token, and run an issuer; oauth: with the sign-in front before it; default: none"
    serve.add_argument("--auth", choices=("none", "jwt", "oauth"), default="none", help=tokens)
    serve.add_argument("--no-reuse", action="store_true", help="with --runtime, a process for every invocation")
    serve.set_defaults(run=_serve)

    demo = commands.add_parser("demo", parents=[running], help="watch the official client hold a conversation")
    pause = "answer three days later: another client, the server restarted and upgraded, the KMS key rotated"
    demo.add_argument("--pause", action="store_true", help=pause)
    demo.add_argument("--task", action="store_true", help="a task that asks, and whose worker is killed on the way")
    demo.set_defaults(run=_demo)

    follow = commands.add_parser("next", parents=[common], help="fill a response's requestState into the next event")
    follow.add_argument("response", metavar="RESPONSE", help="what the Lambda returned: a file, or -")
    follow.add_argument("event", metavar="EVENT", help="an event whose body has {{requestState}}: a file, or -")
    follow.set_defaults(run=_next)

    listed = commands.add_parser("catalog", parents=[project], help="write functions/mcp/catalog.json")
    listed.add_argument("--check", action="store_true", help="write nothing; exit 1 and say what differs")
    listed.set_defaults(run=_catalog)

    kms = commands.add_parser("kms", parents=[common], help="serve KMS and DynamoDB until Ctrl-C, for containers")
    kms.add_argument("--port", type=int, default=KMS_PORT, metavar="N", help=f"default: {KMS_PORT}; 0: any")
    where = f"of this machine, where its containers reach it, e.g. 172.17.0.1; default: {HOST}"
    kms.add_argument("--address", type=_address, default=HOST, metavar="A", help=where)
    kms.set_defaults(run=_kms)
    open_command.add_command(commands, project)
    scaffold.add_commands(commands, common)
    return parser


def _address(text: str) -> str:
    try:
        address = IPv4Address(text)
    except AddressValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    if address.is_unspecified:
        everywhere = "that is every address of this machine: other machines must not reach the key"
        raise argparse.ArgumentTypeError(everywhere)
    return text


def _serve(options: argparse.Namespace) -> int:
    how = {"runtime": options.runtime, "reuse": not options.no_reuse, "on_log": _log, "auth": options.auth}
    with (
        contextlib.redirect_stdout(_ReadableOutput(sys.stdout)),
        _until_stopped() as stopped,
        Harness(options.functions, port=options.port, debug=options.debug, on_invocation=_report, **how) as harness,
    ):
        logging.basicConfig(stream=sys.stderr, format="  %(message)s")
        logging.getLogger("mcp_functions").setLevel(logging.INFO)
        logging.getLogger("mcp_functions").addFilter(_is_news)
        _say(banner.text(harness.url, harness.functions, harness.issuer, options.auth))
        offered = catalog.describe(harness.functions.values())
        if changed := catalog.differences(catalog.read(options.functions), offered):
            _say(banner.stale(changed))
        while not stopped():
            time.sleep(LOOK_SECONDS)
    return 0


def _report(invocation: Invocation) -> None:
    with contextlib.suppress(OSError):  # the reader of these lines may have ended; the function still answers
        _say(f"  {invocation.error or invocation.status}  {invocation.folder}  {invocation.milliseconds:.0f} ms")


def _is_news(record: logging.LogRecord) -> bool:
    # the banner explains authentication, and `_report` writes a line for every answer
    return record.msg != NO_AUTHENTICATION and not record.getMessage().endswith(ANSWERED)


def _log(folder: str, line: str) -> None:
    text = _readable(line)
    if text is not None:
        with contextlib.suppress(OSError):
            _say(f"  {folder}  {text}")


class _ReadableOutput(io.TextIOBase):
    """Standard output for functions in this process, whose Powertools Logger may write JSON."""

    def __init__(self, out: TextIO) -> None:
        """Write to `out`."""
        self._out = out

    def write(self, text: str) -> int:
        """Write the toolkit's lines readably, and other text unchanged."""
        line = _readable(text)
        if line is not None:
            self._out.write(line if line == text else f"  {line}\n")
        return len(text)

    def flush(self) -> None:
        """Flush the output."""
        self._out.flush()


def _readable(line: str) -> str | None:
    """Return the message of the toolkit's JSON lines, None instead of metrics, and every other line unchanged."""
    try:
        record = json.loads(line)
    except ValueError:
        return line
    match record:
        case {"_aws": {"CloudWatchMetrics": _}}:
            return None
        case {"logger": "mcp_functions", "message": str(message)}:
            return None if message.endswith(ANSWERED) else message
    return line


def _demo(options: argparse.Namespace) -> int:
    try:
        from mcp_functions.local.demo import pause, question, task  # noqa: PLC0415 - they need the official client
    except ModuleNotFoundError as error:
        raise not_installed(error, "demo") from error
    try:
        if options.task:
            task.run(options.functions, sys.stdout)
        elif options.pause:
            pause.run(options.functions, sys.stdout, runtime=options.runtime)
        else:
            question.run(options.functions, sys.stdout, runtime=options.runtime)
    except DemoError as surprise:
        if options.debug:
            traceback.print_exception(surprise)
        sys.stderr.write(f"mcp-functions: the demo went wrong: {surprise}\n")
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _next(options: argparse.Namespace) -> int:
    if options.response == options.event == "-":
        both = "only one of RESPONSE and EVENT can be -"
        raise Problem(both)
    sys.stdout.write(next_event.follow(_read(options.response), _read(options.event)))
    return 0


def _read(name: str) -> str:
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        unreadable = f"{name} cannot be read: {first_line(error)}"
        raise Problem(unreadable) from error


def _catalog(options: argparse.Namespace) -> int:
    made = catalog.generate(options.functions)
    if options.check:
        changed = catalog.differences(catalog.read(options.functions), made)
        _say(banner.stale(changed) if changed else "the catalog is up to date")
        return 1 if changed else 0
    written = catalog.write(options.functions, made)
    count = sum(len(entries) for entries in made["functions"].values())
    _say(f"{written}: {count} {'handler' if count == 1 else 'handlers'}")
    return 0


def _kms(options: argparse.Namespace) -> int:
    names = [banner.HOST_OF_CONTAINERS]
    with (
        _until_stopped() as stopped,
        contextlib.ExitStack() as running,
        Loopback(port=options.port, max_body=MAX_REQUEST, address=options.address, names=names) as kms,
    ):
        api = KmsApi(keyfile.load(STATE_DIR))
        # `sam local` takes a resource's logical id for its name
        tables = stored_tables(running, STATE_DIR, own_tables.of_project(Path("functions"), name="{}"))
        tables.warm()
        kms.start(lambda request: (tables if _is_for_dynamodb(request) else api).answer(request))
        _say(banner.kms(kms.url, api.arn))
        while not stopped():
            time.sleep(LOOK_SECONDS)
    return 0


def _is_for_dynamodb(request: HttpRequest) -> bool:
    return request.header("x-amz-target").startswith(PROTOCOL.target)


class _Stopped(BaseException):
    """A signal asks to stop. It is no `Exception`, so that no function catches it."""


@contextlib.contextmanager
def _until_stopped() -> Iterator[Callable[[], bool]]:
    """Run the block until SIGINT or SIGTERM; a second signal does nothing.

    The signal raises an exception where the block is, and sets a flag too, because an exception in a finalizer is lost.
    There is no lock: a handler that interrupts the holder of a lock would wait for ever.
    """
    stopped = False

    def stop(_number: int, _frame: object) -> None:
        nonlocal stopped
        for number in STOPPING:
            signal.signal(number, signal.SIG_IGN)
        stopped = True
        raise _Stopped

    before = {number: signal.signal(number, stop) for number in STOPPING}
    try:
        yield lambda: stopped
    except _Stopped:
        pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
