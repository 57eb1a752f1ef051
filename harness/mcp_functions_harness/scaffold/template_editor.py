"""Edits resources in the text of template.yaml; every other line, and every comment, stays.

    Resources:
      Add:                                      a resource, at 2 spaces
        Type: AWS::Serverless::Function
        Properties:
          Policies: [!Ref MaySeal]              a property, at 6 spaces; its items in one line
          Tags:                                 a property with a line for each item
            mcp-function: add

The lines are edited as text, because a YAML library would lose the comments and the layout of the file. A part begins
at its key, and its other lines are indented deeper. A template with another indentation is not changed.
"""

import re
from collections.abc import Sequence

from mcp_functions_harness import template
from mcp_functions_harness.checks.iam import KEEP, SEAL, TAG
from mcp_functions_harness.lambdas.functions import SIGN_IN

SIGN_IN_CODE = f"functions/{SIGN_IN}/"  # the sign-in front stands after what its mode adds
INDENT = "  "  # of one level of the template
ITEMS_IN_ONE_LINE = re.compile(
    r"""
    [ ]+ \w+: [ ]*
    (?P<items>
        \[ [^\[\]{}#]* \]     # a list: [!Ref MaySeal, AWSLambdaExecute]
        | [^\[\]{}#\n]+?      # or one item: !Ref MaySeal
    )
    (?P<comment> [ ]* \#.* )?
    \n
    """,
    re.VERBOSE,
)
OUR_POLICY = re.compile(f"!Ref ({SEAL}|{KEEP})")  # the toolkit's own, removed unless needed
OUR_TAG = re.compile(f"{TAG}:.*")
NO_ITEM = re.compile(r"(?!)")


class TemplateEditor:
    """The lines of a template.

    A span is a slice of these lines, from the first line of a part. It ends before the comments and empty lines that
    follow the part.
    """

    def __init__(self, text: str) -> None:
        """Take the text of a template."""
        self._lines = text.splitlines(keepends=True)

    @property
    def text(self) -> str:
        """The text as it is now."""
        return "".join(self._lines)

    @text.setter
    def text(self, text: str) -> None:
        self._lines = text.splitlines(keepends=True)

    def resource_text(self, logical_id: str) -> str:
        """Return the lines of a resource; "" if it is missing."""
        return "".join(self._lines[self._find_resource(logical_id)])

    def property_text(self, logical_id: str, name: str) -> str:
        """Return the lines of a property; "" if it is missing."""
        span = self._find_property(logical_id, name)
        return "".join(self._lines[span]) if span else ""

    def insert_property(self, logical_id: str, text: str) -> None:
        """Insert a property's lines before the function's Events, or at its end."""
        events = self._find_property(logical_id, "Events")
        self._insert(events.start if events else self._find_resource(logical_id).stop, text)

    def append_function(self, block: str) -> None:
        """Insert the block of a function after the last function; do nothing if none is found."""
        functions = [
            logical_id
            for logical_id, resource in template.parse(self.text)["Resources"].items()
            if resource["Type"] == template.FUNCTION and resource["Properties"].get("CodeUri") != SIGN_IN_CODE
        ]
        span = self._find("Resources", functions[-1]) if functions else None
        if span:
            self._insert(span.stop, f"\n{block}")

    def insert_after(self, logical_id: str, block: str) -> None:
        """Insert a resource after another one."""
        self._insert(self._find_resource(logical_id).stop, block)

    def remove(self, logical_id: str) -> None:
        """Remove a resource, with the empty lines before it."""
        span = self._find_resource(logical_id)
        first = span.start
        while first > 0 and not self._lines[first - 1].strip():
            first -= 1
        del self._lines[first : span.stop]

    def copy_property(self, name: str, source: str, target: str) -> None:
        """Copy a property from the source to the target, if the source has it."""
        self.insert_property(target, self.property_text(source, name))

    def set_policies(self, logical_id: str, names: Sequence[str]) -> None:
        """Give a function the policies MaySeal and MayKeep as it needs them; its other policies stay."""
        self._set_items(logical_id, "Policies", [f"!Ref {name}" for name in names], OUR_POLICY)

    def set_tag(self, logical_id: str, folder: str, *, needed: bool) -> None:
        """Give a function the tag by which the two policies know it, or remove the tag; other tags stay."""
        self._set_items(logical_id, "Tags", [f"{TAG}: {folder}"] if needed else [], OUR_TAG)

    def add_layer(self, logical_id: str, layer: str) -> None:
        """Give a function one more layer."""
        self._set_items(logical_id, "Layers", [f"!Ref {layer}"], NO_ITEM)

    def _set_items(self, logical_id: str, name: str, needed: list[str], ours: re.Pattern[str]) -> None:
        """Write the items that a property needs, first those that it lacks.

        An item that `ours` matches is removed if it is not needed; its comment stays.
        """
        dash = "" if name == "Tags" else "- "
        span = self._find_property(logical_id, name)
        if span:
            first_line, *old_lines = self._lines[span]
            if old_lines:
                self._lines[span] = _edited_lines(first_line, old_lines, needed, ours, dash)
            else:
                self._lines[span] = _edited_line(name, first_line, needed, ours)
        elif needed and name == "Policies":
            self.insert_property(logical_id, _line_of_items(name, needed))
        elif needed:
            items = [f"        {dash}{item}\n" for item in needed]
            self.insert_property(logical_id, "".join([f"      {name}:\n", *items]))

    def _insert(self, number: int, text: str) -> None:
        self._lines[number:number] = text.splitlines(keepends=True)

    def _find_resource(self, logical_id: str) -> slice:
        """Return the span of a resource; the end of the file, if it is missing."""
        end = len(self._lines)
        return self._find("Resources", logical_id) or slice(end, end)

    def _find_property(self, logical_id: str, name: str) -> slice | None:
        return self._find("Resources", logical_id, "Properties", name)

    def _find(self, *keys: str) -> slice | None:
        """Return the span of a part, by its keys from the top level down; None if it is not found."""
        start, end = 0, len(self._lines)
        for level, key in enumerate(keys):
            first = f"{INDENT * level}{key}:"
            found = [number for number in range(start, end) if self._lines[number].startswith(first)]
            if not found:
                return None
            start = found[0]
            following = range(start + 1, end)
            end = next((number for number in following if not _is_inside(self._lines[number], level)), end)
        while _is_empty_or_comment(self._lines[end - 1]):
            end -= 1
        return slice(start, end)


