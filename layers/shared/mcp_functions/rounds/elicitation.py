"""Questions to the user: forms to fill in, and pages to open (client/elicitation).

    seat = elicit("seat", "Which seat?", Seat)      a form with the fields of a dataclass `Seat`
    elicit.url("login", "Sign in", "https://…")     a page

A call that asks takes several requests. At a question without an answer, an exception ends the author's function, and
the client gets the question. The client repeats its request with a response, and the function runs again from its first
line. Now the same call returns the answer (`Round.ask`). The response has the user's action, and what the user filled
in:

    {"action": "accept", "content": {"row": 7}}     `elicit` returns Seat(row=7); `elicit.url` returns None
    {"action": "accept", "content": {"row": "x"}}   the user is asked again (`InvalidAnswer`)
    {"action": "decline"}                           `elicit` raises `Declined`
    {"action": "cancel"}                            `elicit` raises `Cancelled`
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, overload

from mcp_functions.protocol.errors import DeveloperError, NotAnswered
from mcp_functions.rounds.asking import Answer_co, InputRequest, ask, ask_together
from mcp_functions.rounds.capabilities import Capability
from mcp_functions.rounds.input_requests import FORMS, URLS, is_declared
from mcp_functions.rounds.questions import WireQuestion
from mcp_functions.schemas import forms
from mcp_functions.schemas.forms import InvalidAnswer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import TypeForm

    from mcp_functions.protocol.wire_types import JSONObject

Answer = TypeVar("Answer")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")


class Declined(NotAnswered):
    """The user declined a question."""

    text = "The user declined to answer"


class Cancelled(NotAnswered):
    """The user closed a question without an answer."""

    text = "The user dismissed without answering"


class Elicit(Capability):
    """Asks the user: `seat = elicit("seat", "Where would you like to sit?", Literal["window", "aisle"])`."""

    needs_state = True  # an unanswered question ends the round
    asks = True

    def __call__(self, key: str, message: str, form: TypeForm[Answer]) -> Answer:
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
        return ask(self._round, Question(message, form, key))

    def outcome(self, key: str, message: str, form: TypeForm[Answer]) -> Answer | Declined | Cancelled:
        """Ask, and return the answer, Declined or Cancelled, for a `match` statement."""
        try:
            return self(key, message, form)
        except (Declined, Cancelled) as outcome:
            return outcome

    @overload
    def together(self, a: InputRequest[A], b: InputRequest[B], /) -> tuple[A, B]: ...
    @overload
    def together(self, a: InputRequest[A], b: InputRequest[B], c: InputRequest[C], /) -> tuple[A, B, C]: ...
    @overload
    def together(
        self, a: InputRequest[A], b: InputRequest[B], c: InputRequest[C], d: InputRequest[D], /
    ) -> tuple[A, B, C, D]: ...
    @overload
    def together(self, *questions: InputRequest[Any]) -> tuple[Any, ...]: ...
    def together(self, *questions: InputRequest[Any]) -> tuple[Any, ...]:
        """Ask several things in one round, each with a key: `where, when = elicit.together(Question(…), Question(…))`.

        Raises:
            NotAnswered: every question has a response, and the user declined or closed one of them.
            DeveloperError: a question has no key.
        """
        if not all(question.key for question in questions):
            self._round.fail('a question of elicit.together needs a key: Question("Where to?", City, key="where")')
        return tuple(ask_together(self._round, *questions))

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
        ask(self._round, PageQuestion(message, url, key))

    @property
    def possible(self) -> bool:
        """Whether this user can be asked: by the client, or in a form of its host. If not, a question ends the call."""
        return self._round.options.has_app or is_declared(self._round.request.capabilities, FORMS)

    @property
    def url_possible(self) -> bool:
        """Whether this user can be asked to open pages."""
        return self._round.options.has_app or is_declared(self._round.request.capabilities, URLS)


class Question(InputRequest[Answer_co]):
    """A question that the user answers in a form: `Question("Where to?", City)` (client/elicitation, "Form Mode").

    With a key it is for `elicit.together(Question("Where to?", City, key="where"), …)`; without one it is for
    `InputRequiredResult({"where": Question("Where to?", City)})`.
    """

    def __init__(self, message: str, form: TypeForm[Answer_co], key: str = "") -> None:
        """Take the text for the user, the type of the answer and the key, as `Elicit.__call__` does.

        Raises:
            DeveloperError: the key comes first.
        """
        if isinstance(form, str) and not isinstance(key, str):
            rule = 'a Question has the message first, and the key last: Question("Where to?", City, key="where")'
            raise DeveloperError(rule)
        super().__init__(key)
        self.message = message
        self.form = form

    @staticmethod
    def url(message: str, url: str, key: str = "") -> Question[None]:
        """Ask the user to open a page. An accept is consent to open it, not completion of what happens there."""
        return PageQuestion(message, url, key)

    def formatted(self, arguments: Mapping[str, Any]) -> Question[Answer_co]:
        """Return the question with arguments in place of `{name}` in its message."""
        return Question(self.message.format(**arguments), self.form, self.key)

    def to_wire_question(self, key: str, *, camel_case: bool) -> WireQuestion:
        """Return an ElicitRequest as JSON, with the function that reads its ElicitResult."""
        form = forms.read_form(self.form, key, camel_case=camel_case)

        def read(response: JSONObject) -> object:
            _check_accepted(key, self.message, response)
            return form.accept(response.get("content"))

        params = {"mode": "form", "message": self.message, "requestedSchema": form.schema()}
        return WireQuestion(key, {"method": "elicitation/create", "params": params}, read)


class PageQuestion(Question[None]):
    """Asks the user to open a page (client/elicitation, "URL Mode"). Its answer is None: a page has no content."""

    def __init__(self, message: str, address: str, key: str) -> None:
        """Take the reason why the user should open the page, its address, and the key."""
        super().__init__(message, type(None), key)
        self.address = address

    def to_wire_question(self, key: str, **_form_options: bool) -> WireQuestion:
        """Return an ElicitRequest as JSON, with the function that reads its ElicitResult.

        A user who agrees to open the page may not finish there. So a function asks in a loop, `while not
        connected(user): elicit.url(…)`, and its second call must ask the user again (`read_once`).
        """
        _check_url(self.address)

        def read(response: JSONObject) -> None:
            _check_accepted(key, self.message, response)

        params = {"mode": "url", "message": self.message, "url": self.address}
        return WireQuestion(key, {"method": "elicitation/create", "params": params}, read, read_once=True)


ElicitRequest = Question  # the specification's name


def _check_url(url: str) -> None:
    """Refuse an address that a client should not open: it could be relative, or readable on the network."""
    # only for pages
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    is_local = parts.scheme == "http" and parts.hostname in ("localhost", "127.0.0.1", "::1")
    has_blank = any(character.isspace() for character in url)
    if not parts.hostname or has_blank or not (parts.scheme == "https" or is_local):
        rule = "an elicitation in URL mode needs an absolute https:// URL (http:// on this machine alone)"
        raise DeveloperError(rule)


def _check_accepted(key: str, message: str, response: JSONObject) -> None:
    """Check that the user accepted.

    Raises:
        Declined, Cancelled: the user did not; the author's function gets the exception.
        InvalidAnswer: the response has no known action, so the user is asked again.
    """
    action = response.get("action")
    if action == "accept":
        return
    if action == "decline":
        raise Declined(key, message)
    if action == "cancel":
        raise Cancelled(key, message)
    reason = "the answer was not accept, decline or cancel"
    raise InvalidAnswer(reason)
