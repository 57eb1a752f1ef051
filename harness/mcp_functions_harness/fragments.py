"""Inserts a fragment into the text of template.yaml, or removes one; every other line, and every comment, stays.

A fragment is YAML with the sections of a template. An entry that the template lacks is inserted at the end of its
section, with the comments before it. An entry that it has already stays as its author wrote it:

    template.yaml          fragment                   result
    Parameters:            Parameters:                Parameters:
      Stage: # mine          AlarmTopic:                Stage: # mine
        Type: String           Type: String               Type: String
                                                        AlarmTopic:
                                                          Type: String

The text is read by its indentation, because a YAML library would lose the comments and the layout of the file.
"""

from dataclasses import dataclass, field

from mcp_functions_harness.problems import Problem

ORDER = ("Parameters", "Rules", "Conditions", "Globals", "Resources", "Outputs")  # of the sections


@dataclass
class Part:
    """A key with its value, or an item of a list."""

    head: list[str]  # the comments and empty lines before it
    line: str  # its first line
    body: list[str] = field(default_factory=list)  # its other lines, which are indented deeper

    @property
    def key(self) -> str:
        """The key; of an item of a list, all of it, without comments: items are equal if their texts are."""
        if not self.is_item:
            return self.line.partition(":")[0].strip()
        stripped = [line.partition(" #")[0].strip() for line in [self.line, *self.body]]
        return "\n".join(line for line in stripped if line and not line.startswith("#"))

    @property
    def is_collection(self) -> bool:
        """Whether it is a mapping or a list, with a line for each entry; the lines of a text belong together."""
        return bool(self.body) and self.line.partition(" #")[0].rstrip().endswith(":") and not self.is_item

    @property
    def is_item(self) -> bool:
        """Whether it is an item of a list."""
        return self.line.lstrip().startswith("- ")

    @property
    def lines(self) -> list[str]:
        """All of its lines."""
        return [*self.head, self.line, *self.body]


def insert(text: str, fragment: str) -> str:
    """Insert what the text lacks of a fragment.

    Raises:
        Problem: the text has a value in one line, where the fragment adds to a list or to a mapping.
    """
    parts, tail = _parts(text.splitlines(keepends=True))
    new_parts, _tail = _parts(fragment.splitlines(keepends=True))
    for new in new_parts:
        old = next((part for part in parts if part.key == new.key), None)
        if old:
            old.body = _inserted(old.body, new.body, path=new.key)
        else:
            new.head = ["\n"]  # a comment at a fragment's beginning is for its readers
            parts.insert(_place(parts, new.key), new)
    return _text(parts, tail)


def remove(text: str, fragment: str) -> str:
    """Remove from the sections of a text the entries of a fragment, and sections that are empty then."""
    parts, tail = _parts(text.splitlines(keepends=True))
    removed, _tail = _parts(fragment.splitlines(keepends=True))
    for section in removed:
        old = next((part for part in parts if part.key == section.key), None)
        if old is None:
            continue
        entries, end = _parts(old.body)
        heads = {entry.key: entry.head for entry in _parts(section.body)[0]}
        kept: list[Part] = []
        comments: list[str] = []  # of the author, before an entry that is removed
        for entry in entries:
            if entry.key in heads:
                comments += [line for line in entry.head if line not in heads[entry.key]]
            else:
                entry.head = [*comments, *entry.head]
                kept.append(entry)
                comments = []
        old.body = _text(kept, [*comments, *end]).splitlines(keepends=True)
        if not old.body:
            parts.remove(old)
    return _text(parts, tail)


def _inserted(lines: list[str], new_lines: list[str], path: str) -> list[str]:
    parts, tail = _parts(lines)
    added: list[Part] = []
    for new in _parts(new_lines)[0]:
        old = next((part for part in parts if part.key == new.key), None)
        if old is None:
            added.append(new)
        elif new.is_collection and old.is_collection:
            old.body = _inserted(old.body, new.body, f"{path}.{new.key}")
        elif new.is_collection:
            in_one_line = f"template.yaml has {path}.{new.key} in one line"
            raise Problem(f"{in_one_line}: write each of its items in a line of its own")
    return _text(parts, tail).splitlines(keepends=True) + _text(added, []).splitlines(keepends=True)


def _place(parts: list[Part], section: str) -> int:
    """Return where a new section belongs: after the last one that precedes it in ORDER."""
    before = ORDER[: ORDER.index(section)]
    places = [number for number, part in enumerate(parts, start=1) if part.key not in ORDER or part.key in before]
    return max(places, default=0)


def _parts(lines: list[str]) -> tuple[list[Part], list[str]]:
    """Read the parts of the lowest level, and the comments and empty lines after the last one."""
    parts: list[Part] = []
    waiting: list[str] = []  # comments and empty lines; the next line decides whose they are
    indent = min((_indent(line) for line in lines if not _is_comment(line)), default=0)
    for line in lines:
        if _is_comment(line):
            waiting.append(line)
        elif _indent(line) > indent and parts:
            parts[-1].body += [*waiting, line]
            waiting = []
        else:
            parts.append(Part(_after(parts, waiting, indent), line))
            waiting = []
    return parts, _after(parts, waiting, indent)


def _after(parts: list[Part], comments: list[str], indent: int) -> list[str]:
    """Give the first comments that are indented deeper to the last part, which they end; return the others."""
    count = 0
    while parts and count < len(comments) and comments[count].strip() and _indent(comments[count]) > indent:
        parts[-1].body.append(comments[count])
        count += 1
    return comments[count:]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _is_comment(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def _text(parts: list[Part], tail: list[str]) -> str:
    return "".join(line for part in parts for line in part.lines) + "".join(tail)
