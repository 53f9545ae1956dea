"""Common checks of inference methods, for those of the package and for your own.

``check_aggregator(YourMethod)`` runs all checks and stops at the first failure.

>>> from wisecrowd.testing import CHECKS, check_aggregator
>>> CHECKS[0].__name__
'check_row_order'

Each check is a function of ``make``, which returns a new, unfitted method. A test suite can
therefore run each check separately: ``check(maker(method))``.
"""

from wisecrowd.testing.checks import CHECKS, check_aggregator
from wisecrowd.testing.foundation import maker

__all__ = ["CHECKS", "check_aggregator", "maker"]
