"""The one kind of error a user is meant to read: one line that says what is wrong and what to do."""


class UserError(Exception):
    """Bad input or a missing file. The command line prints the message alone and exits with 2."""
