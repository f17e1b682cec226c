"""Text to learn from: 100 English novels as bytes, 78 MB, with whole novels held out.

They are prepared once into a cache, a file of arrays.
"""

from __future__ import annotations

import hashlib
import os
import tarfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from ..core.files import one_line
from .prepared import Corpus, CorpusError, open_prepared, store

HERE = Path(__file__).resolve().parent
VOCAB = 256  # different tokens: bytes

NOVELS_COMMIT = "143e601875d70e195f2cc5ebd8b034609271194d"
NOVELS_URL = (
    "https://raw.githubusercontent.com/computationalstylistics/100_english_novels/"
    f"{NOVELS_COMMIT}/corpus/"
)
# Whole books are held out, so that no sentence of them is trained on. Their authors wrote other
# books of the corpus: new text in a known style.
VALIDATION_NOVELS = (
    "Doyle_Hound_1902",
    "Eliot_Felix_1866",
    "Gaskell_Ruth_1855",
    "Kipling_Kim_1901",
    "Woolf_Lighthouse_1927",
)
TEST_NOVELS = (
    "Cbronte_Villette_1853",
    "Conrad_Almayer_1895",
    "Hardy_Tess_1891",
    "Stevenson_Treasure_1883",
    "Trollope_Phineas_1869",
)


def load_corpus(name: str, source: Path | None = None, cache: Path | None = None) -> Corpus:
    """Open the corpus "novels", prepared at its first use.

    source: an archive or folder that has it; by default $LSA_DATA if set, then ./data, then the
        network.
    cache: folder of the prepared file; by default $LSA_CACHE or ~/.cache/lsa-book.

    Raises CorpusError if it cannot be found, or does not match its checksums.
    """
    if name != "novels":
        raise CorpusError(f"corpus: expected novels, got {name!r}")
    try:
        for _ in _sources(source):  # a named source must exist, even if it is not needed
            pass
        path = Path(cache or _default_cache(), f"{name}.npz")
        if (found := open_prepared(path)) is None:
            store(path, novels(source))
            found = open_prepared(path)
        assert found is not None  # it was written just now
        return found
    except OSError as error:
        raise CorpusError(f"{name}: {one_line(error)}") from error


def opener(source: Path | None) -> Callable[[str], Corpus]:
    """`load_corpus` with a source, which must exist. Raises CorpusError."""
    if source is not None:
        named_place(f"corpus source {source}", source)
    return partial(load_corpus, source=source)


def _default_cache() -> Path:
    if os.environ.get("LSA_CACHE"):
        return Path(os.environ["LSA_CACHE"])
    try:
        return Path.home() / ".cache" / "lsa-book"
    except RuntimeError as error:
        raise CorpusError("no home directory: set LSA_CACHE to a folder for the corpora") from error


def _sources(source: Path | None) -> Iterator[Path]:
    """Places that may have a corpus. A named place must exist."""
    if source is not None:
        yield named_place(f"corpus source {source}", Path(source))
        return
    if os.environ.get("LSA_DATA"):
        yield named_place(f"LSA_DATA={os.environ['LSA_DATA']}", Path(os.environ["LSA_DATA"]))
    yield Path("data")


def named_place(where: str, place: Path) -> Path:
    """The place, if a corpus can be read from it. Raises CorpusError, starting with `where`."""
    if not place.exists():
        raise CorpusError(f"{where}: no such file or folder")
    if not (place.is_file() or place.is_dir()):  # reading a pipe would wait
        raise CorpusError(f"{where}: expected a folder or a regular file")
    return place


def novels(source: Path | None = None) -> Iterator[tuple[str, np.ndarray]]:
    """(split, bytes) of each novel, without byte-order marks, with newlines as line ends."""
    lines = (HERE / "novels.sha256").read_text().splitlines()
    sums = {file: digest for digest, file in map(str.split, lines)}
    reader = _novel_reader(source, sums)
    for file, expected in sorted(sums.items()):
        raw = reader(file)
        found = hashlib.sha256(raw).hexdigest()
        if found != expected:
            raise CorpusError(
                f"{file}: expected SHA-256 {expected[:12]}…, got {found[:12]}…; "
                f"delete it and fetch the corpus again at commit {NOVELS_COMMIT[:7]}"
            )
        text = raw.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")
        title = file.removesuffix(".txt")
        split = "train"
        if title in VALIDATION_NOVELS:
            split = "validation"
        elif title in TEST_NOVELS:
            split = "test"
        yield split, np.frombuffer(text, np.uint8)


def _novel_reader(source: Path | None, sums: dict[str, str]) -> Callable[[str], bytes]:
    for place in _sources(source):
        archives = [place] if place.is_file() else sorted(place.glob("100_english_novels*.tar.*"))
        if archives:
            return _archive_reader(archives[0])
        folders = [f for f in (place, place / "corpus", place / "novels" / "corpus") if f.is_dir()]
        for folder in folders:
            if any((folder / file).exists() for file in sums):
                return lambda file, folder=folder: _read_file(folder / file)
        if source is not None:
            raise CorpusError(
                f"corpus source {source}: expected the novels' archive or a folder of their .txt"
            )
    return lambda file: _read_file(_download(NOVELS_URL + file, sums[file]))


def _read_file(path: Path) -> bytes:
    if path.exists() and not path.is_file():  # reading a pipe would wait
        raise CorpusError(f"{path}: expected a file")
    try:
        return path.read_bytes()
    except OSError as error:
        raise CorpusError(f"{path}: cannot be read ({error.strerror})") from error


def _archive_reader(archive: Path) -> Callable[[str], bytes]:
    if not archive.is_file():
        raise CorpusError(f"{archive}: expected a file")
    try:
        with tarfile.open(archive) as tar:
            files = {
                Path(member.name).name: file.read()
                for member in tar
                if member.isfile() and member.name.endswith(".txt")
                if (file := tar.extractfile(member))
            }
    except Exception as error:  # any error of a damaged archive
        said = str(error).partition("\n")[0].rstrip(":")  # without a list of other formats
        raise CorpusError(f"{archive}: not a whole archive ({said}); fetch it again") from error

    def read(file: str) -> bytes:
        if file not in files:
            raise CorpusError(f"{archive}: {file} is missing; fetch the archive again")
        return files[file]

    return read


def _download(url: str, sha256: str) -> Path:
    """The local path of a file, downloaded once and checked."""
    try:
        import pooch
    except ImportError as error:
        raise CorpusError("pooch is needed to download a corpus: pip install pooch") from error
    try:
        return Path(pooch.retrieve(url, known_hash=f"sha256:{sha256}", progressbar=False))
    except (OSError, ValueError) as error:
        raise CorpusError(
            f"{url}: cannot be fetched ({type(error).__name__}); without a network, put the corpus "
            "in ./data or name it with --corpus-source"
        ) from error
