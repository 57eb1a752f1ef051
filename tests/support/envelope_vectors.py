"""The published test vectors of the envelope, as other implementations read them too.

Each file of `tests/seal/vectors/envelope` holds one token, and says whether a reader accepts it. A file is lines of
`name: value`; envelope.md §11 says what each name means.
"""

from __future__ import annotations

from pathlib import Path
from unittest import mock

from mcp_functions.protocol.errors import InvalidRequestState
from mcp_functions.seal.envelope import Envelope
from mcp_functions.seal.keyring import Keyring
from mcp_functions.seal.keys import Scope

FOLDER = Path(__file__).parents[1] / "seal" / "vectors" / "envelope"


class Vector(dict[str, str]):
    """The lines of one file, by name."""

    @property
    def refusal(self) -> str | None:
        """The reason for which a reader refuses the token; None if the reader accepts it."""
        expected = self["expect"]
        return None if expected == "accept" else expected.removeprefix("refuse ")

    @property
    def payload(self) -> bytes:
        """The bytes in the token. A long payload is written `<byte in hexadecimal> * <count>`."""
        if " * " in self["payload"]:
            byte, count = self["payload"].split(" * ")
            return bytes.fromhex(byte) * int(count)
        return bytes.fromhex(self["payload"])

    @property
    def about(self) -> bytes:
        """The further context to which the token is bound."""
        return bytes.fromhex(self.get("about", ""))

    def envelope(self, at: str = "now") -> Envelope:
        """Make the vector's envelope. Its clock shows the vector's `now`, or its `born`, when the token was written."""
        scope = Scope(self["service"], self["stage"], self["generation"])
        envelope = RepeatingEnvelope(
            Keyring([RecordedKms(self)], scope, now=lambda: float(self[at])),
            label=self["label"].encode(),
            max_age=int(self["max-age"]),
            max_chars=int(self["max-chars"]),
        )
        envelope.entropy = bytes.fromhex(self.get("entropy", ""))
        return envelope


class RepeatingEnvelope(Envelope):
    """An envelope that seals with the entropy of a vector, and so makes the vector's token again."""

    entropy: bytes

    def seal(self, payload: bytes, *, about: bytes = b"") -> str:
        with mock.patch("os.urandom", return_value=self.entropy):
            return super().seal(payload, about=about)


class RecordedKms:
    """The KMS of a vector: it generates and unwraps the vector's one data key."""

    def __init__(self, vector: Vector) -> None:
        self.vector = vector
        self.id = vector["key-id"]

    def generate(self, context: dict[str, str]) -> tuple[bytes, bytes]:
        assert context["born"] == self.vector["born"]
        return bytes.fromhex(self.vector["data-key"]), bytes.fromhex(self.vector["wrapped"])

    def unwrap(self, wrapped: bytes, context: dict[str, str]) -> bytes:
        if wrapped.hex() != self.vector["wrapped"] or context["born"] != self.vector["born"]:
            raise InvalidRequestState(reason="wrapped_key")
        return bytes.fromhex(self.vector["data-key"])


def read_vector(path: Path) -> Vector:
    lines = path.read_text(encoding="utf-8").splitlines()
    return Vector(line.split(": ", 1) for line in lines if not line.startswith("#"))


VECTORS = {path.stem: read_vector(path) for path in sorted(FOLDER.glob("*.txt"))}
