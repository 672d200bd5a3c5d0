"""The errors that a user sees, each with the exit code of the command that ends on it."""


class RowproofError(Exception):
    """Input or state that the user can mend: the message says what must hold, what was found, what to do.

    Command-line entry points print the message without a traceback and exit with ``exit_code``.
    """

    exit_code = 2


class ConfigError(RowproofError):
    """A configuration file breaks its schema or names something that does not exist."""


class GateError(RowproofError):
    """The preregistration gate refuses: the plan is not committed, edited, or does not cover the run."""

    exit_code = 4


class RecordError(RowproofError):
    """A record or bundle file is not in canonical form or breaks its declared schema."""


class HistoryGap(RowproofError):
    """What is needed to decide a check is not here: a repository, tag, commit, plan or piece of evidence.

    Never answered with yes or no: the check is unknown. The message says what is missing and what to do.
    """


class StaleInputError(RowproofError):
    """Code, configuration or an intermediate file changed while a build was under way."""
