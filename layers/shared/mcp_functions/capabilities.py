"""What a function may do, handed to it after `*`: ask the user, the client's model or the client; keep a state; report.

A parameter's type is the capability. Those with `asks` can end a round, so their Lambda needs the key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from mcp_functions import forms
from mcp_functions.errors import DeveloperError
from mcp_functions.forms import InvalidAnswer
from mcp_functions.input_requests import CreateMessageRequest, ElicitRequest, ListRootsRequest
from mcp_functions.names import LOG_LEVELS, META_LOG_LEVEL

if TYPE_CHECKING:
    from typing import Self

    from pydantic import BaseModel

    from mcp_functions.rounds import Round
    from mcp_functions.schema import JSONObject

    Form = TypeVar("Form", bound=BaseModel)

State = TypeVar("State", bound="BaseModel")


class Declined(Exception):
    """The user said no to a question. Uncaught, it becomes a tool error that the model can act on."""

    did = "declined to answer"

    def __init__(self, key: str, message: str) -> None:
        """Take the question's key and the message the user saw."""
        super().__init__(f"The user {self.did}: {message}")
        self.key = key


class Cancelled(Declined):
    """The user closed a question without choosing; `except Declined` catches it too."""

    did = "dismissed without answering"


class Capability:
    """What every capability has: it is made for one round."""

    asks: ClassVar[bool] = False
    low_level: ClassVar[bool] = False

    def __init__(self, round_: Round) -> None:
        """Act within one round."""
        self._round = round_

    @classmethod
    def of(cls, round_: Round, _args: tuple[Any, ...]) -> Self:
        """Make it for one round; `_args` are what stands in its brackets in the signature."""
        return cls(round_)


class Elicit(Capability):
    """Asks the user: `answer = elicit("key", "What do you want to know?", Model)`."""

    asks = True

    def __call__(self, key: str, message: str, form: type[Form]) -> Form:
        """Return the user's answer as the model, in this round or a later one.

        Args:
            key: names the question in `inputRequests`; keep it across deployments, and it keeps its answers.
            message: what the user reads. It must say the same in every round: an answer belongs to these words.
            form: a flat pydantic model.

        Raises:
            Declined: the user said no (Cancelled: closed the question).

        """
        camel_case = self._round.camel_case

        def read(response: Mapping[str, Any]) -> Form:
            _check_accepted(key, message, response)
            return forms.accept(form, response.get("content"), camel_case=camel_case)

        return self._round.ask(key, ElicitRequest(message, form).wire(camel_case=camel_case), read)

    def url(self, key: str, message: str, url: str) -> None:
        """Ask the user to open a page; return when the user agreed to open it.

        Agreeing is not finishing, so the answer is used up by reading it: `while not connected(user): elicit.url(…)`
        asks until your own check says that what happens on the page has happened.

        Args:
            key: names the question in `inputRequests`.
            message: why the user should open it.
            url: absolute https:// URL, without anything secret or personal in it.

        Raises:
            Declined: the user said no (Cancelled: closed the question).

        """

        def read(response: Mapping[str, Any]) -> None:
            _check_accepted(key, message, response)

        self._round.ask(key, ElicitRequest.url(message, url).wire(), read, keep=False)


def _check_accepted(key: str, message: str, response: Mapping[str, Any]) -> None:
    match response.get("action"):
        case "accept":
            return
        case "decline":
            raise Declined(key, message)
        case "cancel":
            raise Cancelled(key, message)
    reason = "the answer was not accept, decline or cancel"
    raise InvalidAnswer(reason)


class Sample(Capability):
    """Asks the client's model: `said = sample("key", "Summarise …", max_tokens=200)`."""

    asks = True

    def __call__(
        self,
        key: str,
        messages: str | Sequence[JSONObject],
        *,
        max_tokens: int,
        **options: Any,  # noqa: ANN401 - JSON values
    ) -> JSONObject:
        """Return the model's message (CreateMessageResult), in this round or a later one.

        Args:
            key: names the request in `inputRequests`.
            messages: the conversation, as SamplingMessage objects; a string is one message of the user.
            max_tokens: the most that the answer may have.
            options: further params by their wire names: `systemPrompt`, `temperature`, `tools`, `toolChoice`, …

        """
        return self._round.ask(key, CreateMessageRequest(messages, max_tokens, options).wire(), _read_message)


def _read_message(response: JSONObject) -> JSONObject:
    match response:
        case {"role": "user" | "assistant", "content": dict() | list(), "model": str()}:
            return response
    reason = "the answer was not a message"
    raise InvalidAnswer(reason)


