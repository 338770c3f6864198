"""The stage: one picture for a step, a pure function of the step, of what is chosen, the room and the moves' time."""

import pytest
from driver import ALL_ROUTES, DESK, address, visit
from picture_checks import SIZES, prepare, problems

SAME = """(a, b) => JSON.stringify(a, (key, value) => (Number.isNaN(value) ? "NaN" : value)) === JSON.stringify(b,
    (key, value) => (Number.isNaN(value) ? "NaN" : value))"""


@pytest.fixture(scope="module")
def pages(site, module_page):
    """Route → a page of it with the tools; one in the dark as well."""
    def opened(route: str, **options):
        return prepare(visit(module_page(viewport=DESK, **options), address(site, route)))

    return {route: opened(route) for route in ALL_ROUTES} | {"dark": opened("training", color_scheme="dark")}


@pytest.mark.parametrize("route", [*ALL_ROUTES, "dark"])
@pytest.mark.parametrize(("width", "height"), SIZES)
def test_every_kind_has_a_placed_picture_in_which_nothing_is_wrong(pages, route, width, height):
    page = pages[route]
    wrong = {array: found for step, array in page.evaluate("pictures.kinds()")
             if (found := problems(page, step=step, array=array, width=width, height=height, own=False))}
    assert wrong == {}


@pytest.mark.parametrize("change", ["outside", "small", "overlap", "contrast", "too large"])
def test_what_is_wrong_in_a_picture_is_found(pages, change):
    found = pages["training"].evaluate("""async (change) => {
        const pen = new pictures.use.pen.Pen(400, 300);
        pen.text(50, 50, "one");
        pen.cell(100, 100, 80, 30, 1, { largest: 1, digits: 3 });
        if (change === "outside") pen.cell(390, 100, 40, 20, 1, { largest: 1 });
        if (change === "small") pen.text(50, 200, "two", { size: 9 });
        if (change === "overlap") pen.text(60, 54, "two");
        if (change === "contrast") pen.text(50, 200, "two", { color: "line" });
        if (change === "too large") pen.cell(200, 200, 20, 20, 1, { largest: 1, text: "a long text" });
        return pictures.problems(pen.shapes, 400, 300);
    }""", change)
    assert len(found) == 1
    assert found[0].startswith(change)


@pytest.mark.parametrize("route", ALL_ROUTES)
def test_the_moves_of_every_kind_end_in_the_picture_one_arrives_at(pages, route):
    different = pages[route].evaluate(f"""async () => {{
        const same = {SAME};
        const found = [];
        for (const [step, array] of pictures.kinds()) {{
            const {{ scene, drawing }} = await pictures.scene({{ step, array, width: 900, height: 520 }});
            const arrived = pictures.at(scene, drawing);
            const first = drawing.moves(scene).length ? pictures.at(scene, drawing, 0.3) : null;
            if (!same(arrived, pictures.at(scene, drawing, 1))) found.push(array);
            if (first && same(arrived, first)) found.push(`${{array}}: nothing moves`);
        }}
        return found;
    }}""")
    assert different == []


def test_twenty_steps_a_tenth_of_a_second_each_leave_what_one_arrival_shows(pages):
    page = pages["training"]
    same = page.evaluate(f"""async () => {{
        const same = {SAME};
        const {{ stage }} = pictures.host;
        const steps = [...pictures.store.steps.keys()].slice(4, 24);
        for (const step of steps) {{
            location.hash = `#step=${{step}}`;
            await new Promise((done) => setTimeout(done, 100));
        }}
        await tools.until(() => pictures.host.dataset.picture === steps.at(-1) && !pictures.host.matches(".waiting"));
        await new Promise((done) => setTimeout(done, 300));
        const fast = pictures.host.shapes;
        location.hash = "#step=loss";
        await new Promise((done) => setTimeout(done, 300));
        location.hash = `#step=${{steps.at(-1)}}`;
        await new Promise((done) => setTimeout(done, 600));
        return fast.length > 20 && pictures.host.dataset.picture === steps.at(-1) && same(fast, stage.shapes);
    }}""")
    assert same


@pytest.mark.parametrize("touch", ["key", "press", "wheel"])
def test_whatever_the_reader_touches_stops_the_moves(pages, touch):
    page = pages["generation"]
    page.evaluate("location.hash = '#step=round1.blocks.0.attention.scores'")
    page.wait_for_timeout(400)
    playing = "document.querySelector('figure.stage').stage.bar.playing"
    page.evaluate("document.querySelector('figure.stage').stage.playMoves()")
    assert page.evaluate(playing)
    if touch == "key":
        page.keyboard.press("Shift")
    elif touch == "press":
        page.mouse.click(700, 400)
    else:
        page.mouse.wheel(0, 40)
        page.wait_for_timeout(50)
    assert not page.evaluate(playing)


def test_a_layer_is_chosen_beside_the_picture(pages):
    page = pages["generation"]
    page.evaluate("location.hash = '#step=round2.blocks.0.attention.scores'")
    page.wait_for_timeout(500)
    heads = page.locator("figure.stage .which button")
    assert [heads.nth(i).get_attribute("aria-pressed") for i in range(heads.count())] == ["true", "false"]
    heads.nth(1).click()
    page.wait_for_timeout(600)
    assert [heads.nth(i).get_attribute("aria-pressed") for i in range(heads.count())] == ["false", "true"]
    assert page.evaluate("document.querySelector('figure.stage').stage.scene.index[0]") == 1
    keys = page.evaluate("""pictures.host.shapes.flatMap(({ place }) => (
        place?.array === "round2.blocks.0.attention.scores" ? [place.index[0]] : []))""")
    assert set(keys) == {1}


def test_the_lens_stands_in_the_figure_and_not_on_what_it_shows(pages):
    page = pages["training"]
    page.evaluate("location.hash = '#step=blocks.0.attention.qkv'")
    page.wait_for_timeout(600)
    canvas = page.locator("figure.stage canvas").bounding_box()
    cells = page.evaluate("pictures.host.shapes.filter((shape) => shape.place).map(({ x, y, w, h }) => [x, y, w, h])")
    for x, y, w, h in [cells[0], cells[-1], *cells[::97]]:
        page.mouse.move(canvas["x"] + x + w / 2, canvas["y"] + y + h / 2)
        lens, figure = page.evaluate("""["figure.stage .lens", "figure.stage"].map((name) => {
            const { left, top, right, bottom } = document.querySelector(name).getBoundingClientRect();
            return [left, top, right, bottom];
        })""")
        assert lens[2] > lens[0]
        assert lens[0] >= figure[0]
        assert lens[1] >= figure[1]
        assert lens[2] <= figure[2]
        assert lens[3] <= figure[3]
        left, top = canvas["x"] + x, canvas["y"] + y
        assert lens[2] <= left or left + w <= lens[0] or lens[3] <= top or top + h <= lens[1]
