"""Errors and warnings. Each message states what was given, what is allowed and what to do."""

import sys


class WisecrowdError(Exception):
    """Base of all errors that wisecrowd raises."""


class DataError(WisecrowdError, ValueError):
    """The data, or a file, cannot be used as given; the command line exits with code 3."""


class ParameterError(WisecrowdError, ValueError):
    """A parameter or option has a value that is not allowed; the command line exits with code 2."""


class UnknownParameterError(ParameterError, TypeError):
    """A method has no parameter of that name.

    It is also a TypeError, which Python raises for an unknown argument of a constructor.
    """


class ConcurrentFitError(WisecrowdError, RuntimeError):
    """Another thread was already fitting the method."""


class NotFittedError(WisecrowdError, ValueError, AttributeError):
    """A result was requested before ``fit``.

    It has the same bases as scikit-learn's NotFittedError, so code written for scikit-learn
    catches it too.
    """


def not_fitted(message: str) -> NotFittedError:
    """Return a NotFittedError that is also scikit-learn's, if scikit-learn is imported."""
    loaded = sys.modules.get("sklearn.exceptions")
    if loaded is None:
        return NotFittedError(message)
    both = type("NotFittedError", (NotFittedError, loaded.NotFittedError), {"__doc__": ""})
    error: NotFittedError = both(message)
    return error


class MissingDependencyError(WisecrowdError, ImportError):
    """An optional library is not installed; the message names the extra that installs it."""


class WisecrowdWarning(UserWarning):
    """Information that the user should know; the result is usable."""


class FindingWarning(WisecrowdWarning):
    """A finding about the labels or the fit that makes a result unreliable."""


DoubtWarning = FindingWarning  # the previous name
