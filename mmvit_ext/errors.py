"""The error of a command line tool whose cause lies in what it was given."""


class UsageError(Exception):
    """A wrong argument, config value or data set; one line that names field, value and remedy."""
