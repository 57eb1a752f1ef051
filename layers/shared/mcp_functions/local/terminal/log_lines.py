"""The log lines of functions, as a person reads them at the terminal."""

from __future__ import annotations

from typing import Any

from mcp_functions.http.identity import NO_AUTHENTICATION
from mcp_functions.local.loopback import json_object

TOOLKIT = "mcp_functions"  # the name of the toolkit's logger
# The terminal skips messages of the toolkit that begin so: a round's line, a traceback or the banner has the same news.
SKIPPED_PREFIXES = ("answered: ", "failed: ", NO_AUTHENTICATION)
# It skips lines of Lambda's runtime that begin so: the line of a round has the same figures.
PLATFORM_PREFIXES = ("START RequestId: ", "END RequestId: ", "REPORT RequestId: ")
# The start of a long advice to update the runtime. It is skipped too, because it does not help an author.
LAMBDA_WARNING = "LAMBDA_WARNING: Unhandled exception"
LAMBDA_FIELDS = {"timestamp", "level", "requestId"}  # every line of Lambda's own JSON formatter has them


def shown_text(line: str) -> str | None:
    """Return the text of a log line; None if the terminal skips the line."""
    if line.startswith(PLATFORM_PREFIXES) or LAMBDA_WARNING in line:
        return None
    record = json_object(line)
    if "_aws" in record:  # metrics, in CloudWatch's embedded metric format
        return None
    message = record.get("message")
    if record.get("logger") == TOOLKIT and isinstance(message, str):
        return None if is_skipped(message) else message
    if record.keys() >= LAMBDA_FIELDS:
        return _text_of_lambda_record(record)
    return line


def is_skipped(message: str) -> bool:
    """Whether the terminal skips a message of the toolkit."""
    return message.startswith(SKIPPED_PREFIXES)


def _text_of_lambda_record(record: dict[str, Any]) -> str:
    """Return the text of a line that Lambda's own JSON formatter wrote."""
    level = "" if record["level"] == "INFO" else f"{record['level']} "
    texts = [str(record[name]) for name in ("message", "errorType", "errorMessage") if record.get(name)]
    frames = [str(line).rstrip("\n") for line in record.get("stackTrace", ())]
    return "\n".join([level + ": ".join(texts), *frames])
