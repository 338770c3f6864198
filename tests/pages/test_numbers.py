"""Numbers of every kind of step, opened in both pages."""

import pytest

OPEN = """async (links) => {
  const found = [];
  for (const link of links) {
    location.hash = link;
    const wanted = new URLSearchParams(link.slice(1)).get("of");
    const shown = () => document.querySelector("#number:not([hidden]) .name code")?.textContent;
    const is = () => location.hash === link && shown() === wanted;
    const start = performance.now();
    while (!is() && performance.now() - start < 10000) await new Promise((done) => setTimeout(done));
    const verdict = is() && document.querySelector("#number .verdict");
    found.push(verdict
      ? [verdict.classList.contains("ok"), Number(verdict.dataset.ulps), Number(verdict.dataset.scaled)] : null);
  }
  return found;
}"""


def links(trace):
    """The last number of one array of each kind of step."""
    letters = {"position": "t", "query_position": "i", "key_position": "j", "head": "h", "feature": "d",
               "head_feature": "d", "hidden": "f", "qkv": "o", "output": "o", "vocabulary": "v", "candidate": "c"}
    home = {step: view.id for chapter in trace.chapters for view in chapter.views for step in view.steps}
    kinds = {}
    for step in trace.steps.values():
        array = trace.arrays[step.id]
        if not array.derived and array.shape and array.size < 5000 and all(axis in letters for axis in array.axes):
            kinds.setdefault((step.kind, step.target), (step.id, array))
    for name, array in kinds.values():
        place = "&".join(f"{letters[axis]}={n - 1}" for axis, n in zip(array.axes, array.shape, strict=True))
        yield f"#step={home[name]}&of={name}&{place}"


@pytest.mark.parametrize("route", ["training", "generation"])
def test_numbers_of_every_kind_open_and_agree(page, site, request, route):
    """Recomputed in the page: within 4 ulp of the recorded value, or of the largest term where terms cancel."""
    wanted = list(links(request.getfixturevalue(f"{route}_trace")))
    page.goto((site / "en" / f"{route}.html").as_uri())
    page.wait_for_selector("html.scripted")
    found = page.evaluate(OPEN, wanted)
    assert len(found) > (15 if route == "generation" else 30)
    wrong = [link for link, verdict in zip(wanted, found, strict=True)
             if verdict is None or not verdict[0] or min(verdict[1], verdict[2]) > 4]
    assert not wrong
