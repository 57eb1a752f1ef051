"""Questions inline: to the user (`Elicit`), to the client's model (`Sample`), to the client (`ListRoots`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

from mcp_functions.protocol.errors import NotAnswered
from mcp_functions.rounds import input_requests
from mcp_functions.rounds.capabilities import Capability
from mcp_functions.rounds.questions import WireQuestion
from mcp_functions.schemas import forms
from mcp_functions.schemas.forms import InvalidAnswer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from typing_extensions import TypeForm

    from mcp_functions.protocol.wire_types import JSONObject, JSONValue, Model
    from mcp_functions.rounds.low_level import CreateMessageRequest
    from mcp_functions.rounds.round import Round

Form = TypeVar("Form")
Answer_co = TypeVar("Answer_co", covariant=True)
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")


class Declined(NotAnswered):
    """The user declined a question."""

    did = "declined to answer"


class Cancelled(NotAnswered):
    """The user closed a question without an answer."""

    did = "dismissed without answering"


class AnyQuestion(Generic[Answer_co]):
    """Anything that `elicit.together` can ask; the type in brackets is that of the answer."""

    def to_wire(self, *, camel_case: bool) -> WireQuestion:
        """Return the question for the client."""
        raise NotImplementedError


class Question(AnyQuestion[Form]):
    """One form among several: `elicit.together(Question("where", "Where to?", City), …)`."""

    def __init__(self, key: str, message: str, form: TypeForm[Form]) -> None:
        """Take the key in `inputRequests`, the text for the user, and the type of the answer."""
        self.key = key
        self.message = message
        self.form = form

    def formatted(self, arguments: Mapping[str, Any]) -> Question[Form]:
        """Return the question with arguments in place of `{name}` in its message."""
        return Question(self.key, self.message.format(**arguments), self.form)

    def to_wire(self, *, camel_case: bool) -> WireQuestion:
        """Return the question for the client."""
        form = forms.read_form(self.form, self.key, camel_case=camel_case)

        def read(response: Mapping[str, Any]) -> object:
            _check_accepted(self.key, self.message, response)
            return form.accept(response.get("content"))

        return WireQuestion(self.key, input_requests.form_request(self.message, form), read)


class SampleQuestion(AnyQuestion["dict[str, Any]"]):
    """One question to the client's model among several."""

    def __init__(self, key: str, request: CreateMessageRequest) -> None:
        """Take the key in `inputRequests`, and the request."""
        self.key = key
        self.request = request

    def to_wire(self, *, camel_case: bool) -> WireQuestion:  # noqa: ARG002 - there are no forms in it
        """Return the question for the client."""
        return WireQuestion(self.key, self.request.wire(), _read_message)


class RootsQuestion(AnyQuestion["list[dict[str, Any]]"]):
    """The question for the client's roots among several."""

    def __init__(self, key: str = "roots") -> None:
        """Take the key in `inputRequests`."""
        self.key = key

    def to_wire(self, *, camel_case: bool) -> WireQuestion:  # noqa: ARG002 - there are no forms in it
        """Return the question for the client."""
        return WireQuestion(self.key, input_requests.roots_request(), _read_roots)


