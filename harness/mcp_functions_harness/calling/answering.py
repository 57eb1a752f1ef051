"""Answers the questions that a server asks during one call: with an option of the command, or by asking the user.

--answer KEY=VALUE          the answer to the question with this key, or the only field of its form
--answer KEY.FIELD=VALUE    one field of its form
--answer KEY={JSON}         several fields of its form
--decline KEY, --cancel KEY
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from mcp_functions_harness.calling import questions, values
from mcp_functions_harness.calling.terminal import InputEnded, QuestionRefused, Terminal
from mcp_functions_harness.client import messages
from mcp_functions_harness.problems import stop


@dataclass(kw_only=True)
class Answers:
    """Answers the questions of one call.

    Attributes:
        terminal: asks the user the questions that no option answers.
        options: the values of --answer, by KEY or KEY.FIELD.
        refusals: the actions of --decline and --cancel, by KEY.
    """

    terminal: Terminal
    options: Mapping[str, str]
    refusals: Mapping[str, str]
    # questions that an option has answered
    _used_keys: set[str] = field(default_factory=set, init=False)
    # the message of each question, by key
    _asked: dict[str, str] = field(default_factory=dict, init=False)

    def answer(self, key: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Answer one question.

        Args:
            key: the question's key in `inputRequests`.
            request: the question, with `method` and `params`.

        Returns:
            The answer for `inputResponses`.

        Raises:
            Problem: the option does not fit the question, the server asks again after an option has answered, or there
                is no option and the user's input has ended.
        """
        method = str(request.get("method"))
        params: Mapping[str, Any] = request.get("params", {})
        if key in self._used_keys:
            _refuse_second_time(key, self._asked[key], str(params.get("message", "")))
        self._asked[key] = str(params.get("message", ""))
        try:
            if key not in self._option_keys():
                return questions.ask(self.terminal, method, params)
            self._used_keys.add(key)
            if key in self.refusals:
                return questions.refusal(method, self.refusals[key])
            return self._answer_by_option(key, method, params)
        except QuestionRefused as refused:
            return questions.refusal(method, refused.action)
        except InputEnded:
            stop(f"{key} has no answer: --answer {key}=..., --decline {key}, or type it at a terminal")

    def unused_keys(self) -> list[str]:
        """List the keys in options that the server has not asked about."""
        return sorted(self._option_keys() - self._used_keys)

    def _option_keys(self) -> set[str]:
        return {name.partition(".")[0] for name in self.options} | self.refusals.keys()

    def _answer_by_option(self, key: str, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        if method == "sampling/createMessage":
            text = self.options.get(key)  # if it is empty, the user says what the model says
            return questions.completion(text) if text else questions.ask(self.terminal, method, params)
        if method == "roots/list":
            return questions.roots(self.options.get(key, ""))
        if params.get("mode") == "url":
            return {"action": questions.ACCEPT}  # whatever the option's value is
        return {"action": questions.ACCEPT, "content": self._read_form(key, params.get("requestedSchema", {}))}

    def _read_form(self, key: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        content: dict[str, Any] = {}
        for name, text in self.options.items():
            option_key, _, field_name = name.partition(".")
            if option_key == key:
                content |= _read_fields(key, field_name, text, schema.get("properties", {}))
        problem = values.find_problem(content, schema, schema)
        if problem:
            stop(f"the answer to {key} does not fit: {problem}")
        return content


def _refuse_second_time(key: str, before: str, message: str) -> NoReturn:
    """End the call, because the server asks again what an option has answered."""
    if messages.is_same_question(before, message):
        stop(f"the server refused the answer to {key}, and asks: {message}")
    changed = (
        f"the question {key} changed between two rounds, so its answer does not count: {before!r}, then {message!r}"
    )
    stop(f"{changed}; {messages.SAME_WORDS}")


def _read_fields(key: str, field_name: str, text: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    """Read the fields that one option names; `field_name` is "" in `KEY=VALUE` and `KEY={JSON}`."""
    is_only_field = len(properties) == 1 and not text.startswith("{")
    if not field_name and not is_only_field:
        try:
            return dict(json.loads(text))
        except (ValueError, TypeError):  # not JSON, or no object
            stop(f"the answer to {key} does not fit: give {key}.FIELD=VALUE for: {', '.join(properties)}")
    name = field_name or next(iter(properties))
    if name not in properties:
        stop(f"the form has no {name}; it has: {', '.join(properties)}")
    try:
        return {name: values.read(text, properties[name])}
    except (ValueError, TypeError) as error:  # a TypeError for a schema that is not one of MCP
        stop(f"the answer to {key} does not fit: {error}")
