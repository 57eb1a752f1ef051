"""One run against one server: what it asks, how its conversations go, and what counts as having gone on."""

from __future__ import annotations

import json
import secrets
import time
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions.attack import forms, messages
from mcp_functions.attack.findings import NotTried
from mcp_functions.attack.sending import CALLER, Sent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from mcp_functions.attack.sending import Answer, Exchange, Line

MAX_ROUNDS = 6
MAX_OTHERS = 4  # arguments tried in the place of the right ones


class Bounds(NamedTuple):
    """What a run may cost the server: requests, seconds in all; and always one request at a time."""

    requests: int = 1500
    seconds: float = 120.0


@dataclass(frozen=True)
class Target:
    """A call that the server answers with a question.

    Attributes:
        method: tools/call, prompts/get or resources/read.
        params: name and arguments, or uri.
        schema: of its arguments, as far as the server tells.
        others: params of similar calls, that may be asked about something else.
        questions: of the first round.
        rounds: what was sent and answered, when the conversation was held as it should be; the last completes it.

    """

    method: str
    params: Mapping[str, Any]
    schema: Mapping[str, Any] = field(default_factory=dict)
    others: Sequence[Mapping[str, Any]] = ()
    questions: Mapping[str, Any] = field(default_factory=dict)
    rounds: Sequence[Exchange] = ()

    @property
    def name(self) -> str:
        """What the server calls it."""
        return str(self.params.get("name") or self.params.get("uri"))

    @property
    def answers(self) -> dict[str, Any]:
        """Good answers to everything that is asked in the whole conversation."""
        return {key: said for one in self.rounds for key, said in forms.responses(one.answer.asked or {}).items()}

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """The arguments that are repeated in headers."""
        properties = self.schema.get("properties") or {}
        return [(key, said["x-mcp-header"]) for key, said in properties.items() if "x-mcp-header" in said]

    def __str__(self) -> str:
        """Say it in a few words."""
        arguments = json.dumps(self.params["arguments"]) if self.params.get("arguments") else ""
        rounds = f"{len(self.rounds)} requests" if self.rounds and self.rounds[-1].answer.done else "never completed"
        return f"{self.method} {self.name} {arguments}".strip() + f" ({rounds})"


