"""What a learner is asked to say before working a number out, and the count of right answers."""

import numpy as np
import pytest
from driver import WORDS, address, visit

NAME = "blocks.0.residual_1"
ASK = """async (place) => {
    const { player } = document.querySelector("figure.stage").stage;
    const { questions } = await import("predict");
    await player.store.load([place.array, ...Object.values(player.store.operation(place.array).operands)]);
    return questions(player.store, place, player.words);
}"""


@pytest.fixture(scope="module")
def training(module_page, site):
    return visit(module_page(), address(site, "training", "en", f"#step={NAME}"))


@pytest.mark.parametrize(("array", "index"), [(NAME, (2, 3)), (NAME, (4, 9)), ("blocks.0.attention.softmax", (0, 3, 1)),
                                              ("blocks.0.mlp.gelu", (1, 20)), ("blocks.1.attention.scores", (1, 4, 0))])
def test_answers_are_those_of_numpy(training, training_trace, array, index):
    values = training_trace.values(array)
    asked = training.evaluate(ASK, {"array": array, "index": list(index)})
    assert asked[0]["right"] == np.sign(values[index]) + 1
    row = values[index[:-1]]
    if len(row) <= 8:
        assert asked[1]["right"] == row.argmax()
        assert len(asked[1]["options"]) == len(row)
    if array == NAME:  # the first summand is taken away
        first = training_trace.operations[NAME].operands["a"]
        change = -training_trace.values(first)[index]
        assert asked[-1]["right"] == np.sign(change) + 1
        assert f"{first} [{index[0]}, {index[1]}]" in asked[-1]["text"]


def test_predictions_come_first_and_are_counted(training):
    page, words = training, WORDS["en"]
    box = page.locator(f'.step.current [data-array="{NAME}"] .exercise')
    page.evaluate("localStorage.removeItem('two-routes.exercises')")
    box.locator("button").first.click()
    said = box.locator("[role=status]")
    answered = 0
    while box.locator("form").count() == 0:
        box.locator(".pick .chip").first.click()
        answered += 1
        assert said.get_attribute("class") in ("right", "wrong")
        assert said.inner_text()
        assert f" of {answered} " in box.locator(".counted").inner_text()
        box.get_by_role("button", name=words("predict.on")).click()
    assert answered >= 1  # of a summand that is zero nothing is asked
    box.get_by_role("button", name=words("predict.clear")).click()
    assert box.locator(".counted").inner_text().startswith("0 of 0 ")
