"""Reading a text file that the user named, or saying in one sentence why it cannot be read; and writing a file whole.

Missing files get the nearest name that exists; folders, refused permissions and other encodings are told apart.
"""

from __future__ import annotations

import io
import os
import tokenize
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from harness.model.errors import InputError
from harness.model.spelling import listed, nearest


def read_text(path: Path, suffixes: Sequence[str] = (), also: Sequence[Path] = ()) -> str:
    """The text of `path`, UTF-8, with line ends turned into ``\\n``. When the file is missing, those with one of
    `suffixes` in its folder and in the folders `also` are offered instead. Raises InputError.
    """
    try:
        if path.is_dir():
            inside = [file for suffix in suffixes for file in files_in(path, (suffix,))]
            hint = f"Name a file in it, for example {shown(inside[0])}" if inside else None
            raise InputError("is a folder, not a file", path, hint=hint)
        if path.exists() and not path.is_file():
            raise InputError("is not a regular file, so it cannot be read", path)
        content = path.read_bytes()
    except PermissionError:
        raise InputError("permission denied", path, hint=f"Type chmod u+r {path}") from None
    except (FileNotFoundError, NotADirectoryError):
        raise _no_such_file(path, suffixes, also) from None
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        raise InputError(f"cannot be read ({getattr(error, 'strerror', None) or error})", path) from None
    return decoded(content, path)


def decoded(content: bytes, path: Path) -> str:
    """`content` as text, without a byte-order mark. Raises InputError with the line of the first bad byte."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError("is UTF-16, not UTF-8", path, 1, "Save it again as UTF-8.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        message = f"byte 0x{content[error.start]:02x} is not UTF-8"
        raise InputError(message, path, line, "Save the file again as UTF-8.") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def declared_encoding(content: bytes) -> str | None:
    """Another encoding than UTF-8 by which Python would read a file of this `content`; None for none."""
    try:
        declared, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
    except SyntaxError as error:
        return str(error)
    return None if declared in ("utf-8", "utf-8-sig") else declared


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a path beside `path` to write to, which takes its place at the end; what was begun and failed goes."""
    part = path.with_name(f"{path.name}.part")
    try:
        yield part
        os.replace(part, path)
    finally:
        with suppress(OSError):  # it has taken the place, as a rule
            part.unlink()


def joined(errors: Sequence[InputError]) -> InputError:
    """All that is wrong with the user's files as one InputError: a line for each, without repeats."""
    texts = list(dict.fromkeys(str(each) for each in errors))
    return errors[0] if len(texts) == 1 else InputError("\n".join(texts))


def shown(path: Path) -> str:
    """`path` as the user would type it: relative to the current folder where it lies below that."""
    try:
        return str(path.resolve().relative_to(Path.cwd().resolve())) if path.is_absolute() else str(path)
    except (ValueError, OSError):
        return str(path)


def files_in(folder: Path, suffixes: Sequence[str]) -> list[Path]:
    """The files of `folder` with one of `suffixes`, sorted; no hidden ones, and none without the folder."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    return [folder / name for name in names if name.endswith(tuple(suffixes)) and not name.startswith(".")]


def _no_such_file(path: Path, suffixes: Sequence[str], also: Sequence[Path]) -> InputError:
    here = files_in(path.parent, suffixes or (path.suffix,))
    # where a name fits several files, the kind of file named first is meant
    elsewhere = [folder for folder in also if not _is_same(folder, path.parent)]
    known = here + [file for folder in elsewhere for file in files_in(folder, suffixes)]
    known.sort(key=lambda file: suffixes.index(file.suffix) if file.suffix in suffixes else len(suffixes))
    by_name: dict[str, Path] = {}
    by_stem: dict[str, Path] = {}
    for file in known:
        by_name.setdefault(file.name, file)
        by_stem.setdefault(file.stem, file)
    name, stem = nearest(path.name, by_name), nearest(path.stem, by_stem)
    guess = by_stem.get(path.stem) or by_name.get(name) or by_stem.get(stem)
    if guess is not None:
        hint = f"Did you mean {shown(guess)}?"
    else:
        alike = [shown(file) for file in known if file.suffix in (path.suffix, known[0].suffix)]
        hint = f"There {'is' if len(alike) == 1 else 'are'} {listed(alike)}." if alike else None
    missing = "no such file" if path.parent.is_dir() else f"no such file: there is no folder {path.parent}"
    return InputError(missing, path, hint=hint)


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False
