"""Edits resources in the text of template.yaml; every other line, and every comment, stays.

    Resources:
      Add:                                      a resource, at 2 spaces
        Type: AWS::Serverless::Function
        Properties:
          Policies: [!Ref MaySeal]              a property, at 6 spaces; here inline
          Tags:                                 a property with a line for each item
            mcp-function: add

PyYAML says in which lines a part stands: its span. The lines are edited as text, because a YAML library would lose the
comments and the layout of the file.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import yaml

from mcp_functions.local import template
from mcp_functions.local.checks.iam import KEEP, SEAL, TAG

if TYPE_CHECKING:
    from collections.abc import Collection

FUNCTION = "AWS::Serverless::Function"
INDENT = 2  # spaces of one level of the template
INLINE_POLICIES = re.compile(
    r"""
    [ ]{6} Policies: [ ]*
    (?P<policies>
        \[ [^\[\]{}#]* \]     # a list: [!Ref MaySeal, AWSLambdaExecute]
        | [^\[\]{}#\n]+?      # or one policy: !Ref MaySeal
    )
    (?P<comment> [ ]* \#.* )?
    \n
    """,
    re.VERBOSE,
)
OUR_POLICIES = (f"!Ref {SEAL}", f"!Ref {KEEP}")
# the toolkit's own items, where a property has a line for each item
OUR_POLICY_ITEM = re.compile(rf"- !Ref ({SEAL}|{KEEP})$")
OUR_TAG_ITEM = re.compile(f"{TAG}:")


def tag_property(folder: str) -> str:
    """Return the tag by which MaySeal and MayKeep know a function."""
    return f"      Tags:\n        {TAG}: {folder}\n"


def policies_property(names: Collection[str]) -> str:
    """Return managed policies of the template as a property of one line."""
    return _policies_line([f"!Ref {name}" for name in names])


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

    def append_function(self, block: str) -> None:
        """Insert the block of a function after the last function; do nothing if none is found."""
        resources = template.parse(self.text)["Resources"]
        functions = [logical_id for logical_id, resource in resources.items() if resource.get("Type") == FUNCTION]
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
        span = self._find_property(source, name)
        if span:
            self._insert_property(target, "".join(self._lines[span]))

    def set_policies(self, logical_id: str, names: Collection[str]) -> None:
        """Give a function the policies MaySeal and MayKeep as it needs them; its other policies stay.

        Args:
            logical_id: the function's logical id.
            names: the logical ids of the policies that it needs.
        """
        needed = [f"!Ref {name}" for name in names]
        span = self._find_property(logical_id, "Policies")
        if span is None:
            self._insert_property(logical_id, _policies_line(needed))
            return
        inline = INLINE_POLICIES.fullmatch(self._lines[span.start])
        if inline is None:
            self._set_items(logical_id, "Policies", [f"- {policy}" for policy in needed], OUR_POLICY_ITEM)
            return
        policies = [policy.strip() for policy in inline["policies"].strip("[]").split(",")]
        ours = [policy for policy in policies if policy in OUR_POLICIES]
        if set(ours) == set(needed):
            return
        others = [policy for policy in policies if policy not in OUR_POLICIES]
        line = _policies_line(needed + others, inline["comment"] or "")
        self._lines[span.start : span.start + 1] = line.splitlines(keepends=True)

    def set_tag(self, logical_id: str, folder: str, *, needed: bool) -> None:
        """Give a function the tag by which the two policies know it, or remove the tag; other tags stay."""
        self._set_items(logical_id, "Tags", [f"{TAG}: {folder}"] if needed else [], OUR_TAG_ITEM)

    def add_layer(self, logical_id: str, layer: str) -> None:
        """Give a function one more layer."""
        item = f"- !Ref {layer}"
        self._set_items(logical_id, "Layers", [item], re.compile(re.escape(item)))

    def _set_items(self, logical_id: str, name: str, needed: list[str], removable: re.Pattern[str]) -> None:
        """Write the items of a property with a line for each; a list in one line is not changed.

        Args:
            logical_id: the function's logical id.
            name: the property's name.
            needed: the items that it must have; missing ones are written first.
            removable: matches the items that are removed unless they are needed; their comments stay.
        """
        span = self._find_property(logical_id, name)
        if span is None:
            if needed:
                items = "".join(f"        {item}\n" for item in needed)
                self._insert_property(logical_id, f"      {name}:\n{items}")
            return
        first_line, *old_lines = self._lines[span]
        if not old_lines:
            return
        new_lines = _edited_items(old_lines, needed, removable)
        if all(_is_empty_or_comment(line) for line in new_lines):
            self._lines[span] = new_lines  # a property without items is not valid
        else:
            self._lines[span] = [first_line, *new_lines]

    def _insert(self, number: int, text: str) -> None:
        self._lines[number:number] = text.splitlines(keepends=True)

    def _insert_property(self, logical_id: str, text: str) -> None:
        """Insert a property before the function's Events, or at its end."""
        events = self._find_property(logical_id, "Events")
        self._insert(events.start if events else self._find_resource(logical_id).stop, text)

    def _find_resource(self, logical_id: str) -> slice:
        """Return the span of a resource; the end of the file, if it is missing."""
        end = len(self._lines)
        return self._find("Resources", logical_id) or slice(end, end)

    def _find_property(self, logical_id: str, name: str) -> slice | None:
        """Return the span of a property; None if it is missing, or not indented as `init` writes it."""
        return self._find("Resources", logical_id, "Properties", name)

    def _find(self, *keys: str) -> slice | None:
        """Return the span of a part, by its keys from the top level down; None if it is not found."""
        try:
            # The last line of the file may lack a line break; the span needs one.
            node: Any = yaml.compose(f"{self.text}\n", yaml.SafeLoader)
        except yaml.YAMLError:
            return None  # an earlier edit has not fitted; `blocks.with_template` refuses the text
        first = 0
        for level, key in enumerate(keys):
            members = node.value if isinstance(node, yaml.MappingNode) else []
            found = [(name, value) for name, value in members if name.value == key]
            if not found:
                return None
            name, node = found[0]
            if name.start_mark.column != level * INDENT:
                return None
            first = name.start_mark.line
        end = min(_line_after(node), len(self._lines))
        while _is_empty_or_comment(self._lines[end - 1]):
            end -= 1
        return slice(first, end)


def _edited_items(old_lines: list[str], needed: list[str], removable: re.Pattern[str]) -> list[str]:
    """Return the lines of a property's items: missing ones first, then the old lines without those to remove."""
    first_line = old_lines[0]
    indent = first_line[: len(first_line) - len(first_line.lstrip())]
    old_items = [line.partition("#")[0].strip() for line in old_lines]
    new_lines = [f"{indent}{item}\n" for item in needed if item not in old_items]
    for line, item in zip(old_lines, old_items, strict=True):
        if item in needed or not removable.match(item):
            new_lines.append(line)
        elif "#" in line:
            new_lines.append(f"{indent}#{line.partition('#')[2]}")
    return new_lines


def _line_after(node: yaml.Node) -> int:
    """Return the number of the line after a node."""
    end = node.end_mark
    # PyYAML ends a block collection at the beginning of the next token, and other nodes behind their last character.
    is_at_line_start = end.column == 0 or (isinstance(node, yaml.CollectionNode) and not node.flow_style)
    return int(end.line) if is_at_line_start else int(end.line) + 1


def _policies_line(policies: list[str], comment: str = "") -> str:
    """Return the line of the property Policies; without policies, only its comment stays."""
    if not policies:
        return f"      {comment.strip()}\n" if comment else ""
    value = policies[0] if len(policies) == 1 else f"[{', '.join(policies)}]"
    return f"      Policies: {value}{comment}\n"


def _is_empty_or_comment(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")
