"""Which browser the tests take."""

import pytest

from book.paper.browser import SYSTEM, chosen_browser


@pytest.fixture(autouse=True)
def commands(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("BOOK_BROWSER", raising=False)
    return tmp_path


def test_the_systems_browser_is_taken_and_else_playwrights_own(commands):
    assert chosen_browser() is None
    for name in reversed(SYSTEM):
        (commands / name).touch(mode=0o755)
        assert chosen_browser() == str(commands / name)


def test_another_can_be_asked_for(commands, monkeypatch):
    for name in SYSTEM:
        (commands / name).touch(mode=0o755)
    path = str(commands / "google-chrome")
    for asked, taken in (("google-chrome", path), (path, path), ("playwright", None)):
        monkeypatch.setenv("BOOK_BROWSER", asked)
        assert chosen_browser() == taken
    monkeypatch.setenv("BOOK_BROWSER", "firefox")
    with pytest.raises(ValueError, match="BOOK_BROWSER: expected a Chromium.* got 'firefox'"):
        chosen_browser()
