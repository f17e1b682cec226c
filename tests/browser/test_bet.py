"""The bet on the kernels: placed before the book's is seen, and kept in the browser."""

import re

from playwright.sync_api import expect

from book.figures.kernels import kernel_prediction
from tests.browser.stages import line


def test_a_bet_is_placed_unseen_and_stands_beside_the_books_until_a_gpu_decides(open_stage):
    tab, frame = open_stage("bet")
    bet = kernel_prediction.bet()
    is_open = bet["measured"] is None
    rows = frame.locator(".bet-rows")
    assert rows.inner_text().split("\n") == [
        "You", "50%", "This book", "?", "fla, published", "?", "Measured",
        "not yet" if is_open else "?",
    ]  # fmt: skip
    slider = frame.get_by_role("slider", name="Your bet")
    slider.focus()
    for _ in range(3):
        tab.keyboard.press("ArrowRight")
    assert line(frame).startswith("Your bet is 53%")
    frame.get_by_role("button", name="Place the bet").click()
    expect(frame.get_by_role("button", name="Bet again")).to_be_focused()
    said = line(frame)
    assert said.startswith(f"You bet on 53%, the book on {bet['low']}% to {bet['high']}%.")
    assert ("No GPU has decided yet" if is_open else f"reached {bet['measured']}%") in said
    expect(tab).to_have_url(re.compile("#bet:share=53"))
    again = tab.context.new_page()
    again.goto(tab.url)
    kept = again.locator("#bet")
    kept.scroll_into_view_if_needed()
    expect(kept.locator("[role=status]")).to_contain_text("You bet on 53%")
    frame.get_by_role("button", name="Bet again").click()
    assert "?" in rows.inner_text()
