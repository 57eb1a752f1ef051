"""One skill: the files of its folder, and what is wrong with them."""

import os
import re
import stat
import unicodedata
from collections.abc import Iterator
from mimetypes import MimeTypes
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from mcp_functions.protocol.constants import OWN_META, SKILL_SCHEME
from mcp_functions.protocol.scopes import SCOPE
from mcp_functions.protocol.wire_types import JSONObject
from mcp_functions.skills.bundle import MAIN_FILE
from mcp_functions_harness.skills import frontmatter, links

MAX_BYTES = 256 * 1024  # of all files of a skill
MAX_FILES = 512  # "Resources per skill: 512 entries"
MAX_PATH = 255
# agentskills.io/specification, "name field": lower-case letters, digits and single hyphens
NAME = re.compile(r"(?!.*--)[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")
MAX_DESCRIPTION = 1024
MAX_COMPATIBILITY = 500
UNSAFE = re.compile(r'[\x00-\x1f\x7f\\:*?"<>|%#]')  # have another meaning in a path or URI
RESERVED = "io.modelcontextprotocol/"  # "keys prefixed with … are reserved"
SCOPES = f"{OWN_META}scopes"
HIDE = f"{OWN_META}hide-without-scopes"
GUESSED = MimeTypes(filenames=())  # Python's table: each machine's own differs from the next one's
GUESSED.add_type("text/markdown", ".md")
GUESSED.add_type("application/yaml", ".yaml")
GUESSED.add_type("application/yaml", ".yml")
MARKDOWN = "text/markdown"


class SkillFolder(NamedTuple):
    """A skill as its folder has it."""

    name: str  # of the folder
    values: JSONObject  # its frontmatter
    files: dict[str, bytes]  # the content of each file, by its path in the skill
    scopes: list[str]
    hidden: bool
    complaints: list[str]  # what is wrong, each with its file and line; empty if nothing is


def uri_of(skill: str, path: str) -> str:
    """Return the URI of a file of a skill."""
    return f"{SKILL_SCHEME}{skill}/{quote(path)}"


def media_type(path: str, content: bytes) -> str:
    """Return the media type of a file, by its name or else by whether it is text."""
    guessed = GUESSED.guess_type(path)[0]
    if guessed:
        return guessed
    return "text/plain" if as_text(content) is not None else "application/octet-stream"


