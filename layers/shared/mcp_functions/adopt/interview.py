"""The questions of one call of an adopted tool, in their order.

A call that asks takes several rounds, each in another request. Each round runs the tool again from its first line, so
the tool asks its questions again from the first.

    round 1   asks question-1                  no answer is known: the round ends with question-1
    round 2   asks question-1, question-2      the first is answered from the record; the round ends with question-2

An adopted tool gives its questions no keys, so each question has its number as its key. The sealed state holds a
fingerprint of the words of each question, and an answer counts only for these words. If a round asks question-1 with
other words than the round before, the answers no longer fit, and the call ends.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NoReturn

from mcp_functions.observability.lines import log
from mcp_functions.protocol.errors import ToolError
from mcp_functions.rounds.input_requests import fingerprint
from mcp_functions.rounds.questions import WireQuestion

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.protocol.wire_types import JSONObject
    from mcp_functions.rounds.round import Round

KEY_PREFIX = "question-"  # the number of the question in the call follows
NOT_NAMED_MESSAGE = (
    "{name} asks its user in the middle of its work, so it would run again from its first line in every round. Its "
    "author accepts that with adopt(server, replay=[{name!r}])."
)
OTHER_TASK_MESSAGE = (
    "{name} asks in a task of its own (asyncio.gather, create_task or a TaskGroup), where the order of questions may "
    "change from round to round. Ask one question after the other."
)
SAME_QUESTION_MESSAGE = (
    "{name} asks the same question twice in one call, so one answer could count for both. Give each its own words."
)
DIVERGED_MESSAGE = (
    "{name} did not ask question {number} as in the round before, so the answers no longer belong to its questions. "
    "Its questions may depend only on its arguments, on answers and on steps."
)


class Interview:
    """Asks the questions of one round, and ends the call if they are not those of the round before."""

    def __init__(self, name: str, round_: Round, *, accepted: bool) -> None:
        """Begin in the task that runs the call.

        Args:
            name: the name of the tool, prompt or resource, for error messages.
            round_: the round that runs.
            accepted: whether the author accepts that the handler runs again in every round (`adopt(server, replay=…)`).
        """
        self._name = name
        self._round = round_
        self._is_accepted = accepted
        self._task = asyncio.current_task()
        self._asked: set[str] = set()  # the fingerprints of the questions of this round

    def ask(self, request: JSONObject) -> JSONObject:
        """Return the client's answer to a request, or end the round with it.

        Raises:
            InputRequired: the client has to answer first, or the call cannot continue.
        """
        if not self._is_accepted:
            self.refuse()
        if asyncio.current_task() is not self._task:
            self._end(OTHER_TASK_MESSAGE)
        asked_now = fingerprint(request)
        if asked_now in self._asked:
            self._end(SAME_QUESTION_MESSAGE)
        self._asked.add(asked_now)
        key = f"{KEY_PREFIX}{len(self._asked)}"
        asked_before = self._asked_before(key)
        if asked_before is not None and asked_before != asked_now:
            self._end(DIVERGED_MESSAGE)
        answers: list[JSONObject] = self._round.ask(WireQuestion(key, request, read=dict))
        return answers[0]

    def refuse(self) -> NoReturn:
        """End the call of a handler that asks, and whose author has not accepted that it runs again."""
        self._end(NOT_NAMED_MESSAGE)

    @property
    def is_replaying(self) -> bool:
        """Whether the handler repeats what an earlier round has done: that round asked more questions than this one."""
        return self._asked_before(f"{KEY_PREFIX}{len(self._asked) + 1}") is not None

    def check_complete(self) -> None:
        """End the call if it returned before it asked all that an earlier round had asked."""
        if self.is_replaying:
            self._end(DIVERGED_MESSAGE, len(self._asked) + 1)

    def _asked_before(self, key: str) -> str | None:
        """Return the fingerprint of the question that an earlier round asked under a key; None if none was asked."""
        answered: Mapping[str, Any] | None = self._round.record.answers.get(key)
        if answered:
            return next(iter(answered))  # its only member: the fingerprint of the question -> the answer
        return self._round.questions.asked_before.get(key)

    def _end(self, rule: str, number: int | None = None) -> NoReturn:
        """End the call with an error that names the rule, for its caller and in the log.

        The round ends, so that the tool cannot catch the error and go on.
        """
        text = rule.format(name=self._name, number=number or len(self._asked))
        log.warning("%s", text)
        self._round.ended_by = ToolError(text)
        self._round.end()
