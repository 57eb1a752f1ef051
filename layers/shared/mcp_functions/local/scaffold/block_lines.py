"""Edits the lines of one function's resource in template.yaml; every other line, and every comment, stays."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mcp_functions.local.checks.statements import KEEP, SEAL, TAG

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

Lines = list[str]
RESOURCE = re.compile(r"  ([A-Za-z0-9]+):")
PROPERTY = re.compile(r"      (\w+):")
INLINE = re.compile(r"      Policies: *(\[[^\[\]{}#]*\]|[^\[\]{}#\n]+?)( *#.*)?\n")
REF = re.compile(r"\s*- !Ref (\w+)( *#.*)?\n")
OURS = (f"!Ref {SEAL}", f"!Ref {KEEP}")
TAG_LINE = re.compile(rf"        {TAG}:[^#\n]*?( *#.*)?\n")


def resources(lines: Lines) -> Iterator[tuple[int, int]]:
    """Yield the first line of each resource, and the line after its last that is no comment."""
    inside, first, last = False, None, 0
    for number, line in enumerate(lines):
        if _says_nothing(line):
            continue
        if RESOURCE.match(line) or not line.startswith(" "):
            if first is not None:
                yield first, last
            inside = line.startswith("Resources:") or (inside and line.startswith(" "))
            first = number if inside and line.startswith(" ") else None
        last = number + 1
    if first is not None:
        yield first, last


def insert_after(lines: Lines, logical_id: str, block: str) -> Lines:
    """Insert a resource after another one."""
    _first, last = _place(lines, logical_id)
    return lines[:last] + block.splitlines(keepends=True) + lines[last:]


def copy_property(lines: Lines, name: str, source: str, target: str) -> Lines:
    """Give a resource the property of another one, if that has it."""
    place = _property(lines, source, name)
    return _insert(lines, target, lines[place[0] : place[1]]) if place else lines


def remove(lines: Lines, logical_id: str) -> Lines:
    """Remove a resource, with the empty lines before it."""
    first, last = _place(lines, logical_id)
    while first and not lines[first - 1].strip():
        first -= 1
    return lines[:first] + lines[last:]


def set_policies(lines: Lines, logical_id: str, needed: Collection[str]) -> Lines:
    """Give a function those of MaySeal and MayKeep that it needs; its other policies stay.

    Args:
        lines: of template.yaml.
        logical_id: of the function.
        needed: the policies' logical ids.

    """
    place = _property(lines, logical_id, "Policies")
    if place is None:
        return _insert(lines, logical_id, _inline([f"!Ref {name}" for name in needed], "")) if needed else lines
    first, last = place
    inline = INLINE.fullmatch(lines[first])
    old = _items(lines[first + 1 : last]) if inline is None else inline[1].strip("[]").split(",")
    names = [item.strip() for item in old]
    wanted = [f"!Ref {name}" for name in needed]
    if {name for name in names if name in OURS} == set(wanted):
        return lines
    if inline:
        kept = [name for name in names if name not in OURS]
        return lines[:first] + _inline(wanted + kept, inline[2] or "") + lines[first + 1 :]
    return lines[:first] + _listed(lines[first:last], wanted) + lines[last:]


def set_tag(lines: Lines, logical_id: str, folder: str, *, needed: bool) -> Lines:
    """Give a function the tag by which the two policies know it, or take it away; its other tags stay."""
    place, tag = _property(lines, logical_id, "Tags"), f"        {TAG}: {folder}\n"
    if place is None:
        return _insert(lines, logical_id, ["      Tags:\n", tag]) if needed else lines
    first, last = place
    head, tags = lines[first], lines[first + 1 : last]
    if needed:
        written = tags if tag in tags else [tag, *(line for line in tags if not TAG_LINE.fullmatch(line))]
    else:
        written = _without(tags, TAG_LINE)
    emptied = not needed and all(map(_says_nothing, written)) and head.strip() == "Tags:"
    return lines[:first] + ([] if emptied else [head]) + written + lines[last:]


def _inline(items: Lines, comment: str) -> Lines:
    """Write policies in one line; without any, their comment stays."""
    if not items:
        return [f"      {comment.strip()}\n"] if comment else []
    value = items[0] if len(items) == 1 else f"[{', '.join(items)}]"
    return [f"      Policies: {value}{comment}\n"]


def _listed(block: Lines, wanted: Lines) -> Lines:
    """Write policies of which each has a line."""
    head, items = block[0], block[1:]
    if not items:
        return block  # one line in a form that is not ours
    present = _items(items)
    surplus = [re.escape(item) for item in OURS if item in present and item not in wanted]
    kept = _without(items, re.compile(rf"\s*- (?:{'|'.join(surplus)})( *#.*)?\n")) if surplus else items
    indent = items[0][: len(items[0]) - len(items[0].lstrip())]
    written = [f"{indent}- {item}\n" for item in wanted if item not in present] + kept
    return ([] if all(map(_says_nothing, written)) else [head]) + written


def _without(lines: Lines, unwanted: re.Pattern[str]) -> Lines:
    """Remove lines; a comment at the end of one stays, as a line."""
    kept = []
    for line in lines:
        found = unwanted.fullmatch(line)
        if found is None:
            kept.append(line)
        elif found[1]:
            kept.append(f"{line[: len(line) - len(line.lstrip())]}{found[1].strip()}\n")
    return kept


def _items(lines: Lines) -> Lines:
    return [f"!Ref {found[1]}" for found in map(REF.fullmatch, lines) if found]


def _insert(lines: Lines, logical_id: str, written: Lines) -> Lines:
    """Insert a property before the function's Events, or at its end."""
    place = _property(lines, logical_id, "Events")
    at = place[0] if place else _place(lines, logical_id)[1]
    return lines[:at] + written + lines[at:]


def _place(lines: Lines, logical_id: str) -> tuple[int, int]:
    found = [(first, last) for first, last in resources(lines) if lines[first].startswith(f"  {logical_id}:")]
    return found[0] if found else (len(lines), len(lines))


def _property(lines: Lines, logical_id: str, name: str) -> tuple[int, int] | None:
    """Return the first line of a property, and the line after its last that is no comment."""
    first, last = _place(lines, logical_id)
    starts = [number for number in range(first, last) if PROPERTY.match(lines[number])]
    for start, following in zip(starts, [*starts[1:], last], strict=True):
        if lines[start].startswith(f"      {name}:"):
            own = [number for number in range(start, following) if not _says_nothing(lines[number])]
            return start, own[-1] + 1  # the comments before the next property are that one's
    return None


def _says_nothing(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")
