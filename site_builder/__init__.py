"""Build the static site from recordings.  Knows the trace format and the operations, never torch."""
