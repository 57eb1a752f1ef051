"""The project's KMS key, in a file, so that unfinished calls survive a restart of the harness.

    .mcp-functions/kms.json    {"keyId": "<UUID>", "material": "<32 bytes in base64>"}

The key protects only local experiments. Still, git ignores the folder, and only its owner can read the file.
"""

import base64
import json
import os
import re
import secrets
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from mcp_functions_harness.problems import Problem

FILE = "kms.json"
KEY_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")  # a UUID
MATERIAL_BYTES = 32  # AES-256


@dataclass(frozen=True)
class StoredKey:
    """A symmetric key: its id, and 32 bytes of material."""

    key_id: str
    material: bytes = field(repr=False)


def load(state_dir: Path) -> StoredKey:
    """Read the project's key from the harness's folder, or create it there.

    Raises:
        Problem: the file cannot be read or written, or is damaged.
    """
    file = state_dir / FILE
    try:
        if not file.exists():
            _create(file)
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise Problem(f"{file} cannot be read or created: {type(error).__name__}") from error
    return _parse(text, file)


def _parse(text: str, file: Path) -> StoredKey:
    try:
        content = json.loads(text)
        key = StoredKey(content["keyId"], base64.b64decode(content["material"], validate=True))
        if KEY_ID.fullmatch(key.key_id) and len(key.material) == MATERIAL_BYTES:
            return key
    except (ValueError, TypeError, KeyError):
        pass  # the file is damaged, too
    raise Problem(f"{file} is damaged: delete it to get a new key; conversations begun before must start again")


def _create(file: Path) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    ignore = file.parent / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n")
    content = {"keyId": str(uuid.uuid4()), "material": base64.b64encode(secrets.token_bytes(MATERIAL_BYTES)).decode()}
    draft = file.with_name(f".{FILE}.{secrets.token_hex(8)}")
    try:
        # The mode is set when the file is made, so another user can read it at no time.
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as draft_file:
            draft_file.write(json.dumps(content, indent=2) + "\n")
        os.link(draft, file)  # complete when it gets its name, so no harness reads half a key
    except FileExistsError:
        pass  # another harness was faster: its key is the project's
    finally:
        draft.unlink(missing_ok=True)
