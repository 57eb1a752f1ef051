"""Ids that hold data: a client receives an id and returns it, so no server stores the data.

    ids = SealedIds(seal_factory, b"ks1/event", max_age=1200, max_chars=4096)
    id_ = ids.write({"step": 1})
    ids.read(id_, caller_id)    {"step": 1}

An id is sealed: encrypted and authenticated, so the client can neither read nor change its data. The tokens of sessions
are such ids too. The format: envelope.md, section 14.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.errors import InvalidRequestState
from mcp_functions.protocol.json_writer import dumps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.dispatch.seal_factory import SealFactory


class SealedIds:
    """Writes and reads the ids of one kind."""

    def __init__(self, seal_factory: SealFactory, label: bytes, *, max_age: int, max_chars: int) -> None:
        """Make the seal; no key is fetched yet.

        Args:
            seal_factory: makes the seal.
            label: the kind of id: an id of one kind cannot be read as another.
            max_age: how long an id is valid, in seconds.
            max_chars: the longest id that fits into its header or body.
        """
        self._seal = seal_factory.seal(label, max_age=max_age, max_chars=max_chars)
        # An author may replace our encryption by a codec, which ignores the label. So the data begins with the label.
        self._prefix = label + b"\0"

    def write(self, data: Mapping[str, Any]) -> str:
        """Return an id that holds a JSON object.

        Raises:
            StateTooLarge: the id would be longer than `max_chars`.
            TemporarilyUnavailable, Misconfigured: no key is available.
        """
        # A text may hold half of a surrogate pair, such as "\ud83d" alone. UTF-8 refuses it without "surrogatepass".
        document = dumps(data).encode("utf-8", "surrogatepass")
        return self._seal.seal(self._prefix + document)

    def read(self, id_: str, caller_id: str) -> dict[str, Any]:
        """Return the JSON object that an id holds.

        Invalid ids are counted under `caller_id`, because each of them may cost a call of KMS.

        Raises:
            InvalidRequestState: this server did not write the id, or it is too old.
            TemporarilyUnavailable, Misconfigured: no key is available.
        """
        plaintext = self._seal.unseal(id_, caller=caller_id)
        if not plaintext.startswith(self._prefix):
            raise InvalidRequestState(reason="label")
        document = plaintext.removeprefix(self._prefix).decode("utf-8", "surrogatepass")
        data: dict[str, Any] = json.loads(document)
        return data
