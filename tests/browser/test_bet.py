"""The bet on the kernels: placed before the book's is seen, and kept in the browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from book.figures.kernels import kernel_prediction
from tests.browser.stages import line

pytestmark = pytest.mark.browser


def test_a_bet_is_placed_unseen_and_stands_beside_the_books_until_a_gpu_decides(open_stage):
    tab, frame = open_stage("bet")
    rows = frame.locator(".bet-rows")
    assert rows.inner_text().split("\n") == [
        "You", "50%", "This book", "?", "fla, published", "?", "Measured", "not yet",
    ]  # fmt: skip
    slider = frame.get_by_role("slider", name="Your bet")
    slider.focus()
    for _ in range(3):
        tab.keyboard.press("ArrowRight")
    assert line(frame).startswith("You say 53%")
    frame.get_by_role("button", name="Place the bet").click()
    expect(frame.get_by_role("button", name="Bet again")).to_be_focused()
    ours = "the book on {low}% to {high}%. fla’s published call reaches {fla}%."
    assert line(frame).startswith(f"You bet on 53%, {ours.format(**kernel_prediction.bet())}")
    assert "No GPU has decided yet" in line(frame)
    again = tab.context.new_page()
    again.goto(tab.url.partition("#")[0])
    kept = again.locator("#bet")
    kept.scroll_into_view_if_needed()
    expect(kept.locator("[role=status]")).to_contain_text("You bet on 53%")
    frame.get_by_role("button", name="Bet again").click()
    assert "?" in rows.inner_text()
