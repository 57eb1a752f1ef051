"""For a function that itself returns its questions and keeps its state: `return InputRequiredResult({…}, Draft(…))`.

ElicitRequest, CreateMessageRequest and ListRootsRequest are the specification's names of Question, SampleQuestion and
RootsQuestion.
"""

from typing import TYPE_CHECKING

from mcp_functions import lazy_names

if TYPE_CHECKING:
    from mcp_functions.rounds.asking import InputRequest
    from mcp_functions.rounds.elicitation import ElicitRequest
    from mcp_functions.rounds.low_level import InputRequiredResult, InputResponses, RequestState
    from mcp_functions.rounds.roots import ListRootsRequest
    from mcp_functions.rounds.sampling import CreateMessageRequest

__all__ = [
    "CreateMessageRequest", "ElicitRequest", "InputRequest", "InputRequiredResult", "InputResponses",
    "ListRootsRequest", "RequestState",
]  # fmt: skip

if not TYPE_CHECKING:  # a type checker would accept every misspelt name
    _NAMES = {
        ".rounds.asking": "InputRequest",
        ".rounds.elicitation": "ElicitRequest",
        ".rounds.low_level": "InputRequiredResult InputResponses RequestState",
        ".rounds.roots": "ListRootsRequest",
        ".rounds.sampling": "CreateMessageRequest",
    }
    __getattr__ = lazy_names(__name__, _NAMES)
