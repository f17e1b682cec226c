"""What the stage `play` is told are the stored answers."""

from book.figures.lib.records import learned
from book.figures.relatives import play
from tests.book.figures.made_up import page_data


def test_every_answer_is_the_stored_one_and_every_question_has_its_place():
    told = page_data(play.data())
    stored = {
        (run["config"]["task"], run["config"]["model"]): run["tables"]["texts"]
        for run in learned("task_examples")
    }
    assert [*told["tasks"]] == [*play.TASKS] and told["sources"]
    for task, texts in told["tasks"].items():
        for model in play.MODELS:
            table = stored[task, model]
            assert [token for text in texts for token in text["tokens"]] == table["token"]
            said = [answer for text in texts for answer in text["said"][model]]
            assert said == [answer for answer in table["said"] if answer >= 0]
        for text in texts:
            assert len(text["asked"]) == len(text["wanted"])
            if task == "recall":
                pairs = dict(zip(text["tokens"][0:16:2], text["tokens"][1:16:2], strict=True))
                assert [pairs[text["tokens"][at]] for at in text["asked"]] == text["wanted"]
