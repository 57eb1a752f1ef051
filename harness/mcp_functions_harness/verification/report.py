"""The outcome of a check, in one line: `ok`, `FAILED why` or `skipped why`."""

from collections.abc import Callable
from typing import Literal, NamedTuple, ParamSpec

from botocore.exceptions import BotoCoreError, ClientError

from mcp_functions_harness.problems import Problem, first_line
from mcp_functions_harness.terminal.safe_text import safe_line

MAX_NAMES = 5  # of names that a line shows
DENIED = ("AccessDenied", "AccessDeniedException", "UnauthorizedOperation")
P = ParamSpec("P")  # the parameters of a check


class Failed(Problem):
    """A check has found that the deployment does not do what it should; the text says what is wrong."""


class Skipped(Problem):
    """A check cannot run; the text says what it needs."""


class Line(NamedTuple):
    """The outcome of one check."""

    outcome: Literal["ok", "FAILED", "skipped"]
    check: str
    text: str

    def __str__(self) -> str:
        """Write the line. The text may quote the server, which could forge another line."""
        return f"{self.outcome:<9}{self.check}: {safe_line(self.text)}"


def run(name: str, check: Callable[P, str], *args: P.args, **kwargs: P.kwargs) -> Line:
    """Run a check, which returns the text of an `ok`, or raises Failed, Skipped or an error of boto3."""
    try:
        return Line("ok", name, check(*args, **kwargs))
    except Failed as failed:
        return Line("FAILED", name, str(failed))
    except Skipped as skipped:
        return Line("skipped", name, str(skipped))
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "")
        if code in DENIED:
            return Line("skipped", name, f"your credentials may not call {error.operation_name}")
        return Line("FAILED", name, f"{error.operation_name} answers {code}")
    except BotoCoreError as error:
        return Line("skipped", name, f"AWS cannot be asked: {first_line(error)}")


def comma_list(names: list[str]) -> str:
    """Join names; of many, only the first MAX_NAMES and the number of the others."""
    text = ", ".join(names[:MAX_NAMES])
    if len(names) > MAX_NAMES:
        text += f" and {len(names) - MAX_NAMES} more"
    return text
