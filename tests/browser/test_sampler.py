"""The live sampler: the models in the page are the stored ones, and all are given the same."""

import re
from urllib.parse import quote

import pytest
import torch
from playwright.sync_api import expect

from book.figures.sampling import writers
from experiments.harness.learning.probes import PROMPT
from lsa import sample
from tests.browser.stages import line


def at_reading_pace(frame):
    frame.get_by_text("More: temperature, speed").click()
    frame.get_by_role("radio", name="Reading pace").check(force=True)


def press(frame, name):
    frame.get_by_role("button", name=name).click()


def write(frame, name, letters):
    """Press, and wait until this many letters are written."""
    press(frame, name)
    written = re.compile(f"written {letters}")
    expect(frame.locator("[role=status]")).to_contain_text(written, timeout=60_000)


def texts(frame):
    return frame.locator(".sampler-text").all_inner_texts()


def letters(frame):
    return [
        int(text.replace(",", ""))
        for text in frame.locator(".sampler-facts > p:first-child b").all_inner_texts()
    ]


def test_the_page_writes_what_the_package_writes(open_page):
    words = "It was a bright"
    said = f"temperature=0&prompt={quote(words)}"
    frame = open_page(f"book/sampling.html#sampler:{said}", prose=False).locator("#sampler")
    expect(frame.get_by_role("slider", name="Temperature")).to_be_visible()  # a link has set it
    assert texts(frame) == [words] * 3
    for n in range(6):
        press(frame, "One letter")
        expect(frame.locator("[role=status]")).to_contain_text(f"written {n + 1} letter")
    prompt = torch.tensor([list(words.encode())])
    for kind, said in zip(writers.MODELS, texts(frame), strict=True):
        model = writers.model(kind)
        written = sample(model.machine(), prompt, max_tokens=6, temperature=0)
        wanted = bytes(token.item() for token in written).decode()
        assert said == words + wanted


def test_writers_get_the_same_time(set_stage):
    _, frame = set_stage("sampler", "prompt=I")
    assert "Nothing is written yet" in line(frame)
    write(frame, "Write", r"\d\d")
    press(frame, "Pause")
    written = letters(frame)
    told = line(frame)
    assert re.match(r"In [\d.]+ s each: softmax has written", told)
    assert min(written) > 1
    press(frame, "One letter")
    last = frame.locator(".sampler-facts > p:first-child b").last
    expect(last).to_have_text(f"{written[-1] + 1:,}")
    assert letters(frame) == [count + 1 for count in written]
    assert frame.locator(".sampler-likely li").count() == 15


def test_words_of_the_reader_start_all_and_stay_in_the_address(open_stage, open_page):
    tab, frame = open_stage("sampler")
    words = "¿Dónde? & = ; 100%"
    frame.get_by_role("textbox", name="All continue from").fill(words)
    frame.get_by_role("textbox", name="All continue from").press("Enter")
    assert texts(frame) == [words] * 3
    press(frame, "One letter")
    expect(frame.locator("[role=status]")).to_contain_text("written 1 letter;")
    assert all(text.startswith(words) for text in texts(frame))
    press(frame, "Start over")
    assert texts(frame) == [words] * 3 and letters(frame) == [len(words.encode())] * 3
    expect(tab).to_have_url(re.compile("#sampler:prompt="))
    address = f"book/sampling.html#{tab.url.partition('#')[2]}"
    again = open_page(address, prose=False).locator("#sampler")
    assert texts(again) == [words] * 3


FARTHEST = "1,000,000"