class ListRoots(Capability):
    """Asks the client for its roots: `for root in list_roots(): …`."""

    asks = True

    def __call__(self, key: str = "roots") -> list[JSONObject]:
        """Return the client's roots, each with a `uri`, in this round or a later one; validate paths within them."""
        return self._round.ask(key, ListRootsRequest().wire(), _read_roots)


def _read_roots(response: JSONObject) -> list[JSONObject]:
    match response:
        case {"roots": list(roots)} if all(
            isinstance(root, dict) and isinstance(root.get("uri"), str) for root in roots
        ):
            return roots
    reason = "the answer was not a list of roots"
    raise InvalidAnswer(reason)


class InputResponses(Capability, Mapping[str, "JSONObject"]):
    """The low level: the client's answers by key, as far as the sealed state proves that they were asked for.

    Attributes:
        unproven: what the client sent beyond that. It never answers a question of this server; treat it as an argument.

    """

    asks = True
    low_level = True

    def __getitem__(self, key: str) -> JSONObject:
        """Return one answer as it came: ElicitResult, CreateMessageResult or ListRootsResult."""
        answer: JSONObject = self._round.proven[key]
        return answer

    def __iter__(self) -> Iterator[str]:
        """Iterate over the keys that have an answer."""
        return iter(self._round.proven)

    def __len__(self) -> int:
        """Count the answers."""
        return len(self._round.proven)

    @property
    def unproven(self) -> dict[str, JSONObject]:
        """Answers to nothing that this server can prove it asked."""
        return self._round.unproven

    def accepted(self, key: str, form: type[Form]) -> Form | None:
        """Return an accepted form; None if it is missing, was declined or cancelled, or does not fit."""
        answer = self.get(key, {})
        if answer.get("action") != "accept":
            return None
        try:
            return forms.accept(form, answer.get("content"), camel_case=self._round.camel_case)
        except InvalidAnswer:
            return None


class RequestState(Capability, Generic[State]):
    """The low level: what this function kept in the last round, `request_state.value`; a new one in the first.

    Attributes:
        value: a model of the type in brackets. Return it in `InputRequiredResult(request_state=…)` to keep it.

    """

    asks = True
    low_level = True
    value: State

    @classmethod
    def of(cls, round_: Round, args: tuple[Any, ...]) -> Self:
        """Open the state of one round as the model in brackets."""
        made = cls(round_)
        (model,) = args
        made.value = _read_state(model, round_.state)
        return made


def _read_state(model: type[State], state: Mapping[str, Any] | None) -> State:
    try:
        return model.model_validate(state) if state is not None else model()
    except ValueError:
        return (
            model()
        )  # a state of another shape, from before or after a deployment: its answers count, the rest starts anew


class Progress(Capability):
    """Reports how far the work is: `progress(50, total=100)`."""

    def __init__(self, round_: Round) -> None:
        """Report within one round."""
        super().__init__(round_)
        self._last = float("-inf")

    def __call__(self, progress: float, *, total: float | None = None, message: str | None = None) -> None:
        """Tell the client, if it asked to be told (basic/patterns/progress).

        Args:
            progress: how far; "MUST increase with each notification", so a step back is not sent.
            total: how far it goes, if that is known.
            message: what is being done.

        """
        token = self._round.meta.get("progressToken")
        if token is None or progress <= self._last:
            return
        self._last = progress
        more = {"total": total, "message": message}
        params = {"progressToken": token, "progress": progress, **{k: v for k, v in more.items() if v is not None}}
        self._round.notifications.append({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})


class Log(Capability):
    """Sends log messages to the client that asked for them: `log.info("…")` (server/utilities/logging).

    "Log messages MUST NOT contain credentials or secrets"; they go to the client, not to CloudWatch.
    """

    def __call__(self, level: str, data: object, *, logger: str | None = None) -> None:
        """Send one message, if this request asked for its level.

        Args:
            level: debug, info, notice, warning, error, critical, alert or emergency.
            data: any JSON value.
            logger: who says it.

        Raises:
            DeveloperError: there is no such level.

        """
        if level not in LOG_LEVELS:
            message = f"there is no log level {level!r}: it is one of {', '.join(LOG_LEVELS)}"
            raise DeveloperError(message)
        wanted = self._round.meta.get(META_LOG_LEVEL)
        # "Servers MUST NOT emit notifications/message for requests that do not include a logLevel"
        if wanted is None or LOG_LEVELS.index(level) < LOG_LEVELS.index(wanted):
            return
        params = {"level": level, "data": data, **({"logger": logger} if logger else {})}
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
