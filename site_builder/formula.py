"""Equations of operations as LaTeX, and as MathML for the page."""

from site_builder.compiled import formulas
from site_builder.symbols import in_latex
from tracer.ops import Equation
from tracer.ops.functions import FUNCTIONS
from tracer.ops.language import Node

Written = tuple[str, int]  # LaTeX, and how tightly its outermost operation binds
_LOW, _SUM, _PRODUCT, _ATOM = range(4)
_COMPARE = {"==": "=", "<=": r"\le", "<": "<", ">=": r"\ge", ">": ">"}


OTHERWISE = "\ue010"  # in MathML, where a page says in its own language that a case holds for the rest


def mathml(notation: str, equation: Equation) -> str:
    """One equation as a MathML block."""
    return formulas().convert(latex(notation, equation), "block")


def inline_mathml(source: str) -> str:
    """LaTeX that stands inside prose."""
    return formulas().convert(source, "inline")


def latex(notation: str, equation: Equation) -> str:
    """`equation` in LaTeX, in the symbols of `notation`: a kind, or a use of it."""
    writer = _Writer(notation)
    left = writer.read(equation.name, equation.index)
    return f"{left} = {writer.write(equation.body, _LOW)}"


class _Writer:
    def __init__(self, notation: str):
        self.notation = notation

    def write(self, node: Node, level: int) -> str:
        text, own = getattr(self, f"_{node[0]}")(*node[1:])
        return rf"\left( {text} \right)" if own < level else text

    def read(self, name: str, index: list[Node]) -> str:
        return in_latex(self.notation, name, r",\,".join(self.write(item, _LOW) for item in index))

    def _number(self, value: float) -> Written:
        return f"{value:,}".replace(",", "{,}") if isinstance(value, int) else str(value), _ATOM

    def _letter(self, name: str) -> Written:
        return name, _ATOM

    def _name(self, name: str) -> Written:
        if name in ("inf", "pi"):
            return {"inf": r"\infty", "pi": r"\pi"}[name], _ATOM
        return in_latex(self.notation, name), _ATOM

    def _size(self, letter: Node) -> Written:
        return f"n_{{{letter[1]}}}", _ATOM

    def _read(self, name: str, index: list[Node]) -> Written:
        return self.read(name, index), _ATOM

    def _negate(self, body: Node) -> Written:
        return f"-{self.write(body, _PRODUCT)}", _SUM

    def _binary(self, op: str, left: Node, right: Node) -> Written:
        match op:
            case "+" if right == ["number", 0]:
                return self.write(left, _SUM), _SUM
            case "+":
                return f"{self.write(left, _SUM)} + {self.write(right, _SUM)}", _SUM
            case "-":
                return f"{self.write(left, _SUM)} - {self.write(right, _PRODUCT)}", _SUM
            case "*":
                return f"{self.write(left, _PRODUCT)} \\cdot {self.write(right, _PRODUCT)}", _PRODUCT
            case "/":
                return rf"\frac{{{self.write(left, _LOW)}}}{{{self.write(right, _LOW)}}}", _ATOM
            case "//":
                return rf"\lfloor {self.write(left, _PRODUCT)} / {self.write(right, _PRODUCT)} \rfloor", _ATOM
            case "**":
                return f"{{{self.write(left, _ATOM)}}}^{{{self.write(right, _LOW)}}}", _ATOM
        return rf"{self.write(left, _PRODUCT)} \bmod {self.write(right, _PRODUCT)}", _SUM

    def _compare(self, op: str, left: Node, right: Node) -> Written:
        return f"[{self.write(left, _LOW)} {_COMPARE[op]} {self.write(right, _LOW)}]", _ATOM

    def _where(self, condition: Node, yes: Node, no: Node) -> Written:
        """One row a case; the last holds for the rest."""
        rows = []
        node: Node = ["where", condition, yes, no]
        while node[0] == "where":
            test = self.write(node[1], _LOW)
            if node[1][0] == "compare":  # alone it needs no brackets
                test = test[1:-1]
            # Braces: a bracket at the start of a row would be read as an option of the environment.
            rows.append(f"{{{self.write(node[2], _LOW)}}} & {test}")
            node = node[3]
        rows.append(rf"{{{self.write(node, _LOW)}}} & \text{{{OTHERWISE}}}")
        return r"\begin{cases} " + r" \\ ".join(rows) + r" \end{cases}", _PRODUCT

    def _call(self, name: str, body: Node) -> Written:
        return FUNCTIONS[name].latex.replace("%", self.write(body, _LOW)), _ATOM

    def _stream(self, word: Node, n: Node) -> Written:
        return rf"\mathrm{{MCG31m1}}\left( {self.write(word, _LOW)},\, {self.write(n, _LOW)} \right)", _ATOM

    def _reduce(self, name: str, over: list[Node], body: Node, *rest: Node) -> Written:
        letters = ",".join(item[1] for item in over)
        if name == "sum":
            return rf"\sum_{{{letters}}} {self.write(body, _PRODUCT)}", _PRODUCT
        if name == "max":
            return rf"\max_{{{letters}}} {self.write(body, _PRODUCT)}", _PRODUCT
        order = rf"\left( {self.write(body, _LOW)} \right)"
        if rest[0] == ["number", 0]:
            return rf"\mathrm{{argmax}}_{{{letters}}} {order}", _ATOM
        # Largest first; an upright argsort alone would be read as NumPy's, smallest first.
        return rf"\mathrm{{argsort}}^{{\downarrow}}_{{{letters}}} {order}_{{{self.write(rest[0], _LOW)}}}", _ATOM
