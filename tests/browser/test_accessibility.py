"""That what is wrong on a page is found and named."""

from tests.browser.accessibility import grave_violations


def test_what_is_wrong_is_named_with_its_element_and_the_rest_is_not(browser):
    tab = browser.new_page()
    tab.set_content(
        '<html lang="en"><title>T</title><main><h1>Heading</h1><img src="data:," alt="A picture">'
        '<p style="color: #eee; background: #fff">pale</p><input id="nameless"></main></html>'
    )
    found = grave_violations(tab)
    assert [one.split(" ")[0] for one in found] == ["color-contrast", "label"]
    assert "pale" in found[0] and "nameless" in found[1]
    assert not grave_violations(tab, {"exclude": [["p"], ["input"]]})
    tab.close()
