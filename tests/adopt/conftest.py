"""A project whose functions are the servers of tests/adopt/servers, adopted in one line each."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from mcp_functions_harness import Harness
from mcp_functions_harness import catalog as catalog_file
from tests.adopt.talking import SERVERS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

REPLAY = {"bank": ["transfer", "consent"], "library": ["lend"], "clinic": []}
APP = "from {name} import server\nfrom mcp_functions import serve\nfrom mcp_functions.adopt import adopt\n\n"
FRONT_DOOR = "from pathlib import Path\nfrom mcp_functions import serve_catalog\n\n"


def write_project(root: Path, name: str) -> Path:
    """Write a project with one adopted server; return its functions."""
    folder, door = root / "functions" / name, root / "functions/mcp"
    folder.mkdir(parents=True)
    door.mkdir()
    shutil.copy(SERVERS / f"{name}.py", folder)
    app = APP.format(name=name) + f"handler = serve(*adopt(server, replay={REPLAY[name]!r}))\n"
    (folder / "app.py").write_text(app, encoding="utf-8")
    (door / "app.py").write_text(
        FRONT_DOOR + 'handler = serve_catalog(Path(__file__).with_name("catalog.json"))\n', encoding="utf-8"
    )
    catalog_file.write(root / "functions", catalog_file.generate(root / "functions"))
    return root / "functions"


@pytest.fixture(scope="module", params=list(REPLAY))
def adopted_harness(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Harness]]:
    """Serve each server in this process."""
    root = tmp_path_factory.mktemp(request.param)
    with Harness(write_project(root, request.param), state_dir=root / "state") as running:
        yield request.param, running


@pytest.fixture(scope="module", params=list(REPLAY))
def restarting_harness(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Harness]]:
    """Serve each server by processes of the Lambda runtime, a new one for every request."""
    root = tmp_path_factory.mktemp(request.param)
    functions = write_project(root, request.param)
    with Harness(functions, state_dir=root / "state", runtime=True, reuse=False) as running:
        yield request.param, running
