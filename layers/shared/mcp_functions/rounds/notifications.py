"""Notifications to the client before the result: progress and log messages."""

from __future__ import annotations

from math import isfinite

from mcp_functions.observability import progress_listener
from mcp_functions.protocol.constants import LOG_LEVELS, META_LOG_LEVEL
from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.protocol.json_writer import dumps
from mcp_functions.protocol.plain_values import to_json
from mcp_functions.rounds.capabilities import Capability


class Progress(Capability):
    """Reports how far the work is: `progress(50, total=100)`."""

    def __call__(self, progress: float, *, total: float | None = None, message: str | None = None) -> None:
        """Notify the client, if it sent a progress token (basic/patterns/progress). A task shows it as `statusMessage`.

        Args:
            progress: the work done so far. The client gets it only if it is higher than all before it in the
                conversation, because every round runs the function from its first line.
            total: the final value of `progress`, if known.
            message: a description of the current work.

        Raises:
            DeveloperError: the message is not text.
        """
        if not isinstance(message, str | None):
            rule = "the message of progress is text, and not of type {type}"
            raise self._round.failed(DeveloperError(rule, type=type(message).__name__))
        numbers = f"{progress:g} of {total:g}" if total else f"{progress:g}"  # not "3 of 0"
        self._round.progress_message = message or numbers
        show_progress = progress_listener.get()
        if show_progress:  # set only where the author runs the function locally
            show_progress(progress, total)
        self._notify(progress, total, message)

    def _notify(self, progress: float, total: float | None, message: str | None) -> None:
        """Add the notification for the client, if it sent a progress token and the progress has increased."""
        token = self._round.request.meta.get("progressToken")
        # Progress "MUST increase with each notification" (basic/patterns/progress). A client may use one token for all
        # rounds of a call.
        last_sent = self._round.record.progress
        if token is None or not isfinite(progress) or (last_sent is not None and progress <= last_sent):
            return
        self._round.record.progress = progress
        params = {"progressToken": token, "progress": progress}
        if total is not None and isfinite(total):  # JSON has no infinity
            params["total"] = total
        if message is not None:
            params["message"] = message
        self._round.notifications.append({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})


class Log(Capability):
    """Sends log messages to the client that asked for them: `log.info("…")` (server/utilities/logging).

    "Log messages MUST NOT contain credentials or secrets"; they go to the client, not to CloudWatch.
    """

    logs = True  # the server then advertises logging

    def __call__(self, level: str, data: object, *, logger: str | None = None) -> None:
        """Send one message, if this request asked for its level.

        Args:
            level: the severity: debug, info, notice, warning, error, critical, alert or emergency. The first five are
                methods, too.
            data: the message, any JSON value.
            logger: the name of the source.

        Raises:
            DeveloperError: the level is unknown, or `data` is not JSON.
        """
        if level not in LOG_LEVELS:
            rule = "there is no log level {level!r}: it is one of {levels}"
            raise self._round.failed(DeveloperError(rule, level=level, levels=", ".join(LOG_LEVELS)))
        lowest = self._round.request.meta.get(META_LOG_LEVEL)
        # "Servers MUST NOT emit notifications/message for requests that do not include a logLevel"
        if lowest is None or LOG_LEVELS.index(level) < LOG_LEVELS.index(lowest):
            return
        try:
            params = {"level": level, "data": to_json(data)}
            if logger:
                params["logger"] = logger
            dumps(params)  # NaN, for example, must fail at the author's line
        except (TypeError, ValueError) as error:
            rule = "JSON cannot carry what log.{level} was given ({type})"
            raise self._round.failed(DeveloperError(rule, level=level, type=type(data).__name__)) from error
        self._round.notifications.append({"jsonrpc": "2.0", "method": "notifications/message", "params": params})

    def debug(self, data: object, *, logger: str | None = None) -> None:
        """Send a message of level debug."""
        self("debug", data, logger=logger)

    def info(self, data: object, *, logger: str | None = None) -> None:
        """Send a message of level info."""
        self("info", data, logger=logger)

    def notice(self, data: object, *, logger: str | None = None) -> None:
        """Send a message of level notice."""
        self("notice", data, logger=logger)

    def warning(self, data: object, *, logger: str | None = None) -> None:
        """Send a message of level warning."""
        self("warning", data, logger=logger)

    def error(self, data: object, *, logger: str | None = None) -> None:
        """Send a message of level error."""
        self("error", data, logger=logger)
