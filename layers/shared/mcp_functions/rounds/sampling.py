"""Questions to the client's model (client/sampling): `message = sample("summary", "Summarise …", max_tokens=200)`.

If the client has not answered yet, an exception ends the author's function. When the answer comes, the function runs
again from its first line, and gets the answer from the same call (`asking`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.protocol import content_blocks
from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.protocol.plain_values import NotJson, content_kind, to_json, type_name
from mcp_functions.rounds.asking import InputRequest, ask
from mcp_functions.rounds.capabilities import Capability
from mcp_functions.rounds.input_requests import SAMPLING, is_declared
from mcp_functions.rounds.questions import WireQuestion
from mcp_functions.schemas.forms import InvalidAnswer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcp_functions.protocol.wire_types import JSONObject, Model


class Sample(Capability):
    """Asks the client's model: `message = sample("key", "Summarise …", max_tokens=200)`."""

    needs_state = True

    def __call__(
        self, key: str, messages: str | Sequence[JSONObject | Model], *, max_tokens: int, **options: object
    ) -> JSONObject:
        """Return the model's message (CreateMessageResult), in this round or a later one.

        Args:
            key: the question's key in `inputRequests`.
            messages: the messages, as dicts or as SamplingMessage objects of the official SDK; a string is one message
                of the user.
            max_tokens: the limit for the answer.
            options: the further params by their wire names: `systemPrompt`, `temperature`, `tools`, `toolChoice`, …
        """
        return ask(self._round, SampleQuestion(messages, max_tokens, options, key))

    @property
    def possible(self) -> bool:
        """Whether this client has a model to ask (without tools)."""
        return is_declared(self._round.request.capabilities, SAMPLING)


class SampleQuestion(InputRequest["dict[str, Any]"]):
    """Asks the client's model: `SampleQuestion("Summarise …", max_tokens=200)`. Its arguments are those of `Sample`."""

    def __init__(
        self,
        messages: str | Sequence[JSONObject | Model],
        max_tokens: int,
        options: Mapping[str, Any] | None = None,
        key: str = "",
    ) -> None:
        """Take the params of the request, under their names in Python, and the key.

        Raises:
            DeveloperError: the key comes first, and then another request.
        """
        if isinstance(max_tokens, InputRequest):
            rule = 'a SampleQuestion has the messages first: SampleQuestion("Summarise …", 200, key="summary")'
            raise DeveloperError(rule)
        super().__init__(key)
        self.messages = messages
        self.max_tokens = max_tokens
        self.options = options or {}

    def to_wire_question(self, key: str, **_form_options: bool) -> WireQuestion:
        """Return a CreateMessageRequest as JSON, with the function that reads its CreateMessageResult."""
        if self.max_tokens < 1:
            rule = "max_tokens must be 1 or more"
            raise DeveloperError(rule)
        messages = self.messages
        if isinstance(messages, str):
            messages = [{"role": "user", "content": {"type": "text", "text": messages}}]
        wire_messages = [_to_wire_message(message) for message in messages]
        _check_tool_results(wire_messages)
        try:
            options = to_json(dict(self.options))
        except NotJson as error:
            rule = f"JSON cannot carry the options of the question to the model ({error})"
            raise DeveloperError(rule) from None
        params: Any = {**options, "messages": wire_messages, "maxTokens": self.max_tokens}
        return WireQuestion(key, {"method": "sampling/createMessage", "params": params}, _read_message)


CreateMessageRequest = SampleQuestion  # the specification's name


def _to_wire_message(message: object) -> JSONObject:
    """Return a message of a conversation as JSON; `message` is a dict or a SamplingMessage of the official SDK."""
    if content_kind(message) == "message":
        message = content_blocks.to_wire(message)
    if isinstance(message, dict) and message.get("role") in ("user", "assistant") and "content" in message:
        return message
    rule = f"a message for the model is a SamplingMessage or a dict with role and content, not {type_name(message)}"
    raise DeveloperError(rule)


def _check_tool_results(messages: Sequence[JSONObject]) -> None:
    """Check a conversation with tools (client/sampling, "Tool Result Messages", "Tool Use and Result Balance")."""
    uses: set[str] = set()  # the ids of the tool_use blocks in the message before
    for message in messages:
        blocks = message["content"] if isinstance(message["content"], list) else [message["content"]]
        results = {block["toolUseId"] for block in blocks if block.get("type") == "tool_result"}
        # "user messages that contain tool results MUST contain ONLY tool results"
        if results and len(results) != len(blocks):
            rule = "a message with a tool_result must hold tool_results alone"
            raise DeveloperError(rule)
        # "every assistant message containing ToolUseContent … MUST be followed by a user message" with every result
        if results != uses:
            rule = "a message must have a tool_result for each tool_use of the message before, and for nothing else"
            raise DeveloperError(rule)
        uses = {block["id"] for block in blocks if block.get("type") == "tool_use"}
    if uses:
        rule = "the last message must have no tool_use"
        raise DeveloperError(rule)


def _read_message(response: JSONObject) -> JSONObject:
    """Return a CreateMessageResult, or raise InvalidAnswer if the client sent something else."""
    match response:
        case {"role": "user" | "assistant", "content": dict() | list(), "model": str()}:
            return response
    reason = "the answer was not a message"
    raise InvalidAnswer(reason)
