"""The common checks of inference methods, for the package's own and for yours.

``check_aggregator(YourMethod)`` runs them all and stops at the first that fails.

>>> from wisecrowd.testing import CHECKS, check_aggregator
>>> CHECKS[0].__name__
'check_row_order'

Each check is a function of ``make``, which returns a fresh, unfitted method, so that a test suite
can run every check on its own: ``check(maker(method))``.
"""

from wisecrowd.testing.checks import CHECKS, check_aggregator
from wisecrowd.testing.foundation import maker

__all__ = ["CHECKS", "check_aggregator", "maker"]
