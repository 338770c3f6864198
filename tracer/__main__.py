"""``python -m tracer``: see `tracer.cli`."""

from tracer.cli import main

main()
