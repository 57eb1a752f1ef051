"""Asking inline: the user (`Elicit`, `Ask`), the client's model (`Sample`), the client itself (`ListRoots`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar, overload

from mcp_functions.protocol.errors import DeveloperError, NotAnswered
from mcp_functions.rounds.capabilities import Capability
from mcp_functions.rounds.input_requests import (
    CreateMessageRequest,
    ElicitRequest,
    ListRootsRequest,
    form_request,
    missing,
)
from mcp_functions.rounds.round import Asking
from mcp_functions.schemas import forms
from mcp_functions.schemas.forms import InvalidAnswer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from typing_extensions import TypeForm

    from mcp_functions.protocol.foreign_types import Model
    from mcp_functions.protocol.wire_types import JSONObject
    from mcp_functions.rounds.round import Round

Form = TypeVar("Form")
Answer = TypeVar("Answer", covariant=True)  # noqa: PLC0105 - short where it is used
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")


class Declined(NotAnswered):
    """The user said no to a question."""

    did = "declined to answer"


class Cancelled(NotAnswered):
    """The user closed a question without choosing."""

    did = "dismissed without answering"


class Ask(NamedTuple):
    """Declares a question in the signature, after `*`: `how: Annotated[Resolution, Ask("How was it resolved?")]`.

    All that a signature declares is asked together, before the function runs; the model sees nothing of it. With
    `Annotated[Resolution | None, Ask(…)]` a user who declines gives None. `{name}` in the message is an argument.
    """

    message: str


class Questionable(Protocol[Answer]):
    """Anything that `elicit.together` can ask."""

    def asking(self, *, camel_case: bool) -> Asking:
        """Say what to ask, and how to read the response."""

    def answer(self) -> Answer:
        """Exist for type checkers alone: the type of the answer."""


class Question(NamedTuple, Generic[Form]):
    """One form among several: `elicit.together(Question("where", "Where to?", City), …)`."""

    key: str
    message: str
    form: TypeForm[Form]

    def asking(self, *, camel_case: bool) -> Asking:
        """Say what to ask, and how to read the response."""
        form = forms.read_form(self.form, self.key, camel_case=camel_case)

        def read(response: Mapping[str, Any]) -> Any:  # noqa: ANN401 - of the type that the form was made of
            _check_accepted(self.key, self.message, response)
            return form.accept(response.get("content"))

        return Asking(self.key, form_request(self.message, form), read)

    def answer(self) -> Form:
        """Exist for type checkers alone."""
        raise NotImplementedError


class SampleQuestion:
    """One question to the client's model among several."""

    def __init__(self, key: str, request: CreateMessageRequest) -> None:
        """Take the key in `inputRequests`, and the request."""
        self.key, self.request = key, request

    def asking(self, *, camel_case: bool) -> Asking:  # noqa: ARG002 - there are no forms in it
        """Say what to ask, and how to read the response."""
        return Asking(self.key, self.request.wire(), _read_message)

    def answer(self) -> dict[str, Any]:
        """Exist for type checkers alone."""
        raise NotImplementedError


class RootsQuestion:
    """The question for the client's roots among several."""

    def __init__(self, key: str = "roots") -> None:
        """Take the key in `inputRequests`."""
        self.key = key

    def asking(self, *, camel_case: bool) -> Asking:  # noqa: ARG002 - there are no forms in it
        """Say what to ask, and how to read the response."""
        return Asking(self.key, ListRootsRequest().wire(), _read_roots)

    def answer(self) -> list[dict[str, Any]]:
        """Exist for type checkers alone."""
        raise NotImplementedError


