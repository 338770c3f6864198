"""What the page shows of each experiment: the words, cells and drawings that its template places."""

from dataclasses import dataclass, field
from typing import Any

from site_builder.attention_pictures import Matrix, SentencePicture
from site_builder.experiments import fixed
from site_builder.experiments_families import LOOKS, Filling, families_moments, fillings
from site_builder.experiments_heads import DEEP, SHALLOW, head_name, induction_moments, read_sentences
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
    under_slider: bool = False  # whether a line shows the moment that a slider chose


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
class Moments:
    """The matrices of a few heads, or words, under a slider: `data` is JSON for the script, `names` say which they are,
    `captions` what is ringed; the readings are those of the last moment."""

    data: str
    matrices: list[Matrix]
    names: list[str]
    captions: list[str]
    readings: list[tuple[str, str]]
    last: int
    updates: str


@dataclass
class Reader:
    """One model of several: its name, whether it is shown first, and every sentence as it reads it: (picture, says)."""

    name: str
    first: bool
    figures: str
    sentences: list[tuple[SentencePicture, str, bool | None]]


@dataclass
class Shown:
    """One experiment by its `id`; `said` and `reading` are (title, HTML, HTML of what is often misread)."""

    kind: str
    id: str
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
    moments: Moments | None = None
    readers: list[Reader] = field(default_factory=list)
    fillings: list[Filling] = field(default_factory=list)
    more_rows: list[Row] = field(default_factory=list)

    def is_a(self, kind: str) -> bool:
        return self.kind == kind


def shown(told: list[Figures], language: Language) -> list[Shown]:
    """Every experiment of `site_builder.experiments.tell`, ready to be placed."""
    strings = Strings(language)
    kinds = {"depth": _depth, "cache": _cache, "initial": _initial, "induction": _induction,
             "noun": _noun, "families": _families}
    return [kinds[one["kind"]](one, strings, language.gap) for one in told]


def experiments_data(told: list[Figures], root: str) -> dict[str, Any] | None:
    """What the scripts of the page are told; nothing where none of the experiments moves."""
    moves = any(one["kind"] in ("induction", "noun", "families") for one in told)
    return {"route": "", "root": root, "words": {}, "experiments": True} if moves else None


def _common(one: Figures, strings: Strings, gap: str) -> dict[str, Any]:
    about = strings("experiments.conditions", torch=one["torch"], machine=one["machine"], threads=one["threads"])
    kernels = strings("experiments.kernels" if one["kind"] in ("depth", "cache") else "experiments.repeatable")
    return {"id": one["id"], "said": one["what"], "reading": one["reading"], "conditions": about + gap + kernels,
            "switches": [f"{name} = {_setting(value)}" for name, value in one["conditions"].items()]}


def _setting(value: object) -> str:
    return str(value).lower()


