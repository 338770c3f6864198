"""Both pages in a real Chromium: from the first step to the last."""

import pytest

WALK = """async () => {
  const next = document.querySelector('[data-go="1"]');
  const seen = [];
  for (;;) {
    const section = document.querySelector("section.step.current");
    seen.push([section.dataset.step, section.querySelector("h2").textContent, location.hash]);
    if (next.disabled) return seen;
    next.click();
    await new Promise((done) => setTimeout(done, 0));
  }
}"""

@pytest.mark.parametrize(("route", "language"), [("training", "en"), ("generation", "zh")])
def test_every_step_is_reached_by_next(page, site, request, route, language):
    trace = request.getfixturevalue(f"{route}_trace")
    page.goto((site / language / f"{route}.html").as_uri())
    page.wait_for_selector("html.scripted")
    seen = page.evaluate(WALK)
    assert [step for step, _, _ in seen] == [view.id for chapter in trace.chapters for view in chapter.views]
    assert all(title for _, title, _ in seen)
    assert all(address == f"#step={step}" for step, _, address in seen[1:])
