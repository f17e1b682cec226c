"""Operations on a state: known without a model at first, then what lsa says of any text."""

import re

from playwright.sync_api import expect

from book.figures.sampling import surgery, writers
from tests.browser.stages import line

LOADED = "() => Object.keys(window.BookFiles ?? {})"


def word(frame, text):
    return frame.locator(".surgery-words button", has_text=re.compile(rf"^{text} "))


def bars(frame, side):
    """The likeliest letters and their shares in percent, of the first side or the second."""
    rows = frame.locator(".sampler-likely").nth(side).locator("li")
    return [tuple(row.split("\n")) for row in rows.all_inner_texts()]


def as_said(shares):
    likely = shares.topk(surgery.LIKELY)
    return [
        ("space" if i == 32 else chr(i), f"{100 * share:.0f}%")
        for share, i in zip(likely.values.tolist(), likely.indices.tolist(), strict=True)
    ]


def test_the_words_of_the_first_text_need_no_model(open_stage):
    tab, frame = open_stage("surgery")
    picked = word(frame, "the").last
    expect(picked).to_have_attribute("aria-pressed", "true")
    assert line(frame).startswith("Without “the”, 56% of the next letter’s probability goes")
    struck = frame.locator(".film-text del")
    expect(struck).to_have_text("the")
    assert frame.locator(".film-text").nth(1).inner_text().endswith("and the cap")
    first = bars(frame, 1)
    assert first != bars(frame, 0)
    word(frame, "captain").focus()
    tab.keyboard.press("Enter")
    expect(word(frame, "captain")).to_have_attribute("aria-pressed", "true")
    expect(word(frame, "captain")).to_be_focused()
    expect(picked).to_have_attribute("aria-pressed", "false")
    assert "“captain”" in line(frame) and bars(frame, 1) != first
    expect(struck).to_have_text("captain")
    expect(tab).to_have_url(re.compile("#surgery:word=1"))
    frame.get_by_role("radio", name="Add half of another").check(force=True)
    assert line(frame).startswith("With half of the other text’s state")
    expect(struck).to_have_count(0)
    expect(frame.get_by_role("textbox", name="The other text")).to_be_visible()
    expect(tab).to_have_url(re.compile("way=add"))
    assert tab.evaluate(LOADED) == []


def test_another_text_is_operated_on_as_lsa_does(open_stage):
    tab, frame = open_stage("surgery")
    text = "Mr. Holmes looked at Watson. Mr. Hol"
    field = frame.get_by_role("textbox", name="Linear has read")
    field.fill(text)
    field.press("Enter")
    expect(word(frame, "Watson")).to_be_visible(timeout=60_000)
    assert tab.evaluate(LOADED) == ["linear-4096-seed0"]
    one = surgery.Reading(writers.model_of(surgery.trained()), text.encode())
    assert bars(frame, 0) == as_said(one.operated(one.S, one.z, 0.0).shares)
    word(frame, "Mr").last.click()
    S, z = one.products(29, 31)
    assert text[29:31] == "Mr"
    assert bars(frame, 1) == as_said(one.operated(S, z, -1.0).shares)
    near, far = (f"{100 * size:.0f}%" for size in one.sizes(S))
    sizes = f"{near} as large as the whole state in near-sighted heads, and {far} in"
    assert sizes in line(frame)


def test_both_go_on_side_by_side_and_what_is_written_can_be_picked(open_stage):
    tab, frame = open_stage("surgery")
    texts = frame.locator(".film-text")
    before = texts.all_inner_texts()
    frame.get_by_role("button", name="One letter").click()
    expect(frame.locator("[role=status]")).to_contain_text("Both have gone on", timeout=60_000)
    assert [len(text) for text in texts.all_inner_texts()] == [len(before[0]) + 1] * 2
    frame.get_by_role("button", name="Go on").click()
    expect(texts.first).to_have_text(re.compile(".{70}"), timeout=60_000)
    frame.get_by_role("button", name="Pause").click()
    left, right = texts.all_inner_texts()
    assert left != right
    words = frame.locator(".surgery-words button")
    assert words.count() > 12
    words.last.click()
    expect(frame.locator("[role=status]")).to_contain_text(
        "of the next letter’s probability goes to other letters"
    )
    frame.get_by_role("button", name="Start over").click()
    expect(texts.first).to_have_text(before[0])
    expect(words).to_have_count(12)


def test_a_link_adds_half_of_another_state(open_page):
    tab = open_page("book/sampling.html")
    tab.locator("a.figure-view[href='#surgery:way=add']").click()
    assert "With half of the other text’s state" in line(tab.locator("#surgery"))
    assert tab.evaluate(LOADED) == []
