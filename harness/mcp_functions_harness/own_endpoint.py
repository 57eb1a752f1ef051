"""The endpoint of a folder without functions/mcp: the harness has the functions, so it answers at /mcp by itself.

It is the front door that `init` writes into functions/mcp, with a catalog of the loaded functions. On AWS a folder
without functions/mcp has no /mcp.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock

from mcp_functions import serve_catalog
from mcp_functions.protocol.event_types import Event, LambdaContext, Response
from mcp_functions_harness import catalog
from mcp_functions_harness.lambdas.functions import Function


class OwnEndpoint:
    """A Lambda entry point: `handler(event, context)`."""

    def __init__(self, file: Path, directory: Path, get_functions: Callable[[], Mapping[str, Function]]) -> None:
        """Load nothing yet; the catalog will be written into `file`."""
        self._file = file
        self._directory = directory
        self._get_functions = get_functions
        self._front_door: Callable[[Event, LambdaContext], Response] | None = None
        self._lock = Lock()

    def forget(self) -> None:
        """Make the catalog again at the next event, because a function has changed."""
        self._front_door = None

    def __call__(self, event: Event, context: LambdaContext) -> Response:
        """Answer an event.

        Raises:
            Problem: a function does not load, or two tools, prompts or resources have the same name.
        """
        with self._lock:
            front_door = self._front_door
            if front_door is None:
                described = catalog.describe(self._get_functions().values(), self._directory)
                catalog.write_to(self._file.parent, described, self._directory)
                front_door = self._front_door = serve_catalog(self._file)
        return front_door(event, context)
