"""Which changes have every chapter executed again."""

from types import SimpleNamespace

from book.theme import reading


def test_chapters_are_executed_when_what_they_read_has_changed(tmp_path, monkeypatch):
    for folder in reading.INPUTS:
        (tmp_path / folder).mkdir(parents=True)
    for file in reading.FILES:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("as it was")
    result = tmp_path / "results" / "a.json"
    monkeypatch.setattr(
        reading, "inputs_digest", lambda digest=reading.inputs_digest: digest(tmp_path)
    )
    metadata = {"book/a": {"kernelspec": {}}, "book/notation": {}}
    env = SimpleNamespace(found_docs=set(metadata), metadata=metadata)
    app = SimpleNamespace(env=env)

    def outdated():
        return reading.outdated_chapters(app, env, set(), set(), set())

    assert outdated() == ["book/a"] and outdated() == []
    (tmp_path / "book" / "a.md").write_text("Other words.")
    assert outdated() == []
    result.write_text("{}")
    assert outdated() == ["book/a"] and outdated() == []
    for changed in (result, *(tmp_path / file for file in reading.FILES)):
        changed.write_text("[]")
        assert outdated() == ["book/a"] and outdated() == [], changed
