"""Which browser the tests take."""

from pathlib import Path

import pytest

from book.paper.browser import SYSTEM, chosen_browser


def browser(folder: Path, name: str) -> str:
    path = folder / name
    path.touch(mode=0o755)
    return str(path)


@pytest.fixture(autouse=True)
def commands(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("BOOK_BROWSER", raising=False)
    return tmp_path


def test_the_systems_browser_is_taken_and_else_playwrights_own(commands):
    assert chosen_browser() is None
    for name in reversed(SYSTEM):
        there = browser(commands, name)
        assert chosen_browser() == there


def test_another_can_be_asked_for(commands, monkeypatch):
    for name in SYSTEM:
        browser(commands, name)
    monkeypatch.setenv("BOOK_BROWSER", "chromium")
    assert chosen_browser() == str(commands / "chromium")
    monkeypatch.setenv("BOOK_BROWSER", str(commands / "google-chrome"))
    assert chosen_browser() == str(commands / "google-chrome")
    monkeypatch.setenv("BOOK_BROWSER", "playwright")
    assert chosen_browser() is None
    monkeypatch.setenv("BOOK_BROWSER", "firefox")
    with pytest.raises(ValueError, match="BOOK_BROWSER: expected a Chromium.* got 'firefox'"):
        chosen_browser()
