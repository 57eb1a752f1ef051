"""Shows the log lines of functions as a person reads them at the terminal.

{"level": "INFO", "message": "hello", …}    hello
{"level": "WARN", "message": "slow", …}     WARN slow
{"level": "INFO", "message": "paid", "location": …, "order": 7}    paid order=7, as a Logger of Powertools writes it
START RequestId: …                          nothing: the line of the call has the same figures
{"type": "platform.report", …}              nothing, too
any other line                              the line as it is
"""

import json
from typing import Any

from mcp_functions.http.identity import NO_AUTHENTICATION
from mcp_functions_harness.loopback import json_object

TOOLKIT = "mcp_functions"  # the name of the toolkit's logger
# Starts of the toolkit's messages that are not shown: the line of the call, a traceback or the banner says the same.
SKIPPED_MESSAGES = ("answered: ", "failed: ", NO_AUTHENTICATION)
# The starts of lines of Lambda's runtime that are not shown. The line of the call has the same figures.
PLATFORM_LINES = ("START RequestId: ", "END RequestId: ", "REPORT RequestId: ")
PLATFORM_FIELDS = {"time", "type", "record"}  # of such a line with LogFormat JSON
# Part of a line of Lambda's runtime with a long advice to update the runtime, which does not help an author.
LAMBDA_WARNING = "LAMBDA_WARNING: Unhandled exception"
LAMBDA_FIELDS = {"timestamp", "level", "requestId"}  # of every line of Lambda's JSON formatter
# Every line of a Logger of Powertools has the first four. A person at a terminal needs none of the others.
POWERTOOLS_FIELDS = {"level", "location", "message", "timestamp"}
HIDDEN_FIELDS = POWERTOOLS_FIELDS | {"service", "correlation_id", "function_name", "function_memory_size"}
HIDDEN_FIELDS |= {"function_arn", "function_request_id", "cold_start", "xray_trace_id", "sampling_rate"}
HIDDEN_FIELDS |= {"exception_name", "exception", "stack_trace"}  # written below the line


def shown_text(line: str) -> str | None:
    """Return the text of a log line; None if it is not shown."""
    if line.startswith(PLATFORM_LINES) or LAMBDA_WARNING in line:
        return None
    record = json_object(line)
    is_of_platform = record.keys() == PLATFORM_FIELDS and str(record["type"]).startswith("platform.")
    if is_of_platform or "_aws" in record:  # metrics, in CloudWatch's embedded metric format
        return None
    message = record.get("message")
    if record.get("logger") == TOOLKIT and isinstance(message, str):
        return None if is_skipped(message) else message
    if record.keys() >= LAMBDA_FIELDS:
        return _text_of_lambda_record(record)
    if record.keys() >= POWERTOOLS_FIELDS:
        return _text_of_powertools_record(record)
    return line


def is_skipped(message: str) -> bool:
    """Whether a message of the toolkit is not shown."""
    return message.startswith(SKIPPED_MESSAGES)


def _text_of_powertools_record(record: dict[str, Any]) -> str:
    """Return the message of a Logger of Powertools, and the fields that its author added."""
    level = "" if record["level"] == "INFO" else f"{record['level']} "
    own = {name: value for name, value in record.items() if name not in HIDDEN_FIELDS}
    fields = [f"{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in own.items()]
    frames = [str(record["exception"])] if record.get("exception") else []
    return "\n".join([" ".join([f"{level}{record['message']}", *fields]), *frames])


def _text_of_lambda_record(record: dict[str, Any]) -> str:
    """Return the text of a line that Lambda's own JSON formatter wrote."""
    level = "" if record["level"] == "INFO" else f"{record['level']} "
    texts = [str(record[name]) for name in ("message", "errorType", "errorMessage") if record.get(name)]
    frames = [str(line).rstrip("\n") for line in record.get("stackTrace", ())]
    return "\n".join([level + ": ".join(texts), *frames])
