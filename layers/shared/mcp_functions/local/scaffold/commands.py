"""`init`, `new` and `block` on the command line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mcp_functions.local.scaffold import adding, beginning, blocks, samples, spelling

if TYPE_CHECKING:
    import argparse


def add_commands(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], common: argparse.ArgumentParser
) -> None:
    """Add the three commands; `common` has the options of every command."""
    begin = commands.add_parser("init", parents=[common], help="write a new project")
    begin.add_argument("directory", type=Path, metavar="DIR", help="of the project; created if it is missing")
    begin.set_defaults(run=_init)
    add = commands.add_parser("new", parents=[common], help="add a function to the project in this folder")
    add.add_argument("kind", choices=samples.KINDS)
    add.add_argument("name", metavar="NAME", help="of the function and its folder, e.g. track_parcel")
    add.set_defaults(run=_new)
    show = commands.add_parser("block", parents=[common], help="print what template.yaml needs for a function")
    show.add_argument("kind", choices=samples.KINDS)
    show.add_argument("name", metavar="NAME", help="of the function and its folder")
    show.set_defaults(run=_block)


def _init(options: argparse.Namespace) -> int:
    sys.stdout.write(f"{beginning.init(options.directory)}\n")
    return 0


def _block(options: argparse.Namespace) -> int:
    sys.stdout.write(blocks.block(samples.sample(options.kind, spelling.check(options.name))))
    return 0


def _new(options: argparse.Namespace) -> int:
    sys.stdout.write(f"{adding.new(Path(), options.kind, options.name)}\n")
    return 0
