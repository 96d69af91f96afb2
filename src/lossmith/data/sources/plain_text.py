"""Files of text in any encoding, compressed or not, as UTF-8 with one kind of line end."""

import bz2
import codecs
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from lossmith.data.sources.size_limit import check_size, most_bytes

__all__ = ["byte_stream", "utf8_text"]

_OPENERS: dict[str, Callable[[Path, Any], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_UTF_8_MARK = b"\xef\xbb\xbf"
_BLOCK = 2**22  # bytes


def utf8_text(path: Path) -> Path | bytes:
    """Return the contents as UTF-8: UTF-8 or UTF-16 if they can be read so, or else Windows' Western encoding.

    Args:
        path: The file, compressed or not.

    Returns:
        The file itself where it is such text already, so that a large one need not be held in memory; or else its text.

    Raises:
        ValueError: If the file is empty, holds binary data, cannot be unpacked, or unpacks to too much.
    """
    if path.suffix.lower() not in _OPENERS and _is_plain(path):
        return path
    raw = _unpacked(path)
    if b"\0" in raw and not raw.startswith(_UTF_16):
        raise ValueError(f"{path}: not a table of text, but binary data.")
    text = _as_utf8(raw)
    text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in text else text
    if not text.strip():
        raise ValueError(f"{path}: the file is empty.")
    return text


def byte_stream(text: Path | bytes) -> IO[bytes]:
    """Return a stream of what :func:`utf8_text` returned.

    Args:
        text: A path, or the text itself.

    Returns:
        An open stream, for the caller to close.
    """
    return io.BytesIO(text) if isinstance(text, bytes) else text.open("rb")


def _is_plain(path: Path) -> bool:
    """Return whether a file is UTF-8 without a mark, with newlines alone, and not only of spaces."""
    decoder, found = codecs.getincrementaldecoder("utf-8")(), False
    try:
        for place, block in enumerate(_blocks(path)):
            if b"\0" in block or b"\r" in block or (place == 0 and block.startswith(_UTF_8_MARK)):
                return False
            decoder.decode(block)
            found = found or bool(block.strip())
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return found


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            yield block


def _unpacked(path: Path) -> bytes:
    try:
        with _OPENERS.get(path.suffix.lower(), Path.open)(path, "rb") as file:
            raw: bytes = file.read(most_bytes() + 1)
    except (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error) as error:
        raise ValueError(f"{path}: cannot be unpacked ({error}).") from error
    check_size(len(raw), path)
    return raw


def _as_utf8(raw: bytes) -> bytes:
    if raw.startswith(_UTF_16):
        return raw.decode("utf-16", errors="replace").encode()
    try:
        return raw.removeprefix(_UTF_8_MARK) if raw.decode("utf-8") else raw
    except UnicodeDecodeError:
        return raw.decode("cp1252", errors="replace").encode()
