"""The recorded events of the samples: events/<function>/ holds one API Gateway event for each round."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mcp_functions_harness import recording

if TYPE_CHECKING:
    from mcp_functions_harness.testing import Conversation

EVENTS = Path(__file__).parents[2] / "events"


@dataclass(frozen=True)
class Recording:
    """Compare conversations with their files, or write the files (`pytest --update-events`)."""

    update: bool

    def assert_matches(self, talk: Conversation, steps: list[str]) -> None:
        """Compare each round with its file, for example events/ticket/2-reason.json."""
        events = [event for event, _response in talk.rounds]
        differences = recording.check(EVENTS, talk.function, events, steps, update=self.update)
        assert differences == []
