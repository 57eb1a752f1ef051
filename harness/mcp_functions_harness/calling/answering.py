"""Answers the questions that a server asks during one call: with options of the command, or by asking the user.

--answer KEY=VALUE          the answer to the question with this key, or the only field of its form
--answer KEY.FIELD=VALUE    one field of its form
--answer KEY={JSON}         several fields of its form
--decline KEY, --cancel KEY
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mcp_functions.protocol.wire_types import InputRequest, InputRequestParams, InputResponse
from mcp_functions_harness.calling import form_options, questions
from mcp_functions_harness.calling.terminal import InputEnded, QuestionRefused, Refusal, Terminal
from mcp_functions_harness.client import messages
from mcp_functions_harness.problems import Problem


@dataclass(kw_only=True)
class Answers:
    """Answers the questions of one call. The user answers those at the terminal that no option answers."""

    terminal: Terminal
    options: Mapping[str, str]  # the values of --answer, by KEY or KEY.FIELD
    refusals: Mapping[str, Refusal]  # the actions of --decline and --cancel, by KEY
    # The message of each question that an option has answered, by key.
    _answered: dict[str, str] = field(default_factory=dict, init=False)

    def answer(self, key: str, request: InputRequest) -> InputResponse:
        """Answer one question.

        Raises:
            Problem: the option does not fit the question, the server asks again after an option has answered, or there
                is no option and the user's input has ended.
        """
        method, params = str(request.get("method")), request.get("params", {})
        message = str(params.get("message", ""))
        if key in self._answered:
            raise Problem(_asked_again(key, self._answered[key], message))
        if key in self._keys():
            self._answered[key] = message
        try:
            if key in self.refusals:
                return questions.refusal(method, self.refusals[key])
            if key in self._answered:
                return self._answer_by_option(key, method, params)
            return questions.ask(self.terminal, method, params)
        except QuestionRefused as refused:
            return questions.refusal(method, refused.action)
        except InputEnded:
            remedy = f"--answer {key}=..., --decline {key}, or type it at a terminal"
            raise Problem(f"{key} has no answer: {remedy}") from None

    def unused_keys(self) -> list[str]:
        """List the keys in options that the server has not asked about."""
        return sorted(self._keys() - self._answered.keys())

    def _keys(self) -> set[str]:
        return {name.partition(".")[0] for name in self.options} | self.refusals.keys()

    def _answer_by_option(self, key: str, method: str, params: InputRequestParams) -> InputResponse:
        value = self.options.get(key, "")
        if method == "sampling/createMessage":
            # Without a value, the user says what the model says.
            return questions.completion(value) if value else questions.ask(self.terminal, method, params)
        if method == "roots/list":
            return questions.roots(value)
        if params.get("mode") == "url":
            return {"action": questions.ACCEPT}  # whatever the value is
        content = form_options.read(key, self.options, params.get("requestedSchema", {}))
        return {"action": questions.ACCEPT, "content": content}


def _asked_again(key: str, before: str, message: str) -> str:
    """Say why the server asks again what an option has answered: it refused the answer, or its words changed."""
    if messages.is_same_question(before, message):
        return f"the server refused the answer to {key}, and asks: {message}"
    changed = f"the question {key} changed between two rounds, so its answer does not count"
    return f"{changed}: {before!r}, then {message!r}; {messages.SAME_WORDS}"
