"""Mathematical symbols for the names that equations use: one table, for formulas and for the working.

A name that is not listed is set upright, as a word.  `KIND_SYMBOLS` takes precedence, by keys (`site_builder/keys.py`):
the same operand name means different things in different operations, and in the roles of one: what holds for
``embedding (position)`` comes before what holds for ``embedding``.  A kind may also say its own.

A symbol d_x stands for ∂L/∂x, whatever the equation calls it.
"""

from site_builder.keys import general
from tracer.ops import KINDS

SYMBOLS = {
    "x": "x", "weight": "W", "bias": "b", "table": "E", "query": "Q", "key": "K", "value": "V", "scores": "S",
    "weights": "A", "mask": "m", "mean": r"\mu", "rstd": "r", "variance": r"\sigma^2", "normalised": r"\hat{x}",
    "logits": "z", "targets": "y", "log_sum_exp": r"\Lambda", "target_logit": "z^{y}", "out": "y",
    "ids": r"\mathrm{id}",
    "largest": r"z^{\max}", "total": r"\Sigma", "e": "e", "u": "u", "m": "m", "v": "v",
    "m_before": r"m^{\mathrm{before}}", "v_before": r"v^{\mathrm{before}}", "gradient": "g",
    "before": r"\theta", "after": r"\theta'", "m_hat": r"\hat{m}", "v_hat": r"\hat{v}", "beta1": r"\beta_1",
    "beta2": r"\beta_2", "lr": r"\eta", "weight_decay": r"\lambda", "eps": r"\varepsilon", "update": "s", "p": "p",
    "cdf": r"\Phi", "density": r"\varphi", "probability": "p", "target_probability": "p", "qkv": r"U",
    "temperature": r"\tau", "probabilities": "p", "cumulative": "F", "uniform": "u", "g": "g", "a": "a", "b": "b",
    "kept": "z", "n": "n",
}

KIND_SYMBOLS: dict[str, dict[str, str]] = {
    "embedding": {"out": "x", "table": "E"},
    "embedding (position)": {"table": "P", "ids": r"\mathrm{pos}"},
    "embedding (m)": {"out": r"m^{\mathrm{used}}", "table": "m"},
    "embedding (v)": {"out": r"v^{\mathrm{used}}", "table": "v"},
    "embedding (after)": {"out": r"\theta^{\mathrm{used}}", "table": r"\theta'"},
    "positions": {"out": r"\mathrm{pos}"},
    "add": {"out": "x"},
    "gradient_sum (table)": {"out": "d_E"},
    "gradient_sum": {"out": "d_x", "first": "g_1", "second": "g_2"},
    "dropout": {"out": "x'", "word": "w"},
    "layer_norm": {"weight": r"\gamma", "bias": r"\beta", "out": "u", "g": r"g"},
    "linear": {"out": "y"},
    "tied_head": {"out": "z"},
    "last_position": {"out": "x'"},
    "concatenate_heads": {"x": "O", "out": "C"},
    "scaled_scores": {"out": "S"},
    "causal_mask": {"out": r"S^{\mathrm{mask}}"},
    "softmax": {"x": "S", "out": "A", "largest": r"S^{\max}"},
    "softmax (candidates)": {"x": "z", "out": "p", "largest": r"z^{\max}"},
    "weighted_sum": {"out": "O"},
    "gelu": {"out": "y"},
    "cross_entropy": {"out": r"\ell"},
    "mean": {"x": r"\ell", "out": "L"},
    "loss_seed": {"out": "d_L"},
    "temperature": {"out": "z'"},
    "top_k": {"logits": "z'"},
    "cumulative": {"out": "F"},
    "join_bytes": {"out": "B"},
    "byte_tokens": {"out": r"\mathrm{id}"},
    "bpe_merge": {"before": r"\mathrm{id}", "out": r"\mathrm{id}'"},
    "append": {"before": r"\mathrm{id}", "out": r"\mathrm{id}'"},
    "window": {"out": r"\mathrm{id}'"},
    "window (inputs)": {"out": "x"},
    "window (targets)": {"out": "y"},
    "window (bytes)": {"out": r"B^{\mathrm{held}}", "ids": "B"},
    "complete_bytes": {"out": r"\mathrm{complete}", "bytes": "B"},
    "predicted_change": {"first": r"\Delta L", "running": r"\Delta L", "previous": r"\Delta L'"},
    "change": {"out": r"\Delta\theta"},
    "greedy": {"out": r"\mathrm{id}"},
    "is_end": {"token": r"\mathrm{id}", "out": r"\mathrm{end}"},
    "rotary (query)": {"x": "Q", "out": "Q'"},
    "rotary (key)": {"x": "K", "out": "K'"},
    "repeat_heads (key)": {"x": "K", "out": "K'"},
    "repeat_heads (value)": {"x": "V", "out": "V'"},
    "append_rows": {"past": "K", "new": "k", "out": "K'"},
    "append_rows (value)": {"past": "V", "new": "v", "out": "V'"},
    "drop_rows": {"past": "K", "out": "K'"},
    "drop_rows (value)": {"past": "V", "out": "V'"},
    "kept_rows": {"before": "K", "now": "K'", "was": "k", "became": "k'", "equal": "n", "apart": r"\delta"},
    "kept_rows (value)": {"before": "V", "now": "V'", "was": "v", "became": "v'"},
    "largest_difference": {"a": "x", "b": "x'", "out": r"\delta"},
    "top_p": {"out": "p'"},
    "difference": {"out": r"\Delta L", "after": "L'", "before": "L"},
}


