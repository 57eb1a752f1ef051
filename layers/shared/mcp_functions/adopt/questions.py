"""The questions of an adopted handler in one round, which is one request of its call.

A question is answered from what earlier rounds have recorded, or it ends the round. The next round runs the tool again
from its first line, so the tool asks again from the first question:

    round 1   asks question-1                  no answer is known: the round ends with question-1
    round 2   asks question-1, question-2      the first is answered from the record; the round ends with question-2

An adopted tool gives its questions no keys, so each question has its number as its key. The sealed state holds a
fingerprint of the words of each question, and an answer counts only for these words. If a round asks question-1 with
other words than the round before, the answers no longer fit, and the call ends.

A handler may also return its questions, as servers do since 2026-07-28. These have keys of the handler's own.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from mcp_functions.observability.lines import log
from mcp_functions.protocol.errors import InputRequired, ToolError
from mcp_functions.rounds.input_requests import fingerprint
from mcp_functions.rounds.questions import WireQuestion

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_functions.protocol.wire_types import InputResponses, JSONObject, ResultObject
    from mcp_functions.rounds.round import Round

NUMBERED = r"question-\d+"  # the key of a question in the middle of the work
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
OWN_KEY_MESSAGE = (
    "{name} returns a question with the key {key!r}, and this toolkit gives such keys to the questions of ctx.elicit. "
    "Give it another key, or leave the handler out of replay."
)
DIVERGED_MESSAGE = (
    "{name} did not ask question {number} as in the round before, so the answers no longer belong to its questions. "
    "Its questions may depend only on its arguments, on answers and on steps."
)


class AdoptedQuestions:
    """The questions of one round.

    Attributes:
        round: the round.
        replays: whether the author accepts that the handler runs again in every round (`adopt(server, replay=…)`).
    """

    def __init__(self, round_: Round, name: str, *, replays: bool) -> None:
        """Begin with no question. `name` is that of the tool, prompt or resource, for error messages."""
        self.round = round_
        self.replays = replays
        self._name = name
        self._task: asyncio.Task[Any] | None = None  # it runs the handler; None afterwards
        self._asked: set[str] = set()  # the fingerprints of the questions of this round

    @contextmanager
    def of_this_task(self) -> Iterator[None]:
        """Take questions from the asyncio task that runs the block.

        Afterwards the handler has returned: a task that it left running cannot end what follows.
        """
        self._task = asyncio.current_task()
        try:
            yield
        finally:
            self._task = None

    def ask(self, request: JSONObject) -> JSONObject:
        """Return the answer to a question of the handler; InputRequired ends the round or the call."""
        if not self.replays:
            raise self.refuse()
        if asyncio.current_task() is not self._task:
            raise self._end_call(OTHER_TASK_MESSAGE)
        asked_now = fingerprint(request)
        if asked_now in self._asked:
            raise self._end_call(SAME_QUESTION_MESSAGE)
        asked_before = self._next_asked_before()
        self._asked.add(asked_now)
        if asked_before not in (None, asked_now):
            raise self._end_call(DIVERGED_MESSAGE, number=len(self._asked))
        answers: list[JSONObject] = self.round.ask(WireQuestion(f"question-{len(self._asked)}", request, read=dict))
        return answers[0]

    def refuse(self) -> InputRequired:
        """End the call of a handler that asks, and whose author has not accepted that it runs again."""
        return self._end_call(NOT_NAMED_MESSAGE)

    def is_repeating(self) -> bool:
        """Tell whether the handler repeats what an earlier round has done: that round asked more questions by now."""
        return self._next_asked_before() is not None

    def check_complete(self) -> None:
        """End the call if its handler returned before it asked all that an earlier round had asked."""
        if self.is_repeating():
            raise self._end_call(DIVERGED_MESSAGE, number=len(self._asked) + 1)

    def answers_to_returned(self) -> InputResponses:
        """Return the answers to the questions that the handler returned, by key."""
        answers = self.round.record.answers
        given = {key: next(iter(answer.values())) for key, answer in answers.items() if not self._is_numbered(key)}
        return cast("InputResponses", given)

    def open_returned(self, result: ResultObject) -> None:
        """Open the questions that the handler returned, and record its state.

        The record is what the next round knows of this one. It drops the answers to returned questions: the handler
        keeps them in its own state if it needs them, and reads only the answers to its last questions.
        """
        record = self.round.record
        record.answers = {key: given for key, given in record.answers.items() if self._is_numbered(key)}
        requests: dict[str, Any] = dict(result.get("inputRequests") or {})
        for key, request in requests.items():
            if self._is_numbered(key):
                raise self._end_call(OWN_KEY_MESSAGE, key=key)
            self.round.questions.open_low_level(key, request)
        record.state = result.get("requestState")

    def _is_numbered(self, key: str) -> bool:
        """Tell whether a key is the number of a question, and not of the handler's own."""
        return self.replays and re.fullmatch(NUMBERED, key) is not None

    def _next_asked_before(self) -> str | None:
        """Return the fingerprint that the next question had in an earlier round; None if none asked so many."""
        if not self.replays:
            return None
        key = f"question-{len(self._asked) + 1}"
        answered: dict[str, JSONObject] | None = self.round.record.answers.get(key)
        if answered:
            return next(iter(answered))  # its only member: fingerprint -> answer
        return self.round.questions.asked_before.get(key)

    def _end_call(self, rule: str, **values: object) -> InputRequired:
        """End the call with an error that names the rule, for its caller and in the log.

        The caller raises the exception, which ends the round: the tool cannot catch the error and go on.
        """
        text = rule.format(name=self._name, **values)
        log.warning("%s", text)
        self.round.failed(ToolError(text))
        if self._task and self._task is not asyncio.current_task():
            # What a task of its own raises, asyncio may return to the tool as a value, so the tool would go on.
            self._task.cancel()
        return self.round.interrupted()