class Elicit(Capability):
    """Asks the user: `seat = elicit("seat", "Where would you like to sit?", Literal["window", "aisle"])`."""

    needs_state = True
    asks = True

    def __call__(self, key: str, message: str, form: TypeForm[Form]) -> Form:
        """Return the user's answer as a value of the form's type, in this round or a later one.

        Args:
            key: the question's key in `inputRequests`. Keep it across deployments, so that answers stay valid.
            message: the text for the user. Keep it the same in every round, because an answer belongs to this text.
            form: a dataclass, a TypedDict or a pydantic model with a field for each thing to fill in; or the type of
                one value: `str`, `bool`, `int`, `float`, `date`, `datetime`, a Literal or Enum of strings, a list of
                such choices.

        Raises:
            Declined: the user declined.
            Cancelled: the user closed the question. (Both are NotAnswered.)
        """
        (answer,) = self._round.ask(self._asking(Question(key, message, form)))
        return cast("Form", answer)

    def outcome(self, key: str, message: str, form: TypeForm[Form]) -> Form | Declined | Cancelled:
        """Ask, and return the answer, Declined or Cancelled, for a `match` statement."""
        try:
            return self(key, message, form)
        except (Declined, Cancelled) as outcome:
            return outcome

    @overload
    def together(self, a: AnyQuestion[A], b: AnyQuestion[B], /) -> tuple[A, B]: ...
    @overload
    def together(self, a: AnyQuestion[A], b: AnyQuestion[B], c: AnyQuestion[C], /) -> tuple[A, B, C]: ...
    @overload
    def together(
        self, a: AnyQuestion[A], b: AnyQuestion[B], c: AnyQuestion[C], d: AnyQuestion[D], /
    ) -> tuple[A, B, C, D]: ...
    @overload
    def together(self, *questions: AnyQuestion[Any]) -> tuple[Any, ...]: ...
    def together(self, *questions: AnyQuestion[Any]) -> tuple[Any, ...]:
        """Ask several things in one round: `where, when = elicit.together(Question(…), Question(…))`.

        Raises:
            NotAnswered: the user declined or closed one of them. It is raised when every question has an answer.
        """
        return tuple(self._round.ask(*map(self._asking, questions)))

    def url(self, key: str, message: str, url: str) -> None:
        """Ask the user to open a page; return when the user agreed to open it.

        The user may agree and not finish the page, so check its effect in every round:
        `while not connected(user): elicit.url(…)` asks until the check succeeds.

        Args:
            key: the question's key in `inputRequests`.
            message: the reason why the user should open the page.
            url: an absolute https:// URL, without secrets or personal data.

        Raises:
            NotAnswered: the user declined, or closed the question.
        """

        def read(response: Mapping[str, Any]) -> None:
            _check_accepted(key, message, response)

        with self._round.noting_errors():
            request = input_requests.url_request(message, url)
        self._round.ask(WireQuestion(key, request, read, read_once=True))

    @property
    def possible(self) -> bool:
        """Whether this user can be asked: by the client, or in a form of its host. If not, a question ends the call."""
        return self._round.request.has_app or _possible(
            self._round, {"method": "elicitation/create", "params": {"mode": "form"}}
        )

    @property
    def url_possible(self) -> bool:
        """Whether this user can be asked to open pages."""
        return self._round.request.has_app or _possible(
            self._round, {"method": "elicitation/create", "params": {"mode": "url"}}
        )

    def _asking(self, question: AnyQuestion[Any]) -> WireQuestion:
        with self._round.noting_errors():
            return question.to_wire(camel_case=self._round.request.camel_case)


class Sample(Capability):
    """Asks the client's model: `message = sample("key", "Summarise …", max_tokens=200)`."""

    needs_state = True

    def __call__(
        self, key: str, messages: str | Sequence[JSONObject | Model], *, max_tokens: int, **options: object
    ) -> JSONObject:
        """Return the model's message (CreateMessageResult), in this round or a later one.

        Args:
            key: the request's key in `inputRequests`.
            messages: the conversation, as dicts or as SamplingMessage objects of the official SDK; a string is one
                message of the user.
            max_tokens: the limit for the answer.
            options: the further params by their wire names: `systemPrompt`, `temperature`, `tools`, `toolChoice`, …
        """
        request = input_requests.sampling_request(messages, max_tokens, options)
        (message,) = self._round.ask(WireQuestion(key, request, _read_message))
        return cast("JSONObject", message)

    @property
    def possible(self) -> bool:
        """Whether this client has a model to ask (without tools)."""
        return _possible(self._round, {"method": "sampling/createMessage", "params": {}})


class ListRoots(Capability):
    """Asks the client for its roots: `for root in list_roots(): …`."""

    needs_state = True

    def __call__(self, key: str = "roots") -> list[JSONObject]:
        """Return the client's roots, each with a `uri`, in this round or a later one; validate paths within them."""
        (answer,) = self._round.ask(RootsQuestion(key).to_wire(camel_case=False))
        return cast("list[JSONObject]", answer)

    @property
    def possible(self) -> bool:
        """Whether this client has roots to list."""
        return _possible(self._round, {"method": "roots/list"})


def _possible(round_: Round, request: JSONValue) -> bool:
    return not input_requests.missing_capabilities([request], round_.request.capabilities)


def _check_accepted(key: str, message: str, response: Mapping[str, Any]) -> None:
    action = response.get("action")
    if action == "accept":
        return
    if action == "decline":
        raise Declined(key, message)
    if action == "cancel":
        raise Cancelled(key, message)
    reason = "the answer was not accept, decline or cancel"
    raise InvalidAnswer(reason)


def _read_message(response: JSONObject) -> JSONObject:
    match response:
        case {"role": "user" | "assistant", "content": dict() | list(), "model": str()}:
            return response
    reason = "the answer was not a message"
    raise InvalidAnswer(reason)


def _read_roots(response: JSONObject) -> list[JSONObject]:
    roots = response.get("roots")
    if isinstance(roots, list) and all(isinstance(root, dict) and isinstance(root.get("uri"), str) for root in roots):
        return roots
    reason = "the answer was not a list of roots"
    raise InvalidAnswer(reason)
