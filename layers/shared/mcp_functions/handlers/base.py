"""What every handler has in common: a name, a description, a signature, and a way to run one round."""

from __future__ import annotations

import re
import sys
from functools import update_wrapper
from types import CoroutineType, FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, ParamSpec, TypeAlias, TypeVar

from mcp_functions import parameters, signatures
from mcp_functions import scopes as words
from mcp_functions.errors import DeveloperError, Unanswered

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence
    from datetime import timedelta

    from mcp_functions.headers import Declared
    from mcp_functions.rounds import Round
    from mcp_functions.schema import Icon
    from mcp_functions.signatures import Signature

P = ParamSpec("P")
R = TypeVar("R")

# "Names SHOULD be between 1 and 128 characters … A-Z, a-z, 0-9, underscore, hyphen and dot": a header carries them
NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")


PLAIN = frozenset({str, int, float, bool, type(None), dict, list})  # neither a coroutine nor the end of a round

Mode: TypeAlias = Literal["replay", "reject"]
MODES = ("replay", "reject")

# "_meta" keys: an optional prefix of dotted labels, and a name; prefixes whose second label is MCP's own are reserved
LABEL = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
META_KEY = rf"(?:{LABEL}(?:\.{LABEL})*/)?(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?"
RESERVED = ("modelcontextprotocol", "mcp")


