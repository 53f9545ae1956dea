"""Errors and warnings: each message says what was given, what is allowed and what to do."""

import sys


class WisecrowdError(Exception):
    """Base of every error that wisecrowd raises on purpose."""


class DataError(WisecrowdError, ValueError):
    """The data, or a file, cannot be used as given; the command line exits with code 3."""


class ParameterError(WisecrowdError, ValueError):
    """A parameter or option has a value that is not allowed; the command line exits with code 2."""


class UnknownParameterError(ParameterError, TypeError):
    """A method has no parameter of that name.

    It is also the TypeError that Python raises for an unknown argument of a constructor.
    """


class ConcurrentFitError(WisecrowdError, RuntimeError):
    """A method was fitted while another thread was fitting it."""


class NotFittedError(WisecrowdError, ValueError, AttributeError):
    """A result was asked of a model before ``fit``.

    Both bases are those of scikit-learn's error of the same name, so that code written for its
    estimators catches this one too.
    """


def not_fitted(message: str) -> NotFittedError:
    """Return a NotFittedError that is also scikit-learn's, where scikit-learn is in use."""
    loaded = sys.modules.get("sklearn.exceptions")
    if loaded is None:
        return NotFittedError(message)
    both = type("NotFittedError", (NotFittedError, loaded.NotFittedError), {"__doc__": ""})
    error: NotFittedError = both(message)
    return error


class MissingDependencyError(WisecrowdError, ImportError):
    """An optional library is not installed; the message names the extra that brings it."""


class WisecrowdWarning(UserWarning):
    """Something the user should know, although the result is usable."""


class FindingWarning(WisecrowdWarning):
    """A finding about the labels or the fit that casts doubt on a result."""


DoubtWarning = FindingWarning  # the former name
