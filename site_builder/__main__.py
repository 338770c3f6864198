"""``python -m site_builder``: see `site_builder.cli`."""

from site_builder.cli import main

main()
