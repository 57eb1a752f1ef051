"""Fixtures that start an engine, a fresh build and the harness's KMS once each, and stop them at the end."""

from __future__ import annotations

import json
import signal
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.sam_local import engine as engines
from tests.sam_local.sam import BIN, BUILT, OVERRIDES, Sam, kms

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.sam_local.engine import Engine


IMAGE = pytest.StashKey[str]()


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    """Leave this folder out unless it is asked for by name, as `make sam-local` does: containers take minutes."""
    return None if any("sam_local" in argument for argument in config.args) else True


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what the functions ran in: a stand-in is not AWS's image."""
    if image := config.stash.get(IMAGE, None):
        terminalreporter.write_sep("-", f"functions ran in {image}")


@pytest.fixture(scope="session")
def _stopped_in_order() -> Iterator[None]:
    """Take SIGTERM as Ctrl-C, so that whatever was started is stopped then too."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture(scope="session")
def engine(pytestconfig: pytest.Config, _stopped_in_order: None) -> Iterator[Engine]:
    if not (BIN / "sam").exists():
        engines.cannot("no .venv-sam: make sam-local prepares it")
    with engines.running() as found:
        pytestconfig.stash[IMAGE] = found.image
        yield found


@pytest.fixture(scope="session")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sam-local")


@pytest.fixture(scope="session")
def exported(engine: Engine, logs: Path) -> Iterator[dict[str, str]]:
    """Start KMS where containers reach it: on the engine's bridge, else by the name that Docker Desktop gives us."""
    with ExitStack() as started:
        said = started.enter_context(kms(logs, "--address", engine.bridge)) or started.enter_context(kms(logs))
        assert said, (logs / "kms.log").read_text(encoding="utf-8")
        yield said


@pytest.fixture(scope="session")
def sam(engine: Engine, logs: Path, exported: dict[str, str]) -> Iterator[Sam]:
    ready = Sam(engine, logs, exported)
    ready.run("build", *OVERRIDES)
    assert (BUILT / "SharedLayer" / "python" / "mcp_functions").is_dir(), "else sam local runs the sources"
    yield ready
    clean(engine)


def clean(engine: Engine) -> None:
    """Remove the containers that SAM forgot: those that hold our build."""
    of_sam = engine.docker("ps", "--all", "--quiet", "--filter", "label=sam.cli.container.type=lambda").split()
    for container in json.loads(engine.docker("inspect", *of_sam)) if of_sam else ():
        if any(mount["Source"].startswith(str(engines.ROOT)) for mount in container["Mounts"]):
            engine.docker("rm", "--force", container["Id"])
