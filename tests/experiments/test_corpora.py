"""Corpora: checked, cached, split by whole documents; the same text for every run that asks."""

import hashlib
import os
import tarfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.harness.core import files
from experiments.harness.learning import corpora
from experiments.harness.learning.batches import held_out_tokens, update_tokens
from experiments.harness.learning.corpora import CorpusError, load_corpus
from experiments.harness.learning.prepared import Split

BOOKS = {
    "Doyle_Hound_1902.txt": b"\xef\xbb\xbfMr. Sherlock\r\nHolmes",
    "Hardy_Tess_1891.txt": b"On an evening\r\n",
    "Lee_Brown_1884.txt": b"The lamp-light\n",
}


@pytest.fixture
def small_novels(tmp_path, monkeypatch):
    """Three made books with a manifest of their own, as a folder."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    for name, text in BOOKS.items():
        (folder / name).write_bytes(text)
    lines = [f"{hashlib.sha256(text).hexdigest()}  {name}" for name, text in BOOKS.items()]
    (tmp_path / "novels.sha256").write_text("\n".join(lines))
    monkeypatch.setattr(corpora, "HERE", tmp_path)
    monkeypatch.delenv("LSA_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    return folder


def test_a_folder_becomes_splits_of_whole_books(small_novels, tmp_path):
    corpus = load_corpus("novels", small_novels, tmp_path / "cache")
    texts = {name: bytes(split.tokens) for name, split in corpus.splits.items()}
    assert texts == {
        "train": b"The lamp-light\n",
        "validation": b"Mr. Sherlock\nHolmes",
        "test": b"On an evening\n",
    }
    again = load_corpus("novels", cache=tmp_path / "cache")
    assert again.sha256 == corpus.sha256


def test_an_archive_gives_the_same_bytes(small_novels, tmp_path):
    archive = tmp_path / "100_english_novels-1.4.tar.xz"
    with tarfile.open(archive, "w:xz") as tar:
        tar.add(small_novels, "novels/corpus")
    a = load_corpus("novels", archive, tmp_path / "a")
    b = load_corpus("novels", small_novels, tmp_path / "b")
    assert a.sha256 == b.sha256
    whole = archive.read_bytes()
    middle = len(whole) // 2
    flipped = whole[:middle] + bytes(byte ^ 0xFF for byte in whole[middle : middle + 8])
    # Cut short; bytes flipped in what is packed, which lzma finds; a head that is none.
    for spoiled in (whole[:middle], flipped + whole[middle + 8 :], b"\0" * 8 + whole[8:]):
        archive.write_bytes(spoiled)
        with pytest.raises(CorpusError, match="not a whole archive.*fetch it again"):
            load_corpus("novels", archive, tmp_path / "c")
        assert not (tmp_path / "c").exists()


def test_a_book_that_is_another_or_missing_is_named(small_novels, tmp_path):
    book = small_novels / "Hardy_Tess_1891.txt"
    book.write_bytes(b"something else")
    with pytest.raises(CorpusError, match=f"{book.name}: expected SHA-256"):
        load_corpus("novels", small_novels, tmp_path / "cache")
    book.unlink()
    with pytest.raises(CorpusError, match=f"{book.name}: cannot be read"):
        load_corpus("novels", small_novels, tmp_path / "cache")


def test_no_network_says_what_to_do(small_novels, tmp_path, monkeypatch):
    for book in small_novels.iterdir():
        book.unlink()

    def offline(*arguments, **options):
        raise OSError("no route to host")

    monkeypatch.setattr("pooch.retrieve", offline)
    with pytest.raises(CorpusError, match=r"cannot be fetched.*\./data.*--corpus-source"):
        load_corpus("novels", None, tmp_path / "cache")


def test_another_corpus_is_refused():
    with pytest.raises(CorpusError, match="corpus: expected novels, got 'shakespeare'"):
        load_corpus("shakespeare")


def test_the_real_manifest_and_held_out_books():
    names = [line.split()[1] for line in (corpora.HERE / "novels.sha256").read_text().splitlines()]
    titles = {name.removesuffix(".txt") for name in names}
    held_out = {*corpora.VALIDATION_NOVELS, *corpora.TEST_NOVELS}
    assert len(titles) == 100
    assert len(held_out) == 10
    assert held_out <= titles


documents = st.lists(st.integers(1, 60), min_size=1, max_size=5)


@given(documents, st.integers(0, 5), st.integers(0, 50), st.integers(1, 3), st.sampled_from([1, 2]))
def test_updates_are_spans_inside_one_document(lengths, seed, update, spans, pieces):
    span = 8
    lengths = [*lengths, 20]
    # Every token says which document it is in and where.
    tokens = np.concatenate([100 * d + np.arange(n) for d, n in enumerate(lengths)])
    split = Split(tokens, np.cumsum([0, *lengths]))
    inputs, targets = update_tokens(
        split, seed=seed, update=update, spans=spans, span=span, context=span // pieces
    )
    assert inputs.shape == targets.shape == (spans * pieces, span // pieces)
    assert (targets == inputs + 1).all()
    whole = inputs.reshape(spans, span)
    assert (whole // 100 == whole[:, :1] // 100).all()
    again, _ = update_tokens(split, seed=seed, update=update, spans=spans, span=span, context=span)
    assert (again == whole).all()


def test_every_place_can_be_drawn():
    split = Split(np.arange(12), np.array([0, 6, 12]))
    starts = {
        update_tokens(split, seed=0, update=u, spans=1, span=4, context=4)[0][0, 0].item()
        for u in range(200)
    }
    assert starts == {0, 1, 6, 7}


def test_held_out_spans_are_fixed_and_spread():
    split = Split(np.arange(3000), np.array([0, 1000, 2000, 3000]))
    inputs, targets = held_out_tokens(split, span=64, context=16, spans=6)
    assert inputs.shape == (24, 16)
    assert (targets == inputs + 1).all()
    starts = inputs.reshape(6, 64)[:, 0]
    assert sorted((starts // 1000).tolist()) == [0, 0, 1, 1, 2, 2]
    with pytest.raises(ValueError, match="context: expected a divisor of the span 64, got 48"):
        held_out_tokens(split, span=64, context=48, spans=1)
    with pytest.raises(ValueError, match="span: no document is longer than 4096"):
        held_out_tokens(split, span=4096, context=16, spans=1)


@pytest.mark.parametrize("how", ["cut", "zeroed", "another"])
def test_a_spoiled_cache_is_prepared_again(made_corpus, capsys, monkeypatch, how):
    whole = corpora.load_corpus("novels")
    documents = [
        (split, np.array(part.tokens[a:b]))
        for split, part in whole.splits.items()
        for a, b in zip(part.starts[:-1], part.starts[1:], strict=True)
    ]
    monkeypatch.setattr(corpora, "novels", lambda source: iter(documents))
    place = made_corpus / "novels.npz"
    raw = place.read_bytes()
    half = raw[: len(raw) // 2]
    place.write_bytes({"cut": half, "zeroed": half + bytes(len(half)), "another": b"{}"}[how])
    again = corpora.load_corpus("novels")
    assert again.sha256 == whole.sha256
    assert again.splits["train"].tokens.dtype == np.uint8
    assert again.splits["train"].starts.tolist() == [0, 5000, 8000]
    assert "not as it was written; prepared again" in capsys.readouterr().err


@pytest.mark.parametrize("cache", ["file", "file/below", "a" * 300, "full"])
def test_a_cache_that_cannot_be_written_is_named(small_novels, tmp_path, monkeypatch, cache):
    (tmp_path / "file").write_text("")
    if cache == "full":

        def full(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(CorpusError, match="(directory|exists|too long|No space left)"):
        load_corpus("novels", small_novels, tmp_path / cache)
    assert (tmp_path / "file").is_file() and not list(tmp_path.glob("full/*"))


def test_an_archive_that_cannot_be_read_is_one_line(small_novels, tmp_path):
    with tarfile.open(tmp_path / "novels.tar", "w") as tar:
        member = tarfile.TarInfo("a.txt")
        member.pax_headers = {"GNU.sparse.map": "x,y"}
        tar.addfile(member)
    with pytest.raises(CorpusError, match="not a whole archive .*fetch it again"):
        load_corpus("novels", tmp_path / "novels.tar", tmp_path / "cache")
    with pytest.raises(CorpusError, match="File name too long"):
        load_corpus("novels", tmp_path / ("a" * 300), tmp_path / "cache")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("nowhere", "nowhere: no such"),
        (os.devnull, "/dev/null: expected a folder or a regular file"),
        ("pipe", "pipe: expected a folder or a regular file"),
    ],
)
def test_a_source_that_is_none_is_refused_even_when_there_is_a_cache(
    made_corpus, tmp_path, monkeypatch, source, expected
):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    with pytest.raises(CorpusError, match=f"^corpus source {expected}"):
        load_corpus("novels", source=Path(source))
    monkeypatch.setenv("LSA_DATA", source)
    with pytest.raises(CorpusError, match=f"LSA_DATA={expected}"):
        load_corpus("novels")


def test_a_pipe_is_not_waited_for(tmp_path):
    (tmp_path / "corpus").mkdir()
    os.mkfifo(tmp_path / "100_english_novels.tar.gz")
    with pytest.raises(corpora.CorpusError, match="expected a file"):
        corpora.load_corpus("novels", source=tmp_path, cache=tmp_path / "cache")


def test_without_a_home_the_cache_has_to_be_named(monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("LSA_CACHE", raising=False)
    monkeypatch.setattr(corpora.Path, "home", homeless)
    with pytest.raises(corpora.CorpusError, match="no home directory: set LSA_CACHE"):
        corpora.load_corpus("novels")
