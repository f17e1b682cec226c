"""Stages play and say what they show; test_pages.py sets every one of them."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.pages import soup_of
from tests.browser.stages import PLACES, line


def test_the_address_keeps_figures_and_stages_side_by_side(open_page):
    tab = open_page("book/three-modes.html", reduced_motion="reduce")
    tab.locator("#modes").get_by_role("button", name="Back").click()
    expect(tab).to_have_url(re.compile("#modes:step="))
    figure = tab.locator("figure.explorable").first
    # Not by a pointer: on its way it may read a length off the chart, which the stage follows.
    choice = figure.locator(".figure-choice:has(input:not(:checked):not(:disabled))").first
    choice.evaluate("(one) => one.click()")
    expect(tab).to_have_url(re.compile(f"[#;]{figure.get_attribute('id')}:"))
    assert re.search("[#;]modes:step=", tab.url)


@pytest.mark.parametrize("name", PLACES)
def test_it_says_what_it_shows_before_all_else_and_without_javascript(built_book, name):
    frame = soup_of(built_book, PLACES[name]).find(id=name)
    message, title = frame.select_one(".stage-message"), frame.select_one(".stage-title")
    assert message.find_previous_sibling() == title
    assert not frame.select_one(".stage-caption").get_text().startswith(message.get_text())
    assert "JavaScript" in frame.noscript.get_text()
    assert frame.noscript.img["alt"] and "Loading" not in frame.noscript.img["alt"]
    assert len(frame.select_one(".stage-caption").get_text()) > 80
    assert not frame.select_one(".stage").get_text(strip=True)


def test_play_runs_and_pauses_and_is_absent_where_motion_is_unwelcome(open_stage):
    tab, frame = open_stage("machines", stopped=True)
    frame.get_by_role("button", name="Start over").click()
    start = line(frame)
    frame.get_by_role("button", name="Play").click()
    tab.clock.run_for(1800)
    frame.get_by_role("button", name="Pause").click()
    paused = line(frame)
    assert paused != start
    tab.clock.run_for(5000)
    assert line(frame) == paused
    _, calm = open_stage("machines", reduced_motion="reduce")
    assert calm.get_by_role("button", name="Play").count() == 0
