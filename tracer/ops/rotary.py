"""Rotary positions: queries and keys are turned by an angle that grows with their position, as in Llama."""

from tracer.ops.registry import define

_ANGLE = "angle[t, d] = positions[t] / base ** (2 * (d % half) / (2 * half))"

ROTARY = define(
    "rotary",
    "Su et al. 2021, equation 34; feature d is turned together with d + half, as Llama's published weights have it",
    f"""
    {_ANGLE}
    partner[h, t, d] = where(d < half, -x[h, t, d + half], x[h, t, d - half])
    out[h, t, d] = x[h, t, d] * cos(angle[t, d]) + partner[h, t, d] * sin(angle[t, d])
    """,
    # The derived one looks for each feature among all; this one says what it is: turned back by the same angle.
    gradients={
        "x": f"""
            {_ANGLE}
            back[h, t, d] = where(d < half, d_out[h, t, d + half], -d_out[h, t, d - half])
            d_x[h, t, d] = d_out[h, t, d] * cos(angle[t, d]) + back[h, t, d] * sin(angle[t, d])
            """,
    },
    symbols={"angle": r"\theta", "partner": r"\tilde{x}", "back": r"\tilde{g}", "positions": "p"},
)