class Handler(Generic[P, R]):
    """One function that a client can call, and what the client is told about it.

    Attributes:
        name: what the client calls it.
        asks: whether it can end a round with a question, so that its Lambda must be able to seal.
        logs: whether it can send log messages, so that the capability is advertised.
        alone: whether it can do nothing but return, so that it needs to know nothing of its round.
        answer_within: seconds a person may take for one answer.
        max_sheds: rounds in a row that may end without a question, because the time was up.
        scopes: all of which a caller's access token must grant.
        task: what makes a call a task; only tools have it.
        single_use: whether each round of a conversation runs once, and what who asks again is told; None: no promise.
        keeps: whether its Lambda needs the table.

    """

    kind: ClassVar[str]
    repeated: Declared = {}  # noqa: RUF012 - a tool's arguments that clients repeat in headers; never changed
    task: object = None

    def __init__(  # noqa: PLR0913 - each is a field of the specification's description
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[Icon] | None = None,
        meta: Mapping[str, Any] | None = None,
        camel_case: bool = False,
        answer_within: int | timedelta = 600,
        max_sheds: int = 2,
        scopes: Sequence[str] = (),
        single_use: Mode | None = None,
    ) -> None:
        """Read the function's signature and docstring; nothing is called.

        Raises:
            TypeError: the signature breaks the contract; the message says where and how to mend it.

        """
        _check_function(function)
        update_wrapper(self, function)
        self.function = function
        self.name = name or function.__name__
        self.description = description or parameters.docstring(function)
        self.camel_case = camel_case
        self.answer_within = answer_within if isinstance(answer_within, int) else int(answer_within.total_seconds())
        self.max_sheds = max_sheds
        self.scopes: Sequence[str] = scopes if isinstance(scopes, str) else tuple(scopes)
        self.single_use = single_use
        self._described = {
            "title": title,
            "icons": list(icons) if icons else None,
            "_meta": dict(meta) if meta else None,
        }
        self._meta = dict(meta or {})
        with signatures.where(function):
            self._check_options()
            self._signature = signatures.read(function, camel_case=camel_case)
            self._read_signature(self._signature)
            self._check_single_use()
        self.asks = self._signature.asks
        self.alone = not (self._signature.capabilities or self._signature.declared or self.task)
        self.keeps = bool(single_use or self.task)
        self.logs = self._signature.logs

    def _check_options(self) -> None:
        if not NAME.fullmatch(self.name):
            message = f"the name {self.name!r} must be 1 to 128 of A-Z a-z 0-9 _ - ."
            raise TypeError(message)
        if wrong := [key for key in self._meta if not _may_be_meta(key)]:
            message = f"_meta key {wrong[0]!r}: letters, digits, . _ - and a prefix/ that is not reserved for MCP"
            raise TypeError(message)
        if self.answer_within < 1 or self.max_sheds < 0:
            message = "answer_within is a timedelta or seconds, 1 or more; max_sheds is 0 or more"
            raise TypeError(message)
        if isinstance(self.scopes, str) or not all(words.TOKEN.fullmatch(scope) for scope in self.scopes):
            message = 'scopes is a list of words without blanks or quotes: scopes=["work:write"]'
            raise TypeError(message)

    def _check_single_use(self) -> None:
        if self.single_use is None:
            return
        if self.single_use not in MODES:
            message = f'single_use is "replay" or "reject", not {self.single_use!r}'
        elif self.kind != "tool":
            message = f"single_use is of tools: a {self.kind} is read, and may be read again"
        elif not self._signature.asks:
            message = "single_use is of conversations, and this one has a single round: take elicit or step after *"
        elif not self.max_sheds:
            message = "single_use needs max_sheds=1 or more: a first round that reaches a step ends before it"
        else:
            return
        raise TypeError(message)

    def _read_signature(self, signature: Signature) -> None:
        raise NotImplementedError

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the author's function directly, as a unit test does."""
        return self.function(*args, **kwargs)

    @property
    def key(self) -> str:
        """What a request names it by."""
        return self.name

    def matches(self, key: str) -> dict[str, str] | None:
        """Read the variables out of what a request names; None if it names another handler."""
        return {} if key == self.key else None

    def call(self, params: Mapping[str, Any], round_: Round | None) -> dict[str, Any]:
        """Run one round of a request; a handler that is `alone` needs none."""
        raise NotImplementedError

    def failed(self, reason: str) -> dict[str, Any]:
        """Say that the request cannot be completed.

        Raises:
            Unanswered: there is no result that could say so.

        """
        raise Unanswered(reason)

    def describe(self) -> dict[str, Any]:
        """Write its entry in the list of its kind."""
        fields = {**self._described, "description": self.description, **self._fields()}
        return {"name": self.name, **{key: value for key, value in fields.items() if value is not None}}

    def _fields(self) -> dict[str, Any]:
        return {}

    def _run(self, arguments: Mapping[str, Any], round_: Round | None) -> Any:  # noqa: ANN401 - what the function returns
        if self.alone or round_ is None:
            value: Any = self.function(**arguments)  # type: ignore[call-arg]  # read above
        else:
            answers = self._signature.ask(arguments, round_, camel_case=self.camel_case)
            made = self._signature.make(round_)
            value = self.function(**arguments, **answers, **made)  # type: ignore[arg-type, call-arg]  # read above
        if type(value) in PLAIN:
            return value
        if isinstance(value, CoroutineType):
            value = _awaited(value, round_)
        if _ends_round(value):
            if not self.asks or round_ is None:
                message = f"{self.name} returned an InputRequiredResult; to ask, it takes an InputResponses after *"
                raise DeveloperError(message)
            round_.require(value)
        return value


def _may_be_meta(key: str) -> bool:
    labels = key.rpartition("/")[0].split(".")
    return bool(key and re.fullmatch(META_KEY, key)) and not (len(labels) > 1 and labels[1] in RESERVED)


def _awaited(value: Coroutine[Any, Any, Any], round_: Round | None) -> Any:  # noqa: ANN401 - what the function returns
    import asyncio  # noqa: PLC0415 - a function written with def never pays for it

    from mcp_functions.steps import to_its_end  # noqa: PLC0415

    return asyncio.run(to_its_end(value, round_) if round_ else value)


def _ends_round(value: object) -> bool:
    low_level = sys.modules.get("mcp_functions.input_requests")  # who returns one has imported it
    return low_level is not None and isinstance(value, low_level.InputRequiredResult)


def _check_function(function: object) -> None:
    if not isinstance(function, FunctionType):
        message = f"{function!r}: a handler is a function, written with def"
        raise TypeError(message)
