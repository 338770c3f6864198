"""What the page shows of each experiment: the words, cells and drawings that its template places."""

from dataclasses import dataclass, field
from typing import Any

from site_builder.experiments import fixed
from site_builder.language import Language
from site_builder.parts import number_in_prose as num
from site_builder.plots import Plot
from site_builder.strings import Strings

Figures = dict[str, Any]  # of `site_builder.experiments`


@dataclass
class Picture:
    """A drawing in a wide form and a narrow one; `y` names the vertical axis, `keys` are (colour, text) of areas."""

    plots: tuple[Plot, Plot]
    x: str
    y: str
    label: str
    heading: str = ""
    caption: str = ""
    keys: list[tuple[int, str]] = field(default_factory=list)


@dataclass
class Row:
    """One line of a table; `look`: the colour of its mark, or None."""

    head: str
    cells: list[str]
    look: int | None = None


@dataclass
class Samples:
    """What one model wrote, after how many updates: (when, text)."""

    look: int
    title: str
    texts: list[tuple[str, str]]


@dataclass
class Shown:
    """One experiment; `said` and `reading` are (title, HTML, HTML of what is often misread)."""

    is_depth: bool
    said: tuple[str, str, str]
    reading: tuple[str, str, str]
    pictures: list[Picture]  # the last one of a cache experiment follows the table
    rows: list[Row]
    conditions: str
    switches: list[str]
    prompt: str = ""
    sampling: str = ""
    samples: list[Samples] = field(default_factory=list)
    settings: list[tuple[str, str]] = field(default_factory=list)
    sha256: str = ""
    looks: dict[str, int] = field(default_factory=dict)


def shown(told: list[Figures], language: Language) -> list[Shown]:
    """Every experiment of `site_builder.experiments.tell`, ready to be placed."""
    strings = Strings(language)
    return [_depth(one, strings, language.gap) if one["kind"] == "depth" else _cache(one, strings, language.gap)
            for one in told]


def _common(one: Figures, strings: Strings, gap: str) -> dict[str, Any]:
    about = strings("experiments.conditions", torch=one["torch"], machine=one["machine"], threads=one["threads"])
    return {"said": one["what"], "reading": one["reading"], "conditions": about + gap + strings("experiments.kernels"),
            "switches": [f"{name} = {_setting(value)}" for name, value in one["conditions"].items()]}


def _setting(value: object) -> str:
    return str(value).lower()


def _depth(one: Figures, strings: Strings, gap: str) -> Shown:
    runs, sample = one["runs"], one["sample"]
    start = "" if sample["prompt"] else strings("experiments.no_prompt") + gap
    sampled = strings("experiments.sampled", n=num(sample["tokens"]), temperature=sample["temperature"])
    return Shown(
        True, **_common(one, strings, gap), pictures=_depth_pictures(one, strings),
        rows=[Row(str(run["blocks"]), _depth_cells(run), run["look"]) for run in runs],
        prompt=sample["prompt"], sampling=start + sampled,
        samples=[Samples(run["look"], strings("experiments.depth", n=run["blocks"]),
                         [(_when(one_sample, strings), one_sample["text"]) for one_sample in run["samples"]])
                 for run in runs if run["samples"]],
        settings=[(name, _setting(value)) for name, value in one["settings"].items()], sha256=one["text"]["sha256"])


def _depth_cells(run: Figures) -> list[str]:
    return [num(run["parameters"]), fixed(run["train"], 4), fixed(run["validation"], 4),
            f"{num(1000 * run['seconds_per_update'])} ms", fixed(run["ratio"], 2),
            f"{fixed(run['training_seconds'], 1)} s"]


def _when(sample: Figures, strings: Strings) -> str:
    when = strings("experiments.after", n=num(sample["update"]))
    loss = sample["loss"]
    return when if loss is None else f"{when} · {strings('experiments.loss_word')} {fixed(loss, 4)}"


def _both(plots: list[Plot]) -> tuple[Plot, Plot]:
    wide, narrow = plots
    return wide, narrow


def _depth_pictures(one: Figures, strings: Strings) -> list[Picture]:
    ends = [strings("experiments.ends", n=run["blocks"], first=fixed(run["evaluations"]["validation"][0], 4),
                    loss=fixed(run["validation"], 4)) for run in one["runs"]]
    update = strings("axis.update")
    found = [Picture(_both(one["plots"]["losses"]), update, strings("experiments.loss"),
                     " ".join([strings("experiments.losses"), *ends]), caption=strings("experiments.losses_caption"))]
    if "apart" in one["plots"]:
        title = strings("experiments.apart", n=one["shallow"]["blocks"])
        found.append(Picture(_both(one["plots"]["apart"]), update, strings("experiments.difference"), title,
                             heading=title, caption=strings("experiments.apart_caption")))
    return found


def _cache(one: Figures, strings: Strings, gap: str) -> Shown:
    return Shown(False, **_common(one, strings, gap), pictures=_cache_pictures(one, strings), looks=one["looks"],
                 rows=[Row(num(point["prompt"]), _cache_cells(point)) for point in one["points"]])


def _cache_cells(point: Figures) -> list[str]:
    return [f"{num(point['uncached_seconds'])} s", f"{num(point['cached_seconds'])} s", f"{fixed(point['ratio'], 1)}×",
            num(point["uncached"]), num(point["cached"]), num(point["cache_bytes"])]


def _cache_pictures(one: Figures, strings: Strings) -> list[Picture]:
    first, last, looks = one["first"], one["last"], one["looks"]
    times = strings("experiments.times", n=num(one["new"]), **{
        "from": first["prompt"], "to": last["prompt"], "with_first": num(first["cached_seconds"]),
        "with_last": num(last["cached_seconds"]), "without_first": num(first["uncached_seconds"]),
        "without_last": num(last["uncached_seconds"])})
    every = strings("experiments.every_round", n=num(first["prompt"]))
    keys = [(looks[way], strings(f"experiments.area_{way}", n=num(first[way]))) for way in ("uncached", "cached")]
    return [Picture(_both(one["plots"]["times"]), strings("experiments.prompt_length"),
                    strings("experiments.seconds", n=num(one["new"])), times),
            Picture(_both(one["plots"]["positions"]), strings("experiments.new_token"),
                    strings("experiments.positions"), every, heading=every, keys=keys)]