def symbol(notation: str, name: str) -> str:
    """LaTeX for a name in an equation of `notation`, without its index; ``d_…`` for a gradient of the loss."""
    if name.startswith("d_"):
        return f"d_{symbol(notation, name[2:])}"
    kind = general(notation)[-1]
    own = KINDS[kind].symbols if kind in KINDS else {}
    tables = (*(KIND_SYMBOLS.get(one, {}) for one in general(notation)), own, SYMBOLS)
    found = next((table[name] for table in tables if name in table), "")
    return found or r"\mathrm{" + name.replace("_", r"\ ") + "}"


def in_latex(notation: str, name: str, index: str = "") -> str:
    """The symbol with its `index`, which of a gradient's symbol stands below."""
    latex = symbol(notation, name)
    if latex.startswith("d_"):
        return rf"\frac{{\partial L}}{{\partial {_indexed(latex[2:], index)}}}"
    return _indexed(latex, index)


def _indexed(latex: str, index: str) -> str:
    if not index:
        return latex
    return f"{{{latex}}}_{{{index}}}" if "^" not in latex else f"{latex}_{{{index}}}"


_TEXT = {r"\mu": "μ", r"\sigma^2": "σ²", r"\hat{x}": "x̂", r"\Lambda": "Λ", "z^{y}": "zʸ", r"z^{\max}": "zᵐᵃˣ",
         r"\Sigma": "Σ", r"\theta": "θ", r"\theta'": "θ′", r"\hat{m}": "m̂", r"\hat{v}": "v̂", r"\beta_1": "β₁",
         r"\beta_2": "β₂", r"\eta": "η", r"\lambda": "λ", r"\varepsilon": "ε", r"\Phi": "Φ", r"\varphi": "φ",
         r"\tau": "τ", r"\gamma": "γ", r"\beta": "β", r"\ell": "ℓ", r"S^{\mathrm{mask}}": "Sᵐ", r"S^{\max}": "Sᵐᵃˣ",
         "g_1": "g₁", "g_2": "g₂", "x'": "x′",
         r"\mathrm{id}": "id", r"\mathrm{id}'": "id′", "z'": "z′", r"\Delta L": "ΔL", r"\Delta L'": "ΔL′", "L'": "L′",
         r"\Delta\theta": "Δθ", "K'": "K′", "k'": "k′", "V'": "V′", "v'": "v′", r"\delta": "δ", "p'": "p′",
         r"m^{\mathrm{before}}": "mᵇ", r"v^{\mathrm{before}}": "vᵇ",
         r"m^{\mathrm{used}}": "mᵘ", r"v^{\mathrm{used}}": "vᵘ", r"\theta^{\mathrm{used}}": "θᵘ",
         r"B^{\mathrm{held}}": "Bʰ", r"\mathrm{pos}": "pos",
         r"\tilde{x}": "x̃", r"\tilde{g}": "g̃", "Q'": "Q′"}


def symbol_text(notation: str, name: str) -> str:
    """The same symbol as plain text, for the working of a number; a gradient is ∂name."""
    latex = symbol(notation, name)
    if latex.startswith("d_"):
        return "∂" + _TEXT.get(latex[2:], latex[2:] if "\\" not in latex else name.removeprefix("d_"))
    return _TEXT.get(latex) or (name if latex.startswith(r"\mathrm") else latex)