def _depth(one: Figures, strings: Strings, gap: str) -> Shown:
    runs, sample = one["runs"], one["sample"]
    start = "" if sample["prompt"] else strings("experiments.no_prompt") + gap
    sampled = strings("experiments.sampled", n=num(sample["tokens"]), temperature=sample["temperature"])
    return Shown(
        "depth", **_common(one, strings, gap), pictures=_depth_pictures(one, strings),
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
    return Shown("cache", **_common(one, strings, gap), pictures=_cache_pictures(one, strings), looks=one["looks"],
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


def _initial(one: Figures, strings: Strings, gap: str) -> Shown:
    return Shown("initial", **_common(one, strings, gap), pictures=[], rows=[
        Row(num(point["vocabulary"]), [str(point["std"]), num(point["parameters"]), fixed(point["loss"], 4),
                                       fixed(point["even"], 4), fixed(point["spread"], 4)])
        for point in one["points"]])


# Attention that learns where to look ----------------------------------------------------------------------

def _induction(one: Figures, strings: Strings, gap: str) -> Shown:
    data, matrices = induction_moments(one)
    run, heads = one["run"], one["heads"]
    names = [head_name(head, strings) for head in heads]
    moments = Moments(
        data, matrices, names, [strings(f"experiments.ringed_{head['name']}") for head in heads],
        [(strings("experiments.known_loss"), fixed(run["known"], 2)),
         *((strings(f"experiments.score_{head['name']}", head=name), fixed(head["scores"][-1], 3))
           for head, name in zip(heads, names, strict=True))],
        len(run["curve"]["update"]) - 1, num(run["curve"]["update"][-1]))
    update = strings("axis.update")
    pictures = [
        Picture(_both(one["plots"]["losses"]), update, strings("experiments.known_loss_axis"), strings(
            "experiments.known_losses", first=fixed(run["curve"]["known"][0], 2), last=fixed(run["known"], 2)),
            under_slider=True),
        Picture(_both(one["plots"]["scores"]), update, strings("experiments.share"), strings(
            "experiments.scores", first=fixed(heads[1]["scores"][0], 3), last=fixed(heads[1]["scores"][-1], 3)),
            caption=strings("experiments.scores_caption"), under_slider=True)]
    return Shown("induction", **_common(one, strings, gap), pictures=pictures, moments=moments,
                 rows=[Row(num(each["blocks"]), _induction_cells(each), DEEP if each in one["deep"] else SHALLOW)
                       for each in one["runs"]],
                 settings=[(name, _setting(value)) for name, value in one["settings"].items()])


def _induction_cells(run: Figures) -> list[str]:
    return [str(run["seed"]), num(run["parameters"]), fixed(run["known"], 3), fixed(run["unknown"], 3),
            *(fixed(run[name], 3) for name in ("previous", "induction", "twice")),
            "–" if run["formed"] is None else num(run["formed"])]


def _noun(one: Figures, strings: Strings, gap: str) -> Shown:
    readers = [Reader(_model(run, strings), run is one["clear"], strings(
        "experiments.reader", held_out=_percent(run["held_out"]), right=fixed(run["right"], 3)),
        [(drawn, _says(sentence), sentence["ok"]) for drawn, sentence in read_sentences(one, run)])
        for run in one["runs"]]
    update = strings("axis.update")
    pictures = [Picture(_both(one["plots"][name]), update, strings(f"experiments.{axis}"),
                        strings(f"experiments.{name}"), heading=strings(f"experiments.{name}"))
                for name, axis in (("answers", "share_right"), ("weights", "share"))]
    return Shown("noun", **_common(one, strings, gap), pictures=pictures, readers=readers,
                 rows=[Row(num(run["blocks"]), [str(run["seed"]), num(run["parameters"]), _percent(run["trained"]),
                                                _percent(run["held_out"]), fixed(run["right"], 3),
                                                fixed(run["other"], 3)],
                           DEEP if run in one["deep"] else SHALLOW) for run in one["runs"]],
                 settings=[(name, _setting(value)) for name, value in one["settings"].items()])


def _families(one: Figures, strings: Strings, gap: str) -> Shown:
    data, matrices = families_moments(one)
    run = one["run"]
    readings = [(strings(f"experiments.{name}_reading"), fixed(run[name], 3)) for name in ("words", "right")]
    shown_words = one["shown"]["words"]
    moments = Moments(data, matrices, shown_words, [strings("experiments.ringed_letter")] * len(matrices), readings,
                      len(run["curve"]["update"]) - 1, num(run["curve"]["update"][-1]))
    label = strings("experiments.reversing_plot", words=fixed(run["words"], 3), right=fixed(run["right"], 3))
    picture = Picture(_both(one["plots"]["reversing"]), strings("axis.update"), strings("experiments.share_right"),
                      label, caption=strings("experiments.reversing_caption"), under_slider=True)
    settings = [(f"{task}: {name}", _setting(value)) for task in ("reversing", "masked")
                for name, value in one[task]["settings"].items()]
    return Shown("families", **_common(one, strings, gap), pictures=[picture], moments=moments, looks=LOOKS,
                 fillings=fillings(one), settings=settings,
                 rows=[Row(str(each["seed"]), [num(each["parameters"]), _percent(each["words"]),
                                               fixed(each["right"], 3)]) for each in one["runs"]],
                 more_rows=[Row(strings(f"experiments.sides_{each['sides']}"), _filled_cells(each),
                                LOOKS[each["sides"]]) for each in one["masked_runs"]])


def _filled_cells(run: Figures) -> list[str]:
    return [str(run["seed"]), num(run["parameters"]),
            *(_percent(run[name]) for name in ("noun", "noun_held_out", "verb", "verb_held_out"))]


def _model(run: Figures, strings: Strings) -> str:
    return strings("experiments.model", n=run["blocks"], seed=run["seed"])


def _percent(share: float) -> str:
    return f"{fixed(100 * share, 1)}%"


def _says(sentence: Figures) -> str:
    return " · ".join(f"{word['word']} {fixed(word['share'], 3)}" for word in sentence["said"][:2])