class Elicit(Capability):
    """Asks the user: `seat = elicit("seat", "Where would you like to sit?", Literal["window", "aisle"])`."""

    asks = True

    def __call__(self, key: str, message: str, form: TypeForm[Form]) -> Form:
        """Return the user's answer as a value of the form's type, in this round or a later one.

        Args:
            key: names the question in `inputRequests`; keep it across deployments, and it keeps its answers.
            message: what the user reads. It must say the same in every round: an answer belongs to these words.
            form: a dataclass, a TypedDict or a pydantic model with a field for each thing to fill in; or the type of
                one value: `str`, `bool`, `int`, `float`, `date`, `datetime`, a Literal or Enum of strings, a list of
                such choices.

        Raises:
            Declined: the user said no.
            Cancelled: the user closed the question. (Both are NotAnswered.)

        """
        (answer,) = self._round.ask(self._asking(Question(key, message, form)))
        accepted: Form = answer
        return accepted

    def outcome(self, key: str, message: str, form: TypeForm[Form]) -> Form | Declined | Cancelled:
        """Ask likewise, and return what the user did, to `match` on: the answer, or Declined, or Cancelled."""
        try:
            return self(key, message, form)
        except (Declined, Cancelled) as outcome:
            return outcome

    @overload
    def together(self, a: Questionable[A], b: Questionable[B], /) -> tuple[A, B]: ...
    @overload
    def together(self, a: Questionable[A], b: Questionable[B], c: Questionable[C], /) -> tuple[A, B, C]: ...
    @overload
    def together(
        self, a: Questionable[A], b: Questionable[B], c: Questionable[C], d: Questionable[D], /
    ) -> tuple[A, B, C, D]: ...
    @overload
    def together(self, *questions: Questionable[Any]) -> tuple[Any, ...]: ...
    def together(self, *questions: Questionable[Any]) -> tuple[Any, ...]:
        """Ask several things in one round: `where, when = elicit.together(Question(…), Question(…))`.

        Raises:
            NotAnswered: one was declined or closed; by then every one of them has its answer.

        """
        return tuple(self._round.ask(*map(self._asking, questions)))

    def url(self, key: str, message: str, url: str) -> None:
        """Ask the user to open a page; return when the user agreed to open it.

        Agreeing is not finishing, and what happens on the page is for your own check to see, in every round:
        `while not connected(user): elicit.url(…)` asks again for as long as it has not happened.

        Args:
            key: names the question in `inputRequests`.
            message: why the user should open it.
            url: absolute https:// URL, without anything secret or personal in it.

        Raises:
            NotAnswered: the user declined, or closed the question.

        """

        def read(response: Mapping[str, Any]) -> None:
            _check_accepted(key, message, response)

        try:
            request = ElicitRequest.url(message, url).wire()
        except DeveloperError as error:
            self._round.break_by(error)
        self._round.ask(Asking(key, request, read, once=True))

    @property
    def possible(self) -> bool:
        """Whether this client can show forms; asking one that cannot ends the call with an error that says so."""
        return _possible(self._round, {"method": "elicitation/create", "params": {"mode": "form"}})

    @property
    def url_possible(self) -> bool:
        """Whether this client can open pages."""
        return _possible(self._round, {"method": "elicitation/create", "params": {"mode": "url"}})

    def _asking(self, question: Questionable[Any]) -> Asking:
        try:
            return question.asking(camel_case=self._round.camel_case)
        except DeveloperError as error:
            self._round.break_by(error)


class Sample(Capability):
    """Asks the client's model: `said = sample("key", "Summarise …", max_tokens=200)`."""

    asks = True

    def __call__(
        self,
        key: str,
        messages: str | Sequence[JSONObject | Model],
        *,
        max_tokens: int,
        **options: Any,  # noqa: ANN401 - JSON values
    ) -> JSONObject:
        """Return the model's message (CreateMessageResult), in this round or a later one.

        Args:
            key: names the request in `inputRequests`.
            messages: the conversation, as SamplingMessage objects, dicts or the official SDK's; a string is
                one message of the user.
            max_tokens: the most that the answer may have.
            options: further params by their wire names: `systemPrompt`, `temperature`, `tools`, `toolChoice`, …

        """
        question = SampleQuestion(key, CreateMessageRequest(messages, max_tokens, options))
        (message,) = self._round.ask(question.asking(camel_case=False))
        said: JSONObject = message
        return said

    @property
    def possible(self) -> bool:
        """Whether this client has a model to ask (without tools)."""
        return _possible(self._round, {"method": "sampling/createMessage", "params": {}})


class ListRoots(Capability):
    """Asks the client for its roots: `for root in list_roots(): …`."""

    asks = True

    def __call__(self, key: str = "roots") -> list[JSONObject]:
        """Return the client's roots, each with a `uri`, in this round or a later one; validate paths within them."""
        (roots,) = self._round.ask(RootsQuestion(key).asking(camel_case=False))
        listed: list[JSONObject] = roots
        return listed

    @property
    def possible(self) -> bool:
        """Whether this client has roots to list."""
        return _possible(self._round, {"method": "roots/list"})


def _possible(round_: Round, request: Any) -> bool:  # noqa: ANN401 - as much of a request as says what it needs
    return not missing([request], round_.declared)


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
    match response:
        case {"roots": list(roots)} if all(isinstance(r, dict) and isinstance(r.get("uri"), str) for r in roots):
            return roots
    reason = "the answer was not a list of roots"
    raise InvalidAnswer(reason)