def as_text(content: bytes) -> str | None:
    """Return the text of a file; None if it is no UTF-8."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def read(folder: Path) -> SkillFolder:
    """Read the folder of a skill, as far as nothing is wrong with its files."""
    shown = f"skills/{folder.name}"
    complaints: list[str] = []
    if not NAME.fullmatch(folder.name):
        complaints.append(f"{shown}: rename it: a skill's name has 1 to 64 of a-z 0-9 and single hyphens between them")
    files = dict(_read_files(folder, shown, complaints))
    values: JSONObject = {}
    if MAIN_FILE in files:
        values, wrong = _read_main_file(files[MAIN_FILE], folder.name)
        complaints += [f"{shown}/{MAIN_FILE}:{line}: {reason}" for line, reason in wrong]
    elif not complaints:
        complaints.append(f"{shown} has no {MAIN_FILE}: a skill is a folder with that file")
    given = values.get("metadata")
    metadata = given if isinstance(given, dict) else {}
    scopes = str(metadata.get(SCOPES, "")).split()
    return SkillFolder(folder.name, values, files, scopes, metadata.get(HIDE) == "true", complaints)


def _read_main_file(content: bytes, folder: str) -> tuple[JSONObject, list[tuple[int, str]]]:
    """Return the frontmatter of a SKILL.md, and the line of what is wrong in it with the reason."""
    text = as_text(content)
    if text is None:
        return {}, [(1, "it is no UTF-8")]
    try:
        found = frontmatter.read(text)
    except frontmatter.Wrong as wrong:
        return {}, [(wrong.line, wrong.reason)]
    lines = found.lines
    wrong_fields = _wrong_fields(found.values, folder)
    return found.values, [(lines.get(key, lines.get(key.partition(".")[0], 1)), why) for key, why in wrong_fields]


def _read_files(folder: Path, shown: str, complaints: list[str]) -> Iterator[tuple[str, bytes]]:
    """Yield the path and the content of each file. Whatever is wrong becomes a complaint, and is not read."""
    total = 0
    found: list[tuple[str, Path]] = []
    folded: dict[str, str] = {}
    for path, entry in _walk(folder, shown, complaints):
        reason = _wrong_path(path, folded)
        if reason:
            complaints.append(f"{shown}/{path}: {reason}")
            continue
        total += entry.stat().st_size
        found.append((path, entry))
    if len(found) > MAX_FILES:
        complaints.append(f"{shown} has {len(found)} files, and a skill has at most {MAX_FILES}")
    if total > MAX_BYTES:
        complaints.append(f"{shown} has {total} bytes, and a skill has at most {MAX_BYTES} (256 KB) in all its files")
        found = [(path, entry) for path, entry in found if path == MAIN_FILE and entry.stat().st_size <= MAX_BYTES]
    for path, entry in found:
        try:
            yield path, entry.read_bytes()
        except OSError as error:
            complaints.append(f"{shown}/{path}: it cannot be read: {error.strerror}")


def _walk(folder: Path, shown: str, complaints: list[str]) -> Iterator[tuple[str, Path]]:
    """Yield each regular file below a folder, sorted, with its path. Names that begin with a dot are no files of it."""
    to_visit = [folder]
    while to_visit:
        current = to_visit.pop()
        for entry in sorted(current.iterdir(), reverse=True):
            path = entry.relative_to(folder).as_posix()
            if entry.name.startswith(".") or entry.name == "__pycache__":
                continue
            mode = entry.lstat().st_mode
            if stat.S_ISLNK(mode):
                target = os.readlink(entry)  # noqa: PTH115 - its target need not exist
                complaints.append(f"{shown}/{path}: it is a link to {target}: copy the file into the skill")
            elif stat.S_ISDIR(mode):
                to_visit.append(entry)
            elif stat.S_ISREG(mode):
                yield path, entry
            else:
                complaints.append(f"{shown}/{path}: it is no regular file")


def _wrong_path(path: str, folded: dict[str, str]) -> str | None:
    """Return what is wrong with the path of a file; `folded` keeps each path as case-insensitive systems see it."""
    if not path.isprintable() or UNSAFE.search(path):
        return 'rename it: a name has no control character and none of \\ : * ? " < > | % #'
    other = folded.setdefault(path.casefold(), path)
    name = path.rpartition("/")[2]
    reason = None
    if unicodedata.normalize("NFC", path) != path:
        reason = "rename it with composed characters (Unicode NFC): systems write the others differently"
    elif any(part != part.strip() or part.endswith(".") for part in path.split("/")):
        reason = "rename it: no name begins or ends with a blank, or ends with a dot"
    elif len(path) > MAX_PATH:
        reason = f"its path has {len(path)} characters, and at most {MAX_PATH} are allowed"
    elif other != path:
        reason = f"rename it: on some systems it is the same file as {other}"
    elif name != MAIN_FILE and name.casefold() == MAIN_FILE.casefold():
        reason = f"rename it to {MAIN_FILE}"
    return reason


def _wrong_fields(values: JSONObject, folder: str) -> Iterator[tuple[str, str]]:
    """Yield the key of each wrong field of the frontmatter, with what is wrong (agentskills.io/specification)."""
    name, description = values.get("name"), values.get("description")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        yield "name", "name is missing, or is not 1 to 64 of a-z 0-9 and single hyphens between them"
    elif name != folder:
        yield "name", f"name is {name!r}, and the folder is {folder!r}: they must be equal"
    if not isinstance(description, str) or not description.strip():
        yield "description", "description is missing, or is no text: say what the skill does and when to use it"
    elif len(description) > MAX_DESCRIPTION:
        yield "description", f"description has {len(description)} characters, and at most {MAX_DESCRIPTION} are allowed"
    if not isinstance(values.get("license", ""), str):
        yield "license", "license is a text"
    compatibility = values.get("compatibility", "any")
    if not isinstance(compatibility, str) or not 1 <= len(compatibility) <= MAX_COMPATIBILITY:
        yield "compatibility", f"compatibility is a text of 1 to {MAX_COMPATIBILITY} characters"
    tools = values.get("allowed-tools", "")
    if not isinstance(tools, str) and not (isinstance(tools, list) and all(isinstance(each, str) for each in tools)):
        yield "allowed-tools", "allowed-tools is a text with blanks between the tools"
    metadata = values.get("metadata", {})
    if not isinstance(metadata, dict):
        yield "metadata", "metadata is a mapping of texts"
        return
    for key, value in metadata.items():
        yield from _wrong_metadata(f"metadata.{key}", key, value, metadata)


def _wrong_metadata(place: str, key: str, value: object, metadata: JSONObject) -> Iterator[tuple[str, str]]:
    if not isinstance(value, str):
        yield place, f"{key} in metadata is a text: quote it"
    elif key.startswith(RESERVED):
        yield place, f"{key}: keys that begin with {RESERVED} are reserved for extensions of MCP"
    elif key == SCOPES and (not value.split() or not all(re.fullmatch(SCOPE, scope) for scope in value.split())):
        yield place, f'{key} is one or more scopes with blanks between: "trips:read trips:write"'
    elif key == HIDE and (value != "true" or SCOPES not in metadata):
        yield place, f'{key} is "true", beside {SCOPES}'
    elif key.startswith(OWN_META) and key not in {SCOPES, HIDE}:
        yield place, f"{key} is unknown: there are {SCOPES} and {HIDE}"


def wrong_links(skill: SkillFolder, uris: set[str]) -> Iterator[str]:
    """Yield a complaint for each link that leads nowhere, or out of the skill; `uris` are the files of all skills."""
    directories = {path.rpartition("/")[0] for path in skill.files}
    directories |= {parent for each in directories for parent in _parents(each)}
    for path, content in skill.files.items():
        if media_type(path, content) != MARKDOWN:
            continue
        for link in links.find(as_text(content) or ""):
            place = f"skills/{skill.name}/{path}:{link.line}"
            if link.scheme == SKILL_SCHEME.partition(":")[0]:
                if link.target.partition("#")[0] not in uris:
                    yield f"{place}: no skill of this project has the file {link.target}"
                continue
            if link.scheme in {"http", "https", "mailto"} or not link.path:
                continue
            if link.scheme:
                yield f"{place}: the link {link.target} leads out of the skill: {link.scheme}: is for one machine"
                continue
            # "resolves a relative reference against the skill's root"; people also write one from the file's folder.
            from_root, from_file = links.resolve(link.path, ""), links.resolve(link.path, path.rpartition("/")[0])
            if from_root is None and from_file is None:
                yield f"{place}: the link {link.target} leads out of the skill: copy the file into it"
            elif not {from_root, from_file} & (skill.files.keys() | directories):
                yield f"{place}: the skill has no file {link.target}"


def _parents(path: str) -> Iterator[str]:
    while path:
        yield path
        path = path.rpartition("/")[0]
    yield ""