def _is_inside(line: str, level: int) -> bool:
    """Whether a line belongs to the part whose key is at this level."""
    indent = INDENT * level
    return _is_empty_or_comment(line) or line.startswith((f"{indent} ", f"{indent}- "))


def _is_empty_or_comment(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def _edited_lines(
    first_line: str, old_lines: list[str], needed: list[str], ours: re.Pattern[str], dash: str
) -> list[str]:
    """Edit a property with a line for each item: missing items first, then the old lines without those to remove."""
    indent = old_lines[0][: -len(old_lines[0].lstrip())]
    old_items = [line.partition("#")[0].strip().removeprefix("- ") for line in old_lines]
    new_lines = [f"{indent}{dash}{item}\n" for item in needed if item not in old_items]
    for line, item in zip(old_lines, old_items, strict=True):
        if item in needed or not ours.fullmatch(item):
            new_lines.append(line)
        elif "#" in line:
            new_lines.append(f"{indent}#{line.partition('#')[2]}")
    if all(_is_empty_or_comment(line) for line in new_lines):
        return new_lines  # a property without items is not valid
    return [first_line, *new_lines]


def _edited_line(name: str, line: str, needed: list[str], ours: re.Pattern[str]) -> list[str]:
    """Edit a property with all its items in one line; in another notation, the line stays."""
    match = ITEMS_IN_ONE_LINE.fullmatch(line)
    if match is None:
        return [line]
    items = [item.strip() for item in match["items"].strip("[]").split(",")]
    others = [item for item in items if not ours.fullmatch(item) and item not in needed]
    comment = match["comment"] or ""
    if set(items) == {*needed, *others}:
        return [line]
    if needed or others:
        return [_line_of_items(name, [*needed, *others], comment)]
    return [f"      {comment.strip()}\n"] if comment else []


def _line_of_items(name: str, items: list[str], comment: str = "") -> str:
    written = items[0] if len(items) == 1 else f"[{', '.join(items)}]"
    return f"      {name}: {written}{comment}\n"
