"""Edits the lines of one function's resource in template.yaml; every other line, and every comment, stays.

    Resources:
      Add:                                      a resource, at 2 spaces
        Type: AWS::Serverless::Function
        Properties:
          Policies: [!Ref MaySeal]              a property, at 6 spaces; here inline
          Tags:                                 a property with a line for each item
            mcp-function: add

The file is edited as text, because a YAML library would lose its comments and its layout.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mcp_functions.local.checks.iam import KEEP, SEAL, TAG

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

Lines = list[str]  # each with its line break
RESOURCE = re.compile(r"  ([A-Za-z0-9]+):")
PROPERTY = re.compile(r"      (\w+):")
# policies in one line: a list in brackets or a single value, then perhaps a comment
INLINE = re.compile(r"      Policies: *(\[[^\[\]{}#]*\]|[^\[\]{}#\n]+?)( *#.*)?\n")
OURS = (f"!Ref {SEAL}", f"!Ref {KEEP}")
OUR_POLICY = re.compile(rf"- !Ref ({SEAL}|{KEEP})$")
OUR_TAG = re.compile(f"{TAG}:")


def resources(lines: Lines) -> Iterator[tuple[int, int]]:
    """Yield the numbers of each resource's first line, and of the line after its last one that is no comment."""
    is_in_resources = False  # whether the lines belong to the section Resources
    first: int | None = None
    last = 0
    for number, line in enumerate(lines):
        if _says_nothing(line):
            continue
        begins_section = not line.startswith(" ")
        if begins_section or RESOURCE.match(line):
            if first is not None:
                yield first, last
            first = None
            if begins_section:
                is_in_resources = line.startswith("Resources:")
            elif is_in_resources:
                first = number
        last = number + 1
    if first is not None:
        yield first, last


def tags(folder: str) -> str:
    """Return the tag by which MaySeal and MayKeep know a function."""
    return f"      Tags:\n        {TAG}: {folder}\n"


def policies(names: Collection[str]) -> str:
    """Return managed policies of the template as a property of one line."""
    return _inline([f"!Ref {name}" for name in names])


def insert_after(lines: Lines, logical_id: str, block: str) -> Lines:
    """Insert a resource after another one."""
    _first, last = _place(lines, logical_id)
    return lines[:last] + block.splitlines(keepends=True) + lines[last:]


def copy_property(lines: Lines, name: str, source: str, target: str) -> Lines:
    """Give a resource the property of another one, if that has it."""
    place = _property(lines, source, name)
    if place is None:
        return lines
    first, last = place
    return _insert(lines, target, "".join(lines[first:last]))


def remove(lines: Lines, logical_id: str) -> Lines:
    """Remove a resource, with the empty lines before it."""
    first, last = _place(lines, logical_id)
    while first and not lines[first - 1].strip():
        first -= 1
    return lines[:first] + lines[last:]


def set_policies(lines: Lines, logical_id: str, needed: Collection[str]) -> Lines:
    """Give a function those of MaySeal and MayKeep that it needs; its other policies stay.

    Args:
        lines: the lines of template.yaml.
        logical_id: the function's logical id.
        needed: the policies' logical ids.

    """
    place = _property(lines, logical_id, "Policies")
    wanted = [f"!Ref {name}" for name in needed]
    if place is None:
        return _insert(lines, logical_id, _inline(wanted))
    inline = INLINE.fullmatch(lines[place[0]])
    if inline is None:
        return _set_items(lines, logical_id, "Policies", [f"- {item}" for item in wanted], OUR_POLICY)
    names = [item.strip() for item in inline[1].strip("[]").split(",")]
    if {name for name in names if name in OURS} == set(wanted):
        return lines
    written = _inline(wanted + [name for name in names if name not in OURS], inline[2] or "")
    return [*lines[: place[0]], written, *lines[place[0] + 1 :]]


def set_tag(lines: Lines, logical_id: str, folder: str, *, needed: bool) -> Lines:
    """Give a function the tag by which the two policies know it, or take it away; its other tags stay."""
    wanted = [f"{TAG}: {folder}"] if needed else []
    return _set_items(lines, logical_id, "Tags", wanted, OUR_TAG)


def add_layer(lines: Lines, logical_id: str, layer: str) -> Lines:
    """Give a function one more layer."""
    item = f"- !Ref {layer}"
    return _set_items(lines, logical_id, "Layers", [item], re.compile(re.escape(item)))


def _inline(items: Lines, comment: str = "") -> str:
    """Return the line of the property Policies; without items, only its comment stays."""
    if not items:
        return f"      {comment.strip()}\n" if comment else ""
    value = items[0] if len(items) == 1 else f"[{', '.join(items)}]"
    return f"      Policies: {value}{comment}\n"


def _set_items(lines: Lines, logical_id: str, name: str, wanted: Lines, ours: re.Pattern[str]) -> Lines:
    """Write the items of a property with a line for each; a list in one line is not changed.

    Args:
        lines: the lines of template.yaml.
        logical_id: the function's logical id.
        name: the property's name.
        wanted: the items that it must have; missing ones are written first.
        ours: matches the other items that are removed; a comment beside one stays, on its own line.

    """
    place = _property(lines, logical_id, name)
    if place is None and not wanted:
        return lines
    if place is None:
        written = "".join(f"        {item}\n" for item in wanted)
        return _insert(lines, logical_id, f"      {name}:\n{written}")
    first, last = place
    items = lines[first + 1 : last]
    if not items:
        return lines
    indent = items[0][: len(items[0]) - len(items[0].lstrip())]
    present: set[str] = set()
    kept: Lines = []
    for line in items:
        text, hash_, comment = line.partition("#")
        item = text.strip()
        present.add(item)
        if item in wanted or not ours.match(item):
            kept.append(line)
        elif hash_:
            kept.append(f"{indent}#{comment}")
    new = [f"{indent}{item}\n" for item in wanted if item not in present] + kept
    is_empty = all(map(_says_nothing, new))  # a property without items is not valid, so its first line goes too
    head = [] if is_empty else [lines[first]]
    return lines[:first] + head + new + lines[last:]


def _insert(lines: Lines, logical_id: str, written: str) -> Lines:
    """Insert a property before the function's Events, or at its end."""
    place = _property(lines, logical_id, "Events")
    at = place[0] if place else _place(lines, logical_id)[1]
    return lines[:at] + written.splitlines(keepends=True) + lines[at:]


def _place(lines: Lines, logical_id: str) -> tuple[int, int]:
    """Return the first line of a resource, and the line after its last; the end of the file, if it is missing."""
    for first, last in resources(lines):
        if lines[first].startswith(f"  {logical_id}:"):
            return first, last
    return len(lines), len(lines)


def _property(lines: Lines, logical_id: str, name: str) -> tuple[int, int] | None:
    """Return the first line of a property, and the line after its last that is no comment."""
    first, last = _place(lines, logical_id)
    starts = [number for number in range(first, last) if PROPERTY.match(lines[number])]
    for start, following in zip(starts, [*starts[1:], last], strict=True):
        if lines[start].startswith(f"      {name}:"):
            own = [number for number in range(start, following) if not _says_nothing(lines[number])]
            return start, own[-1] + 1  # comments after the last own line belong to the next property
    return None


def _says_nothing(line: str) -> bool:
    """Whether a line is empty or a comment."""
    return not line.strip() or line.lstrip().startswith("#")
