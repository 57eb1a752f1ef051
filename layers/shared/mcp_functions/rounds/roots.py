"""Questions for the client's roots, the folders in which it works (client/roots): `for root in list_roots(): …`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_functions.rounds.asking import InputRequest, ask
from mcp_functions.rounds.capabilities import Capability
from mcp_functions.rounds.input_requests import ROOTS, is_declared
from mcp_functions.rounds.questions import WireQuestion
from mcp_functions.schemas.forms import InvalidAnswer

if TYPE_CHECKING:
    from mcp_functions.protocol.wire_types import JSONObject


class ListRoots(Capability):
    """Asks the client for its roots: `for root in list_roots(): …`."""

    needs_state = True

    def __call__(self, key: str = "roots") -> list[JSONObject]:
        """Return the client's roots, each with a `uri`, in this round or a later one; validate paths within them."""
        return ask(self._round, RootsQuestion(key))

    @property
    def possible(self) -> bool:
        """Whether this client has roots to list."""
        return is_declared(self._round.request.capabilities, ROOTS)


class RootsQuestion(InputRequest["list[JSONObject]"]):
    """Asks the client which folders it works in: `elicit.together(RootsQuestion(key="roots"), Question(…))`."""

    def to_wire_question(self, key: str, **_form_options: bool) -> WireQuestion:
        """Return a ListRootsRequest as JSON, with the function that reads its ListRootsResult."""
        return WireQuestion(key, {"method": "roots/list", "params": {}}, _read_roots)


ListRootsRequest = RootsQuestion  # the specification's name


def _read_roots(response: JSONObject) -> list[JSONObject]:
    """Return the roots of a ListRootsResult, or raise InvalidAnswer if the client sent something else."""
    roots = response.get("roots")
    if isinstance(roots, list) and all(isinstance(root, dict) and isinstance(root.get("uri"), str) for root in roots):
        return roots
    raise InvalidAnswer("the answer was not a list of roots")