def test_linear_attention_goes_on_from_the_millionth_letter_and_softmax_is_counted(open_stage):
    tab, frame = open_stage("sampler", reduced_motion="reduce")
    picture = frame.locator(".sampler-outlines")
    assert (
        "Linear keeps 437 KiB and the window 1.13 MiB, always. Softmax keeps 567 KiB after 63"
        in (picture.get_attribute("aria-label"))
    )
    assert not tab.evaluate("window.BookFiles")  # nothing is loaded before a press
    # The novel's last words leave the view while a fast writer goes on.
    frame.evaluate("""(frame) => new MutationObserver(() => {
        const said = [...frame.querySelectorAll(".sampler-text")].at(-1).textContent;
        if (/him for one mom\\w/.test(said)) frame.dataset.wentOn = "";
    }).observe(frame, { childList: true, characterData: true, subtree: true })""")
    press(frame, FARTHEST)
    expect(frame).to_have_attribute("data-went-on", "", timeout=60_000)
    press(frame, "Pause")
    expect(frame.get_by_role("button", name=FARTHEST)).to_have_attribute("aria-pressed", "true")
    softmax, window, linear = frame.locator(".sampler-facts").all_inner_texts()
    assert "1.13 MiB" in window and "predicted" in window.lower()
    assert "8.5" in softmax and "predicted" in softmax.lower()
    right = frame.bounding_box()["x"] + frame.bounding_box()["width"]
    for fact in frame.locator(".sampler-facts b").all():
        assert fact.bounding_box()["x"] + fact.bounding_box()["width"] <= right + 1
    assert "437 KiB" in linear and letters(frame)[2] > 1_000_000
    told, window, _ = texts(frame)
    assert "cannot begin here" in told and "By the formula, its next letter is" in told
    assert "the last 128 letters and the first, 1.13 MiB" in window
    # To scale: as many times the state's square as there are states in it, over the page.
    cache, state = (
        frame.locator(name).bounding_box()
        for name in (".sampler-cache", ".film-linear.sampler-state")
    )
    ratio = letters(frame)[2] * 9216 / 446_976
    assert cache["width"] * cache["height"] == pytest.approx(
        ratio * state["width"] * state["height"], rel=0.02
    )
    assert cache["height"] > 700
    press(frame, "Start over")
    assert texts(frame) == [PROMPT.strip()] * 3
    assert frame.locator(".sampler-cache").bounding_box()["height"] < 12


def test_a_million_letters_are_one_press_away_in_the_first_view(open_stage):
    tab, frame = open_stage("sampler")
    for width, height in ((1280, 800), (375, 812)):
        tab.set_viewport_size({"width": width, "height": height})
        frame.evaluate("(frame) => frame.scrollIntoView({ block: 'start', behavior: 'instant' })")
        box = frame.get_by_role("button", name=FARTHEST).bounding_box()
        assert box["y"] + box["height"] < height


def test_a_link_teleports_and_loads_nothing(open_page):
    tab = open_page("book/sampling.html#sampler:letter=1000000", prose=False)
    frame = tab.locator("#sampler")
    assert "read 1,000,000 letters" in line(frame)
    assert texts(frame)[2].endswith("for one mom") and not tab.evaluate("window.BookFiles")
    press(frame, "One letter")
    expect(frame.locator("[role=status]")).to_contain_text("linear has written 1 letter")
    assert letters(frame)[2] == 1_000_001


@pytest.mark.parametrize("station", ["", FARTHEST])
def test_words_of_the_reader_are_read_in_the_middle(set_stage, station):
    _, frame = set_stage("sampler")
    at_reading_pace(frame)
    write(frame, station or "Write", r"\d")
    said = frame.get_by_role("textbox", name="Words to interrupt")
    said.fill("HELLO THERE")
    said.press("Enter")
    expect(frame.locator(".sampler-text i").last).to_have_text("HELLO THERE")
    expect(said).to_have_value("")
    press(frame, "Pause")
    many = frame.locator(".sampler-text i", has_text="HELLO THERE").count()
    assert many == (1 if station else 3)


def test_a_long_prompt_is_read_at_reading_pace_too(set_stage):
    _, frame = set_stage("sampler")
    at_reading_pace(frame)
    prompt = frame.get_by_role("textbox", name="All continue from")
    prompt.fill(60 * "a ")  # many turns of reading
    write(frame, "Write", r"\d")


def test_at_reading_pace_all_write_as_one_reads(set_stage):
    tab, frame = set_stage("sampler")
    at_reading_pace(frame)
    write(frame, "Write", r"\d")
    before = letters(frame)
    tab.wait_for_timeout(2000)
    press(frame, "Pause")
    after = letters(frame)
    assert len({*after}) == 1
    assert 3 <= after[0] - before[0] <= 60
