"""What must hold for every picture, asked of its list of shapes: nothing cut, nothing over another, text to be read.

`TOOLS` is run on a page of a route.  `pictures.draw(…)` there draws a step at any size, as the stage does but on no
canvas; `pictures.problems(…)` says what is wrong with a list of shapes, one line each.
"""

from typing import Any

SIZES = ((1000, 560), (340, 330))  # px: of a picture on a desk, on a phone

TOOLS = """
window.pictures = {
    use: {}, // modules
    async load() {
        const names = ["scene", "pen", "canvas", "drawing", "placed"];
        const found = await Promise.all(names.map((name) => import(name)));
        Object.assign(pictures.use, Object.fromEntries(names.map((name, i) => [name, found[i]])));
        pictures.host = document.querySelector("figure.stage");
        pictures.player = pictures.host.stage.player;
        pictures.store = pictures.player.store;
        pictures.theme = new pictures.use.canvas.Theme(pictures.host);
    },
    // Every step with each array that it makes or shows: [step, array].
    all() {
        return [...pictures.store.steps.values()].flatMap((step) => (
            (step.operations.length ? step.operations : step.arrays).map((array) => [step.id, array])));
    },
    // One step of each kind of operation, and one of those that show what was given.
    kinds() {
        const seen = new Map();
        for (const [step, array] of pictures.all()) {
            const operation = pictures.store.operation(array);
            const key = operation ? `${operation.kind} ${JSON.stringify(operation.equations)}` : "given";
            if (!seen.has(key)) seen.set(key, [step, array]);
        }
        return [...seen.values()];
    },
    async scene({ step, array, width, height, index, own = true, digits = 4 }) {
        const { store, player } = pictures;
        const outline = store.steps.get(step);
        await store.ready(array);
        const chosen = index ?? store.shape(array).map((n) => Math.min(1, n - 1));
        const scene = new pictures.use.scene.Scene({ store, words: player.words, step: outline, array, index: chosen,
            width, height, digits });
        const named = pictures.use.drawing.drawingFor(scene);
        const drawing = own || !scene.operation ? named : pictures.use.placed;
        await Promise.all(pictures.use.drawing.namesFor(scene, drawing).map((name) => store.ready(name)));
        return { scene, drawing };
    },
    // The shapes of a step: `progress` is a part from 0 to 1 for all moves, `own`: whether its own drawing is asked.
    async draw(how) {
        const { scene, drawing } = await pictures.scene(how);
        return pictures.at(scene, drawing, how.progress);
    },
    at(scene, drawing, progress) {
        const moves = drawing.moves(scene);
        if (typeof progress === "number") scene.progress = new Map(moves.map(({ name }, i) => (
            [name, Math.max(0, Math.min(1, progress * moves.length - i))])));
        const pen = new pictures.use.pen.Pen(scene.width, scene.height);
        drawing.draw(pen, scene);
        return pen.shapes;
    },
    textBox(shape) {
        const size = shape.size ?? (shape.kind === "cell" ? 11 : 12);
        const width = pictures.use.pen.widthOf(shape.text, { ...shape, size });
        const isCell = shape.kind === "cell";
        const [x, y] = isCell ? [shape.x + shape.w / 2, shape.y + shape.h / 2 + size * 0.36] : [shape.x, shape.y];
        const align = shape.align ?? "left";
        const left = align === "center" ? x - width / 2 : align === "right" ? x - width : x;
        return { left, right: left + width, top: y - size * 0.72, bottom: y + size * 0.2, size, shape };
    },
    rgb(name) {
        const color = pictures.theme.color(name);
        const hex = color.length === 4 ? [...color.slice(1)].map((c) => c + c).join("") : color.slice(1);
        return [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16));
    },
    fill(shape) {
        const { strength } = shape;
        if (strength === undefined) return pictures.rgb(shape.color ?? "cell");
        if (Number.isNaN(strength)) return pictures.rgb("tint");
        return pictures.theme.cell(strength).fill.match(/\\d+/g).map(Number);
    },
    contrast(a, b) {
        const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
        const light = (color) => color.reduce((sum, c, i) => sum + linear(c / 255) * [0.2126, 0.7152, 0.0722][i], 0);
        const [low, high] = [light(a), light(b)].sort((x, y) => x - y);
        return (high + 0.05) / (low + 0.05);
    },
    inside(shape, x, y) {
        if (shape.kind === "dot") return Math.hypot(x - shape.x, y - shape.y) <= shape.w;
        const { x: left, y: top, w, h } = shape;
        if (shape.kind === "cell") return x >= left && x <= left + w && y >= top && y <= top + h;
        if (shape.kind !== "area") return false;
        let odd = false;
        const { points } = shape;
        for (let i = 0, j = points.length - 2; i < points.length; j = i, i += 2) {
            const [ax, ay, bx, by] = [points[i], points[i + 1], points[j], points[j + 1]];
            if ((ay > y) !== (by > y) && x < (bx - ax) * (y - ay) / (by - ay) + ax) odd = !odd;
        }
        return odd;
    },
    // What lies under a text: the shapes drawn before it, mixed as they were painted.
    ground(shapes, n, x, y) {
        let color = pictures.rgb("paper");
        const upTo = shapes[n].kind === "cell" ? n + 1 : n;
        for (let i = 0; i < upTo; i++) {
            const shape = shapes[i];
            if (!pictures.inside(shape, x, y)) continue;
            const fill = pictures.fill(shape);
            color = color.map((c, k) => c + (fill[k] - c) * shape.alpha);
        }
        return color;
    },
    ink(shape) {
        if (shape.kind !== "cell") return pictures.rgb(shape.color ?? "ink");
        if (shape.strength === undefined || Number.isNaN(shape.strength)) return pictures.rgb("ink");
        const { ink } = pictures.theme.cell(shape.strength);
        return pictures.rgb(ink === pictures.theme.color("ink") ? "ink" : "paper");
    },
    // Left, top, right, bottom of a shape that is no text.
    reach(shape) {
        const { kind, x, y, w, h, points } = shape;
        if (kind === "dot") return [x - w, y - w, x + w, y + w];
        if (kind === "cell") return [x, y, x + w, y + h];
        if (!points) return null;
        const [xs, ys] = [0, 1].map((odd) => points.filter((_, i) => i % 2 === odd));
        return [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
    },
    // Whether a box lies in the picture; not, when a side of it is no number.
    within([left, top, right, bottom], width, height) {
        return left >= -0.75 && top >= -0.75 && right <= width + 0.75 && bottom <= height + 0.75;
    },
    problems(shapes, width, height) {
        const found = [];
        const slack = 0.75; // px
        const boxes = [];
        shapes.forEach((shape, n) => {
            const said = shape.text ? `"${shape.text}"` : `${shape.kind} ${shape.key ?? ""}`;
            const reach = pictures.reach(shape);
            if (reach && !pictures.within(reach, width, height)) {
                found.push(`outside: ${said} at ${reach.map(Math.round)}`);
            }
            if (!shape.text || shape.alpha < 0.2) return;
            const box = pictures.textBox(shape);
            if (box.size < 11) found.push(`small: ${said} is ${box.size} px`);
            const sides = [box.left, box.top, box.right, box.bottom];
            if (!pictures.within(sides, width, height)) found.push(`cut: ${said} at ${sides.map(Math.round)}`);
            const isWide = box.right - box.left > shape.w + slack || box.size * 0.72 > shape.h + slack;
            if (shape.kind === "cell" && isWide) found.push(`too large for its cell: ${said}`);
            const ground = pictures.ground(shapes, n, (box.left + box.right) / 2, (box.top + box.bottom) / 2);
            const ink = pictures.ink(shape).map((c, k) => ground[k] + (c - ground[k]) * shape.alpha);
            const ratio = pictures.contrast(ink, ground);
            if (ratio < 4.5 && shape.text.trim()) found.push(`contrast ${ratio.toFixed(1)}: ${said}`);
            boxes.push(box);
        });
        boxes.sort((a, b) => a.left - b.left);
        boxes.forEach((a, i) => {
            for (let j = i + 1; j < boxes.length && boxes[j].left < a.right - 1; j++) {
                const b = boxes[j];
                if (Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1 && a.shape.text !== b.shape.text) {
                    const at = [b.left, b.top].map(Math.round);
                    found.push(`overlap: "${a.shape.text}" and "${b.shape.text}" at ${at}`);
                }
            }
        });
        return found;
    },
};
"""


def prepare(page: Any) -> Any:
    """The tools on a page of a route that has shown its first step."""
    page.evaluate(TOOLS + "; pictures.load()")
    return page


def problems(page: Any, **how: Any) -> list[str]:
    """What is wrong with the picture of a step: `step`, `array`, `width`, `height`, and what `pictures.scene` takes."""
    return page.evaluate("async (how) => pictures.problems(await pictures.draw(how), how.width, how.height)", how)
