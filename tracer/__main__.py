"""``python -m tracer``: see `tracer.cli.commands`."""

from tracer.cli.commands import main

main()
