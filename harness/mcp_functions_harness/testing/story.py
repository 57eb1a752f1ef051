"""Tells the conversations of a test that failed: who asked what, what was answered, and what became of it.

    1  tools/call open_ticket {"title": "Printer"}
         asks urgency: How urgent is it? (urgency: low | high)
    2  answers urgency: {"urgency": "huge"}
         refuses urgency: How urgent is it? (Please answer again: urgency must be one of "low", "high".)
    3  answers urgencyy: "low", which nobody asked
         asks urgency: How urgent is it? (urgency: low | high)

`Conversation` notes itself here with each request. The pytest plugin takes the notes after each test.
"""

import json
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from mcp_functions.protocol.wire_types import InputRequest, InputRequestParams, JSONRPCMessage, ResultObject, Schema
from mcp_functions_harness.client import messages
from mcp_functions_harness.testing.transcript import Transcript, message_of, questions_in

Questions: TypeAlias = Mapping[str, InputRequest]  # by key

MAX_LINE = 300  # characters of one line
MAX_TALKS = 5  # a test with more conversations is a loop, and the last ones tell why it failed
INDENT = " " * 5
ACCEPTED = {"action", "content"}  # the members of an answer that fills in a form
VERBS = {"decline": "declines", "cancel": "cancels"}

_talks: list[Transcript] = []  # of the running test; the pytest plugin reads them


def note(talk: Transcript) -> None:
    """Keep a conversation until the end of the test."""
    if all(each is not talk for each in _talks):
        _talks.append(talk)
        del _talks[:-MAX_TALKS]


def take() -> list[str]:
    """Return the texts of the conversations since the last call."""
    texts = ["\n".join(_lines(talk)) for talk in _talks]
    _talks.clear()
    return texts


def _lines(talk: Transcript) -> Iterator[str]:
    open_questions: Questions = {}
    for number, (event, response) in enumerate(talk.rounds, start=1):
        request, message = message_of(event), message_of(response)
        answers = request.get("params", {}).get("inputResponses") or {}
        sent = _answered(answers, open_questions) if answers else [_call(request)]
        for line in sent:
            yield _short(f"{number:<3}{line}")
        questions = questions_in(message)
        answered = {key: question for key, question in open_questions.items() if key in answers}
        received = _asked(questions, answered) if questions else [_ending(message)]
        for line in received:
            yield _short(f"{INDENT}{line}")
        open_questions = questions or open_questions


def _answered(answers: Mapping[str, object], open_questions: Questions) -> Iterator[str]:
    for key, answer in answers.items():
        action = str(answer.get("action")) if isinstance(answer, dict) else ""
        said = f"{VERBS[action]} {key}" if action in VERBS else f"answers {key}: {_json(answer)}"
        yield said if key in open_questions else f"{said}, which nobody asked"


def _call(request: JSONRPCMessage) -> str:
    """Return the line of a request without answers."""
    params = request.get("params", {})
    if "requestState" in params:
        return "goes on without an answer"
    arguments = _json(params["arguments"]) if "arguments" in params else ""
    name = params.get("name") or params.get("uri") or params.get("taskId") or ""
    return " ".join(filter(None, [str(request.get("method")), name, arguments]))


def _asked(questions: Questions, answered: Questions) -> Iterator[str]:
    """Yield a line for each question of the function; `answered` are those that the client has just answered."""
    for key, question in questions.items():
        params = question.get("params", {})
        text = params.get("message") or _json(params)
        if key not in answered:
            yield f"asks {key}: {text}{_form(params)}"
        elif messages.is_same_question(answered[key].get("params", {}).get("message", ""), text):
            yield f"refuses {key}: {text}"
        else:
            yield f"asks {key} in other words, so the answer does not count; {messages.SAME_WORDS}: {text}"


def _ending(message: JSONRPCMessage) -> str:
    """Return the line of a message without a question."""
    result, error = message.get("result", {}), message.get("error")
    if error:
        return f"refuses the request: {error.get('code')} {error.get('message')}"
    if result.get("resultType") == "input_required":
        return "ends the round without a question"
    if "status" in result and "taskId" in result:
        return f"task: {result['status']} {result.get('statusMessage', '')}".rstrip()
    kind = "a tool error" if result.get("isError") else "a result"
    return f"ends with {kind}: {_content(result)}"


def _form(params: InputRequestParams) -> str:
    """Return the fields of a form, "(urgency: low | high)"; "" if it has none."""
    fields = params.get("requestedSchema", {}).get("properties", {})
    texts = [f"{name}: {_values(schema)}" for name, schema in fields.items()]
    return f" ({', '.join(texts)})" if texts else ""


def _values(schema: Schema) -> str:
    values = schema.get("enum") or [each["const"] for each in schema.get("oneOf", ()) if "const" in each]
    return " | ".join(map(str, values)) or str(schema.get("type", "any"))


def _content(result: ResultObject) -> str:
    texts = [block["text"] for block in result.get("content", ()) if "text" in block]
    return " ".join(texts) or _json({key: value for key, value in result.items() if key != "_meta"})


def _json(value: object) -> str:
    shown = value["content"] if isinstance(value, dict) and value.keys() == ACCEPTED else value
    return json.dumps(shown, ensure_ascii=False)


def _short(line: str) -> str:
    text = " ".join(line.split("\n"))
    return text if len(text) <= MAX_LINE else f"{text[:MAX_LINE]}..."
