"""A folder that is no plain skill is refused by file and line, before anything of it reaches a host."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from mcp_functions_harness import skills
from mcp_functions_harness.skills.folder import MAX_BYTES, MAX_FILES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

HEAD = b"---\nname: demo\ndescription: Do.\n---\n"


def complaints(root: Path, files: Mapping[str, bytes]) -> list[str]:
    """Write the files of a skill `demo`, and examine it."""
    for path, content in files.items():
        file = root / "skills" / "demo" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return skills.examine(root / "functions").complaints


def front(yaml: str) -> bytes:
    return f"---\n{yaml}---\nBody\n".encode()


DEEP = "name: demo\ndescription: " + "[" * 5000 + "]" * 5000 + "\n"
LAUGHS = "a: &a [x, x]\nname: demo\ndescription: *a\n"


@pytest.mark.parametrize(
    ("written", "line", "said"),
    [
        (b"# No YAML\n", 1, "begins with a line ---"),
        (b"\xef\xbb\xbf" + HEAD, 1, "begins with a line ---"),
        (b"---\nname: demo\n", 1, "begins with a line ---"),
        (b"\xff\xfe---\n", 1, "no UTF-8"),
        (front("- name\n"), 2, "no mapping"),
        (front("name: other\ndescription: Do.\n"), 2, "the folder is 'demo'"),
        (front("name: Demo\ndescription: Do.\n"), 2, "name is missing, or is not"),
        (front("description: Do.\n"), 1, "name is missing"),
        (front("name: demo\n"), 1, "description is missing"),
        (front("name: demo\ndescription: '  '\n"), 3, "description is missing"),
        (front(f"name: demo\ndescription: {'d' * 1025}\n"), 3, "1025 characters"),
        (front("name: demo\ndescription: Do: it\n"), 3, "this is no YAML"),
        (front("name: demo\ndescription: Do.\nname: demo\n"), 4, "is here twice"),
        (front("name: demo\ndescription: Do.\nfresh: on\n"), 4, 'quote "on"'),
        (front("name: demo\ndescription: Do.\nday: 2026-01-01\n"), 4, 'quote "2026-01-01"'),
        (front("name: demo\ndescription: Do.\nnumber: 010\n"), 4, 'quote "010"'),
        (front("name: demo\ndescription: Do.\nnumber: .inf\n"), 4, "JSON has no number"),
        (front("name: demo\ndescription: Do.\nnumber: 9007199254740993\n"), 4, "JavaScript rounds"),
        (front("name: demo\ndescription: Do.\n1: one\n"), 4, "a key is a text"),
        (front("name: demo\ndescription: Do.\nx: !!python/object/apply:os.system ['id']\n"), 4, "remove the tag"),
        (front(LAUGHS), 2, "anchors (&) and aliases"),
        (front(DEEP), 3, "deep"),
        (front(f"name: demo\ndescription: Do.\nx: {'y' * 20_000}\n"), 1, "at most 16384"),
        (front('name: demo\ndescription: "a\\0b"\n'), 3, "control character"),
        (front("name: demo\ndescription: Do.\nmetadata: {version: 1.0}\n"), 4, "is a text: quote it"),
        (front("name: demo\ndescription: Do.\nmetadata: {io.modelcontextprotocol/x: y}\n"), 4, "reserved"),
        (front("name: demo\ndescription: Do.\nmetadata: {mcp-functions/scope: y}\n"), 4, "is unknown: there are"),
        (front("name: demo\ndescription: Do.\nmetadata: {mcp-functions/hide-without-scopes: 'true'}\n"), 4, "beside"),
        (HEAD + b"\n[a](../secret.md)\n", 6, "leads out of the skill"),
        (HEAD + b"[a](/etc/passwd)\n", 5, "leads out of the skill"),
        (HEAD + b"[a](%2e%2e/secret.md)\n", 5, "leads out of the skill"),
        (HEAD + b"![a](<file:///etc/passwd>)\n", 5, "leads out of the skill"),
        (HEAD + b"[a]: references/none.md\n", 5, "has no file"),
        (HEAD + b"[a](skill://other/SKILL.md)\n", 5, "no skill of this project"),
    ],
)
def test_what_is_wrong_in_skill_md_is_named_with_its_line(tmp_path: Path, written: bytes, line: int, said: str) -> None:
    found = complaints(tmp_path, {"SKILL.md": written})
    assert any(each.startswith(f"skills/demo/SKILL.md:{line}: ") and said in each for each in found), found


def test_links_to_files_of_the_skill_and_into_the_web_are_right(tmp_path: Path) -> None:
    body = (
        b"[a](references/a.md#top) [b](references/) [c](https://example.com) [d](skill://demo/SKILL.md) `[e](../no)`\n"
    )
    fenced = b"```\n[f](../no)\n```\n[g](references/my%20notes.txt)\n"
    files = {"SKILL.md": HEAD + body + fenced, "references/a.md": b"[up](../SKILL.md)", "references/my notes.txt": b""}
    assert complaints(tmp_path, files) == []


def test_a_skill_of_more_than_256_kb_is_refused_with_its_size_and_the_limit(tmp_path: Path) -> None:
    room = MAX_BYTES - len(HEAD)
    assert complaints(tmp_path, {"SKILL.md": HEAD, "a.bin": b"\xff" * room}) == []
    found = complaints(tmp_path, {"SKILL.md": HEAD, "a.bin": b"\xff" * (room + 1)})
    assert found == [
        f"skills/demo has {MAX_BYTES + 1} bytes, and a skill has at most {MAX_BYTES} (256 KB) in all its files"
    ]


def test_a_skill_of_too_many_files_is_refused(tmp_path: Path) -> None:
    found = complaints(tmp_path, {"SKILL.md": HEAD} | {f"{number}.md": b"" for number in range(MAX_FILES)})
    assert found == [f"skills/demo has {MAX_FILES + 1} files, and a skill has at most {MAX_FILES}"]


@pytest.mark.parametrize("name", ["a\\b.md", "a:b.md", "a\nb.md", "e\u0301.md", " a.md", "a.", "100%.md", "skill.md"])
def test_a_name_that_some_system_reads_differently_is_refused(tmp_path: Path, name: str) -> None:
    assert [each for each in complaints(tmp_path, {"SKILL.md": HEAD, name: b""}) if "rename it" in each]


def test_two_names_that_are_one_file_on_some_systems_are_refused(tmp_path: Path) -> None:
    assert len(complaints(tmp_path, {"SKILL.md": HEAD, "a.md": b"", "A.md": b""})) == 1


def test_links_of_the_file_system_are_refused_and_never_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret", encoding="utf-8")
    assert complaints(tmp_path, {"SKILL.md": HEAD}) == []
    folder = tmp_path / "skills" / "demo"
    (folder / "file.txt").symlink_to(secret)
    (folder / "folder").symlink_to(tmp_path)
    (folder / "circle").symlink_to(folder)
    (tmp_path / "skills" / "linked").symlink_to(folder)
    os.mkfifo(folder / "pipe")
    examined = skills.examine(tmp_path / "functions")
    assert len(examined.complaints) == 5
    assert list(examined.content["files"]) == ["skill://demo/SKILL.md"]


@pytest.mark.parametrize("name", ["Demo", "-demo", "de--mo", "démo", "d" * 65, "de mo"])
def test_a_folder_with_a_wrong_name_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "skills" / name).mkdir(parents=True)
    (tmp_path / "skills" / name / "SKILL.md").write_bytes(HEAD)
    assert [each for each in skills.examine(tmp_path / "functions").complaints if "rename it" in each]


def test_a_folder_without_skill_md_is_refused_and_hidden_files_are_left_out(tmp_path: Path) -> None:
    assert complaints(tmp_path, {"a.md": b""}) == ["skills/demo has no SKILL.md: a skill is a folder with that file"]
    assert complaints(tmp_path, {"SKILL.md": HEAD, ".env": b"KEY=1"}) == []
    assert list(skills.examine(tmp_path / "functions").content["files"]) == [
        "skill://demo/SKILL.md",
        "skill://demo/a.md",
    ]