@dataclass
class Hunt:
    """What every check has at hand.

    Attributes:
        line: to the server.
        targets: that ask; the first is the one to attack, the others are for states in the wrong place.
        has_other: whether there are credentials of a second person.
        lifetime: seconds after which the server promises that a state has expired; None if nobody said.
        canary: a text that nobody should see again.
        wait: lets seconds pass.
        cold: whether the victim goes on without any state; None until somebody asks.

    """

    line: Line
    targets: Sequence[Target] = ()
    has_other: bool = False
    lifetime: float | None = None
    canary: str = field(default_factory=lambda: f"canary-{secrets.token_hex(8)}")
    wait: Callable[[float], object] = time.sleep
    cold: bool | None = None
    ids: Iterator[int] = field(default_factory=lambda: count(1))

    @property
    def victim(self) -> Target:
        """The call to attack.

        Raises:
            NotTried: nothing here asks.

        """
        if not self.targets:
            text = "nothing was found that answers with input_required: name it with --tool and --arguments"
            raise NotTried(text)
        return self.targets[0]

    @property
    def stateful(self) -> Target:
        """The call to attack, if it leaves states and completes when it is answered.

        Raises:
            NotTried: it does not.

        """
        victim = self.victim
        if victim.rounds[0].answer.state is None:
            text = f"{victim.name} asks without a requestState"
            raise NotTried(text)
        if not victim.rounds[-1].answer.done:
            text = f"{victim.name} does not complete when its questions are answered: {victim.rounds[-1].answer}"
            raise NotTried(text)
        return victim

    @property
    def needed(self) -> Target:
        """The call to attack, if something hangs on its state.

        "Integrity protection MAY be omitted only when tampering can cause nothing worse than request failure": where
        the same answers complete the call without any state, a wrong one that does so proves nothing.

        Raises:
            NotTried: nothing does.

        """
        victim = self.stateful
        if self.cold is None:
            self.cold = self.call(victim, inputResponses=victim.answers).answer.done
        if self.cold:
            text = f"{victim.name} completes without any state too (cold-answers), so nothing is proved to hang on it"
            raise NotTried(text)
        return victim

    def write(
        self,
        target: Target,
        *,
        who: str = CALLER,
        capabilities: Mapping[str, Any] | None = None,
        **more: Any,  # noqa: ANN401 - params: requestState, inputResponses, or arguments in the place of its own
    ) -> Sent:
        """Write a call of a target."""
        said = messages.message(target.method, {**target.params, **more}, next(self.ids), capabilities)
        return messages.write(said, target.parameters, who)

    def call(self, target: Target, **more: Any) -> Exchange:  # noqa: ANN401 - see `write`
        """Call a target."""
        return self.line.send(self.write(target, **more))

    def begun(self, target: Target) -> tuple[str, dict[str, Any]]:
        """Begin a conversation: its first state, and good answers to its first questions.

        Raises:
            NotTried: it does not ask any more.

        """
        return _open(target, self.call(target).answer)

    def fresh(self, target: Target, who: str = CALLER) -> tuple[str, dict[str, Any]]:
        """Hold a conversation up to its last questions: the last state, and the answers that would complete the call.

        Raises:
            NotTried: it does not ask any more.

        """
        answer = self.call(target, who=who).answer
        for _ in target.rounds[2:]:
            answer = self.call(target, who=who, **_reply(answer)).answer
        return _open(target, answer)

    def walk(self, target: Target) -> Target:
        """Hold the conversation as a client should, and remember how it went."""
        rounds = [self.call(target)]
        questions = rounds[0].answer.asked or {}
        while rounds[-1].answer.asked is not None and len(rounds) < MAX_ROUNDS:
            rounds.append(self.call(target, **_reply(rounds[-1].answer)))
        return Target(target.method, target.params, target.schema, target.others, questions, rounds)

    def went_on(self, target: Target, answer: Answer) -> bool:
        """Tell whether an answer is later than the first: the call is complete, or asks for something else."""
        if answer.done:
            return True
        return bool(answer.asked) and _shape(answer.asked or {}) != _shape(target.questions)

    def is_sure(self, target: Target) -> bool:
        """Tell whether a target does not complete with good answers alone, so that its state is what counts."""
        return not self.call(target, inputResponses=target.answers).answer.done

    def elsewhere(self, target: Target) -> Iterator[Target]:
        """Name calls of the same tool with other arguments that begin with a question too."""
        arguments = target.params.get("arguments")
        written = [{**target.params, "arguments": o} for o in forms.others(target.schema, arguments or {})]
        for params in [*target.others, *written][:MAX_OTHERS]:
            other = Target(target.method, params, target.schema)
            if asked := self.call(other).answer.asked:
                yield Target(target.method, params, target.schema, questions=asked)


def _reply(answer: Answer) -> dict[str, Any]:
    """Write what goes with a retry."""
    responses = {"inputResponses": forms.responses(answer.asked)} if answer.asked else {}
    return responses | ({} if answer.state is None else {"requestState": answer.state})


def _open(target: Target, answer: Answer) -> tuple[str, dict[str, Any]]:
    if answer.state is None or not answer.asked:
        text = f"{target.name} asked before, and now: {answer}"
        raise NotTried(text)
    return answer.state, forms.responses(answer.asked)


def _shape(asked: Mapping[str, Any]) -> dict[str, list[str]]:
    """Reduce questions to what does not change from call to call: a price or a clock may stand in the words."""
    return {
        key: sorted((((request or {}).get("params") or {}).get("requestedSchema") or {}).get("properties") or {})
        for key, request in asked.items()
    }
