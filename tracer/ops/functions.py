"""The functions of one value that equations may call: one row each, and nothing about one anywhere else.

From a row come: the value and its float32 error bound in NumPy (`tracer.ops.rounded`), what an evaluation takes
(`tracer.ops.cost`), its gradient (`tracer.ops.derive`), the formula (`site_builder/formula.py`), and in the browser
the value, the written-out working and the line of Python (`site_builder/functions.py` hands the rows over).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

UNIT = 2.0**-24  # unit roundoff of float32
SMALLEST = 2.0**-126  # smallest normal float32: what is below may lose digits, or become 0

Numbers = np.ndarray | np.float64  # float64 of any shape; of none, an operation of NumPy gives the scalar
ErrorRule = Callable[[Numbers, Numbers, Numbers], Numbers]


@dataclass(frozen=True)
class Function:
    """One function f of one value x; in texts the argument is written x, in `latex` and `python` as %.

    `numpy`: f of a float64 array of any shape.  `error`: from x, f(x) and the error bound of x, the bound of f(x)
    computed in float32, each an array of that shape.  `derivative`: f′ in the language of operations, of x and
    y = f(x).  `javascript`: an arrow function.  `python`: an expression that may use `math` and `np`.  `text`: its
    sign before brackets.  `cost`: nanoseconds a value of `numpy` and `error`, on a slow core.  `domain`: the
    open interval on which f is real and differentiable.
    """

    name: str
    numpy: Callable[[Numbers], Numbers]
    error: ErrorRule
    derivative: str
    javascript: str
    python: str
    latex: str
    text: str
    cost: float = 30
    domain: tuple[float, float] = (-math.inf, math.inf)


def carried(slope: Callable[[Numbers, Numbers], Numbers | float], units: float = 1) -> ErrorRule:
    """What the error of x becomes, by |f′| or a bound of it, and so many unit roundoffs of the value itself."""
    return lambda x, y, error: slope(x, y) * error + units * UNIT * np.abs(y) + SMALLEST


def _erf(x: Numbers) -> np.ndarray:
    flat = np.ravel(x)
    return np.array([math.erf(each) for each in flat.tolist()], np.float64).reshape(np.shape(x))


def _half_slope(x: Numbers, y: Numbers) -> np.ndarray:
    """1 / 2√x; at 0 nothing is carried, since the slope there bounds nothing."""
    return np.asarray(np.divide(0.5, y, out=np.zeros_like(y), where=y > 0))


# Abramowitz and Stegun 1964: 7.1.6 (series), in which every term is positive and nothing cancels, and 7.1.14
# (continued fraction of 1 − erf), from the inside out.
_ERF = """(x) => {
    const a = Math.abs(x);
    if (!(a < Infinity)) return Number.isNaN(x) ? NaN : Math.sign(x);
    const bell = Math.exp(-a * a);
    if (a < 1) {
      let sum = 1;
      for (let n = 24; n >= 1; n--) sum = 1 + ((2 * a * a) / (2 * n + 1)) * sum;
      return Math.sign(x) * ((2 / Math.sqrt(Math.PI)) * bell * a * sum);
    }
    let fraction = a;
    for (let n = 200; n >= 1; n--) fraction = a + n / 2 / fraction;
    return Math.sign(x) * (1 - bell / Math.sqrt(Math.PI) / fraction);
  }"""

FUNCTIONS: dict[str, Function] = {row.name: row for row in (
    Function("exp", np.exp, carried(lambda x, y: y), "y", "Math.exp", "math.exp(%)", r"\exp\left( % \right)", "exp"),
    Function("log", np.log, carried(lambda x, y: 1 / np.abs(x)), "1 / x", "Math.log", "math.log(%)",
             r"\ln\left( % \right)", "ln", domain=(0, math.inf)),
    Function("sqrt", np.sqrt, carried(_half_slope), "1 / (2 * y)", "Math.sqrt", "math.sqrt(%)", r"\sqrt{%}", "√",
             domain=(0, math.inf)),
    # Rounded beside 1, from which small values are taken off: 2 units of 1, not of the value.
    Function("erf", _erf, lambda x, y, error: error * 2 / math.sqrt(math.pi) + 2 * UNIT,
             "2 / sqrt(pi) * exp(-(x * x))", _ERF, "math.erf(%)", r"\mathrm{erf}\left( % \right)", "erf", cost=400),
    # Where a slope is 0 the first order says nothing: sin and cos carry by the largest slope.
    Function("sin", np.sin, carried(lambda x, y: 1, 2), "cos(x)", "Math.sin", "math.sin(%)",
             r"\sin\left( % \right)", "sin"),
    Function("cos", np.cos, carried(lambda x, y: 1, 2), "-sin(x)", "Math.cos", "math.cos(%)",
             r"\cos\left( % \right)", "cos"),
    Function("tanh", np.tanh, carried(lambda x, y: 1 - y * y, 2), "1 - y * y", "Math.tanh", "math.tanh(%)",
             r"\tanh\left( % \right)", "tanh", cost=40),
    # The exponent is never positive, so that nothing overflows.
    Function("sigmoid", lambda x: np.exp(np.minimum(x, 0)) / (1 + np.exp(-np.abs(x))),
             carried(lambda x, y: y * (1 - y), 4), "y * (1 - y)",
             "(x) => Math.exp(Math.min(x, 0)) / (1 + Math.exp(-Math.abs(x)))",
             "(np.exp(min(%, 0)) / (1 + np.exp(-abs(%))))", r"\sigma\left( % \right)", "σ", cost=80),
)}
