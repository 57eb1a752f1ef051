"""A handler that runs a function of the author: what tools, prompts and resources have in common.

    @tool
    def add(a: int, b: int) -> int: ...

`Tool(add)` reads the signature once. `describe` writes the entry for `tools/list`, with `write_entry`. `call` answers a
request:

    {"arguments": {"a": 2, "b": 3}}     the params of the request
    {"a": 2, "b": 3}                    the kind of handler reads the arguments of the function
    5                                   `run` calls the function, with the values of its parameters after `*`
    {"structuredContent": 5, …}         the kind of handler writes the returned value as a result
"""

from __future__ import annotations

import re
from functools import update_wrapper
from types import CoroutineType
from typing import TYPE_CHECKING, Any, cast

from mcp_functions.handlers import signatures
from mcp_functions.handlers.base import Handler, P, R, to_seconds
from mcp_functions.handlers.return_types import is_input_required
from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.protocol.scopes import SCOPE
from mcp_functions.schemas.parameters import docstring

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from datetime import timedelta
    from typing import TypedDict

    from mcp_functions.protocol.wire_types import Icon, ListEntry, Model
    from mcp_functions.rounds.round import Round

    class HandlerOptions(TypedDict, total=False):
        """The options that every decorator takes, for type checkers; the constructor has their defaults."""

        name: str | None
        title: str | None
        description: str | None
        icons: Sequence[Icon | Model] | None
        meta: Mapping[str, Any] | None
        tags: Collection[str]
        camel_case: bool
        answer_within: int | timedelta
        max_sheds: int
        scopes: Sequence[str]
        hide_without_scopes: bool


class FunctionHandler(Handler[P, R]):
    """The base class of tools, prompts and resources, which define `describe` and `call`."""

    asks = False  # whether the function may ask its user

    def __init__(  # noqa: PLR0913 - each is an option of the decorators
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[Icon | Model] | None = None,
        meta: Mapping[str, Any] | None = None,
        tags: Collection[str] = (),
        camel_case: bool = False,
        answer_within: int | timedelta = 600,
        max_sheds: int = 2,
        scopes: Sequence[str] = (),
        hide_without_scopes: bool = False,
    ) -> None:
        """Read a function and its options, as `decorators.tool` describes them; TypeError if one is wrong."""
        plain: Any = signatures.to_plain_function(function)
        update_wrapper(self, plain)  # Python's own tools find the name and the docstring
        self.function: Callable[P, R] = plain
        self.name = self.key = name or plain.__name__
        self.description = description or docstring(plain)
        self.camel_case = camel_case
        self.answer_within = to_seconds(answer_within)
        self.max_sheds = max_sheds
        self.scopes = tuple(scopes)
        self.hide_without_scopes = hide_without_scopes
        self._entry: dict[str, Any] = {"name": self.name, "title": title}
        self._entry["icons"], self._entry["_meta"] = _read_icons_and_meta(icons, meta, tags)
        self._entry["description"] = self.description
        self.server_description = {}
        self._check_options(scopes)
        self._signature = signatures.read(plain, camel_case=camel_case)
        injection = self._signature.injection
        if injection:  # the function has parameters after `*`
            self.asks = injection.asks
            self.needs_state = injection.needs_state  # true also for steps without a question
            self.logs = injection.logs

    def _check_options(self, scopes: object) -> None:
        """Check the options. `self.scopes` does not show whether `scopes` was a text: `tuple` accepts that, too."""
        # server/tools, "Tool names": 1 to 128 of these characters. The header `Mcp-Name` repeats the name.
        if not re.fullmatch(r"[A-Za-z0-9_.-]{1,128}", self.name):
            raise TypeError(f"the name {self.name!r} must be 1 to 128 of A-Z a-z 0-9 _ - .")
        for option in ("title", "description"):
            text = self._entry[option]
            if not isinstance(text, str | None):
                raise TypeError(f"title and description are text, and this {option} is {text!r}")
        if self.answer_within < 1:
            raise TypeError("answer_within is a timedelta or seconds, 1 or more")
        if self.max_sheds < 0:
            raise TypeError("max_sheds is a number of rounds, 0 or more")
        if isinstance(scopes, str) or not all(re.fullmatch(SCOPE, scope) for scope in self.scopes):
            raise TypeError('scopes is a list of words without blanks or quotes: scopes=["work:write"]')
        if not isinstance(self.hide_without_scopes, bool):
            raise TypeError("hide_without_scopes is True or False")
        if self.hide_without_scopes and not self.scopes:
            raise TypeError("hide_without_scopes=True needs scopes=[…]")

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the author's function directly, as a unit test does; TypeError if a required argument is left out."""
        left_out = [each for each in self._signature.client_parameters[len(args) :] if each.name not in kwargs]
        for parameter in left_out:  # Python sees a default where an author wrote `= Field(…)`
            if parameter.required:
                raise TypeError(f"missing required argument: {parameter.name!r}")
        defaults = {each.name: each.make_default() for each in left_out if each.make_default}
        function: Callable[..., R] = self.function
        return function(*args, **kwargs, **defaults)

    @property
    def needs_round(self) -> bool:
        """Whether the function has parameters after `*`, tasks or a hook."""
        return bool(self._signature.injection or self.task or self.hook)

    def write_entry(self, **fields: object) -> ListEntry:
        """Write its entry in a list, with the fields of its kind. A field that is None is left out."""
        entry = {**self._entry, **fields}
        return cast("ListEntry", {field: content for field, content in entry.items() if content is not None})

    def run(self, arguments: Mapping[str, Any], round_: Round | None) -> object:
        """Run the author's function, inside the hook if there is one, and return its value.

        The round is for the parameters after `*`; None without such parameters.

        Raises:
            InputRequired: the function asked, and the round ends with its questions.
            DeveloperError: the hook returned no context manager, or swallowed an exception.
        """
        if self.hook is None or round_ is None:  # with a hook there is a round (`needs_round`)
            return self._run_function(arguments, round_)
        from mcp_functions.handlers import hooks

        with hooks.call_hook(self.hook, self.kind, self.name, arguments, round_):
            return self._run_function(arguments, round_)
        # The function raised an exception, and `__exit__` of the hook returned True.
        raise DeveloperError(
            "the hook of serve(around=…) swallowed an exception; it may raise another one in its place"
        )

    def _run_function(self, arguments: Mapping[str, Any], round_: Round | None) -> object:
        function: Callable[..., object] = self.function
        injection = self._signature.injection
        if injection and round_:
            arguments = injection.inject(arguments, round_)
        returned = function(**arguments)
        if isinstance(returned, CoroutineType):  # the function is async
            from mcp_functions.handlers import event_loop

            # The results of steps that have begun are recorded for the next round.
            returned = event_loop.run(returned, before_end=round_.wait_for_steps if round_ else None)
        if is_input_required(returned):
            if not self.needs_state or round_ is None:
                raise DeveloperError(
                    "{name} returned an InputRequiredResult; to ask, it takes an InputResponses after *", name=self.name
                )
            raise returned.end_round(round_)
        return returned


def _read_icons_and_meta(icons: object, meta: object, tags: Collection[str]) -> tuple[object, object]:
    """Read the options for the `icons` and the `_meta` of an entry; tags are a member of `_meta`."""
    if icons is None and meta is None and not tags:
        return None, None
    from mcp_functions.protocol import entry_meta, hints

    return hints.read_icons(icons), entry_meta.read_meta(meta, tags)
