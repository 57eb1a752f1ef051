"""Reads the body of an HTTP/1.1 request, by its length or in chunks, up to a limit (RFC 9112, section 6).

A chunk is its size in hexadecimal, a line break, the bytes, and a line break. A chunk of size 0, trailers (headers
after the body) and an empty line end the body.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from email.message import Message
    from io import BufferedIOBase

LINE = 1024  # longest line with a chunk's size, and longest trailer, in bytes
SIZE_DIGITS = 16  # most digits of a chunk's size: 64 bits
TRAILERS = 64  # most trailers, which are header lines after the last chunk
DISCARDED = 32 * 1024 * 1024  # bytes read beyond the limit, so that the client can read the 413


class BadBody(ValueError):
    """The framing is broken, so the end of the request is unknown."""


class TooLarge(ValueError):
    """The body is over the limit."""


def read_body(stream: BufferedIOBase, headers: Message, limit: int) -> bytes | None:
    """Read the body of one request.

    Args:
        stream: the connection, after the request's headers.
        headers: the request's headers.
        limit: the most bytes that a body may have.

    Returns:
        None if the request has no body.

    Raises:
        BadBody: the framing is ambiguous or broken.
        TooLarge: the body is over the limit. Up to DISCARDED bytes of it were read.
    """
    coding = headers.get("Transfer-Encoding")
    lengths = headers.get_all("Content-Length") or []
    if coding is not None:
        # "A server MAY reject a request that contains both Content-Length and Transfer-Encoding" (section 6.1), because
        # two readings of the length would let one request hide inside another.
        if lengths or coding.strip().lower() != "chunked":
            raise BadBody
        return _limited(_chunks(stream), limit)
    if not lengths:
        return None
    if len(set(lengths)) > 1 or not (lengths[0].isascii() and lengths[0].isdigit()):
        raise BadBody
    return _limited(_counted(stream, int(lengths[0])), limit) or None


def _limited(pieces: Iterator[bytes], limit: int) -> bytes:
    """Join the pieces of a body; read and forget a body over the limit, up to DISCARDED bytes."""
    parts = []
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > limit + DISCARDED:
            break
        if size <= limit:
            parts.append(piece)
    if size > limit:
        raise TooLarge
    return b"".join(parts)


def _counted(stream: BufferedIOBase, length: int) -> Iterator[bytes]:
    while length > 0:
        piece = stream.read(min(length, 65536))
        if not piece:
            raise BadBody
        length -= len(piece)
        yield piece


def _chunks(stream: BufferedIOBase) -> Iterator[bytes]:
    length = _chunk_size(stream)
    while length > 0:
        yield from _counted(stream, length)
        if stream.read(2) != b"\r\n":
            raise BadBody
        length = _chunk_size(stream)
    for _ in range(TRAILERS):
        if stream.readline(LINE) == b"\r\n":
            return
    raise BadBody


def _chunk_size(stream: BufferedIOBase) -> int:
    size = stream.readline(LINE).partition(b";")[0].strip()  # after a semicolon come extensions, which are ignored
    if not size or len(size) > SIZE_DIGITS:
        raise BadBody
    if size.strip(b"0123456789abcdefABCDEF"):  # int() would accept a sign, "0x" and underscores too
        raise BadBody
    return int(size, 16)
