"""Says when a function ran so long that a deployment would end it, in development, where nothing ends it."""

from mcp_functions.protocol.constants import WORKER_SUFFIX
from mcp_functions_harness.lambdas.functions import FRONT_DOOR
from mcp_functions_harness.lambdas.service import Outcome
from mcp_functions_harness.runtime.reports import TIMED_OUT

LONGEST_ROUND = 26.0  # seconds: a step that would end later than this waits for the next round
TOO_LONG = (
    "a round of {folder} took {seconds:.0f} s: Lambda ends it after the Timeout of template.yaml, 28 s; "
    "divide its work into steps, or let it be a task: mcp-functions docs tasks"
)


def warning(folder: str, outcome: Outcome) -> str:
    """Return what the author should know about the time of a call; "" if it was short enough.

    A worker has 15 minutes, and the endpoint waits for the function that is named.
    """
    if folder == FRONT_DOOR or folder.endswith(WORKER_SUFFIX):
        return ""
    seconds = outcome.milliseconds / 1000
    if seconds > LONGEST_ROUND or outcome.error == TIMED_OUT:
        return TOO_LONG.format(folder=folder, seconds=seconds)
    return ""
