"""The YAML at the top of a SKILL.md, as JSON.

    ---
    name: plan-a-trip
    description: Plan and book a trip.
    ---

"The `frontmatter` object MUST be identical in content to the frontmatter of the `SKILL.md` it describes", and each host
compares the two with a YAML reader of its own. So YAML that readers understand differently is refused: with YAML 1.1
`on` is true, with 1.2 it is a text. Aliases and tags are refused too, because a few lines of them can be gigabytes.
"""

import json
import math
import re
from typing import Any, NamedTuple

import yaml

MAX_BYTES = 16_384  # readers of YAML hold all of it in memory, and so does every listing
MAX_DEPTH = 16
MAX_INTEGER = 2**53 - 1
BLOCK = re.compile(r"---[ \t]*\r?\n(?P<yaml>.*?)(?:^)---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
NULL = {"", "~", "null", "Null", "NULL"}
BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
# YAML 1.2, section 10.3.2, "Core schema: tag resolution"
INTEGER = re.compile(r"[-+]?[0-9]+")
OTHER_BASE = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
FLOAT = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)


class Wrong(Exception):
    """Something in the frontmatter is wrong: its line in the file, from 1, and the reason, with the remedy."""

    def __init__(self, line: int, reason: str) -> None:
        """Keep the line and the reason."""
        super().__init__(reason)
        self.line = line
        self.reason = reason


class Frontmatter(NamedTuple):
    """The frontmatter of a SKILL.md."""

    values: dict[str, Any]  # as JSON
    lines: dict[str, int]  # the line of each key, from 1; those of `metadata` are "metadata.<key>"


def read(text: str) -> Frontmatter:
    """Read the frontmatter of a SKILL.md.

    Raises:
        Wrong: the text has none, or its YAML is wrong or ambiguous.
    """
    block = BLOCK.match(text)
    if block is None:
        raise Wrong(1, "SKILL.md begins with a line ---, then YAML with name and description, then a line ---")
    source = block["yaml"]
    if len(source.encode()) > MAX_BYTES:
        raise Wrong(1, f"the YAML has {len(source.encode())} bytes, and at most {MAX_BYTES} are allowed")
    try:
        _check_events(source)
        root = yaml.compose(source, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise Wrong(2 + (mark.line if mark else 0), f"this is no YAML: {error.problem or error.context}") from None
    except yaml.reader.ReaderError as error:
        raise Wrong(2 + source[: error.position].count("\n"), f"this is no YAML: {error.reason}") from None
    if not isinstance(root, yaml.MappingNode):
        raise Wrong(2, "the YAML is no mapping: write name: … and description: …")
    lines: dict[str, int] = {}
    values: Any = _value(root, lines, "")
    return Frontmatter(values, lines)


def _check_events(source: str) -> None:
    """Refuse aliases, tags, deep nesting and a second document, before any value is made."""
    depth = documents = 0
    for event in yaml.parse(source, Loader=yaml.SafeLoader):
        line = 2 + (event.start_mark.line if event.start_mark else 0)
        documents += isinstance(event, yaml.DocumentStartEvent)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise Wrong(line, "write the value out: anchors (&) and aliases (*) are not allowed")
        if isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent) and event.tag is not None:
            raise Wrong(line, f"remove the tag {event.tag}: JSON has no such type")
        if depth > MAX_DEPTH:
            raise Wrong(line, f"this is nested more than {MAX_DEPTH} deep")
        if documents > 1:
            raise Wrong(line, "this is a second YAML document: one is allowed")


def _value(node: yaml.Node, lines: dict[str, int], path: str) -> Any:  # noqa: ANN401 - any JSON
    """Return the JSON value of a node. `lines` gets the line of each key, with its path."""
    if isinstance(node, yaml.SequenceNode):
        return [_value(each, lines, f"{path}[]") for each in node.value]
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node)
    found: dict[str, Any] = {}
    for key_node, value_node in node.value:
        line = 2 + key_node.start_mark.line
        key = _scalar(key_node) if isinstance(key_node, yaml.ScalarNode) else None
        if not isinstance(key, str) or key in {"", "<<"}:
            raise Wrong(line, "a key is a text; quote it if it is a number, a truth value or <<")
        if key in found:
            raise Wrong(line, f"the key {key!r} is here twice")
        where = f"{path}.{key}" if path else key
        lines[where] = line
        found[key] = _value(value_node, lines, where)
    return found


def _scalar(node: yaml.ScalarNode) -> str | float | bool | None:
    """Return a scalar, if readers of YAML 1.1 and of 1.2 agree about it and JSON has it."""
    text: str = node.value
    line = 2 + node.start_mark.line
    if any(ord(character) < ord(" ") and character not in "\n\t" for character in text):
        raise Wrong(line, "this has a control character")
    if node.style is not None:  # it is quoted, or a block of text
        return text
    value = _plain(text)
    if repr(value) != repr(_plain_1_1(node)):
        raise Wrong(line, f"quote {json.dumps(text)}: readers of YAML disagree about what it is without quotes")
    if isinstance(value, float) and not math.isfinite(value):
        raise Wrong(line, f"JSON has no number {text}")
    if isinstance(value, int) and abs(value) > MAX_INTEGER:
        raise Wrong(line, f"quote {text}: JavaScript rounds a number that is so large")
    return value


def _plain(text: str) -> str | float | bool | None:
    """Return what a scalar without quotes is in YAML 1.2, with its core schema."""
    if text in NULL:
        return None
    if text in BOOLEANS:
        return BOOLEANS[text]
    if INTEGER.fullmatch(text):
        return int(text)
    if OTHER_BASE.fullmatch(text):
        return int(text, 0)
    if FLOAT.fullmatch(text):
        return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    return text


def _plain_1_1(node: yaml.ScalarNode) -> object:
    """Return what a scalar without quotes is for PyYAML, a reader of YAML 1.1; another object if it is an error."""
    try:
        made: object = yaml.SafeLoader("").construct_object(node)
    except (yaml.YAMLError, ValueError):
        return NotImplemented
    return made
