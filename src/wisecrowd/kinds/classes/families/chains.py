r"""Convergence diagnostics of Markov chains: split R-hat and effective sample size, streamed.

Traces of many quantities over long chains do not fit into memory, but sums over halves and batches
do.
"""

from __future__ import annotations

import numpy as np

from wisecrowd.core.types import Floats

BATCHES = 20  # batches per chain, for the effective sample size
APART = 1.1  # R-hat above which chains count as not mixed


class ChainMonitor:
    r"""Sums of ``n_quantities`` numbers over sweeps, for each of ``n_chains`` chains.

    .. math::
        \hat R = \sqrt{\frac{(n - 1) W / n + B / n}{W}}, \qquad
        ESS = \frac{(n - 1) W / n + B / n}{\operatorname{Var}(\text{batch means}) / b}

    where every chain counts as two of half the length, which reveals drift, and b is the number of
    batches in all chains together.

    References
    ----------
    A. Gelman, J. B. Carlin, H. S. Stern, D. B. Dunson, A. Vehtari and D. B. Rubin (2013). Bayesian
    Data Analysis, third edition, section 11.4. Chapman and Hall.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> monitor = ChainMonitor(400, n_chains=4, n_quantities=1)
    >>> for _ in range(400):
    ...     monitor.add(rng.normal(size=(4, 1)))
    >>> bool(monitor.r_hat()[0] < 1.01), bool(monitor.effective_size()[0] > 1000)
    (True, True)
    """

    def __init__(self, n_sweeps: int, n_chains: int, n_quantities: int) -> None:
        self.n_sweeps, self.n_chains = n_sweeps, n_chains
        half = n_sweeps // 2
        self._half_sizes = np.array([half, n_sweeps - half], dtype=np.float64)
        n_batches = min(BATCHES, n_sweeps)
        self._batch_of = np.arange(n_sweeps) * n_batches // n_sweeps
        self._batch_sizes = np.bincount(self._batch_of).astype(np.float64)
        self._seen = 0
        shape = (n_chains, n_quantities)
        self._origin = np.zeros(shape)
        self._sums = np.zeros((2, *shape))
        self._squares = np.zeros((2, *shape))
        self._batches = np.zeros((n_batches, *shape))

    def add(self, values: Floats) -> None:
        """Add the values (n_chains, n_quantities) of the next sweep."""
        if self._seen == 0:
            self._origin = values.copy()  # sums of squares are more precise around the first value
        moved = values - self._origin[:1]
        half = int(self._seen >= self.n_sweeps // 2)
        self._sums[half] += moved
        self._squares[half] += moved**2
        self._batches[self._batch_of[self._seen]] += moved
        self._seen += 1

    def _parts(self) -> tuple[Floats, Floats, Floats]:
        """Return variance within and between half chains, and their pooled estimate."""
        sizes = self._half_sizes[:, None, None]
        means = self._sums / sizes
        within = (self._squares / sizes - means**2) * sizes / (sizes - 1)
        noise = 1e-14 * (self._squares / sizes).max(axis=(0, 1)) + 1e-300
        within_mean = np.maximum(within.mean(axis=(0, 1)), 0.0)
        within_mean[within_mean <= noise] = 0.0
        between = means.reshape(-1, means.shape[2]).var(axis=0, ddof=1)
        between[between <= noise] = 0.0
        n = self.n_sweeps / 2
        return within_mean, between, (n - 1) / n * within_mean + between

    def r_hat(self) -> Floats:
        """Return split R-hat (n_quantities,): one for constants, infinite for stuck chains."""
        within, between, pooled = self._parts()
        stuck = np.where(between > 0, np.inf, 1.0)
        ratio = pooled / np.where(within > 0, within, 1.0)
        return np.where(within > 0, np.sqrt(ratio), stuck)

    def effective_size(self) -> Floats:
        """Return the effective number of draws (n_quantities,), at most the number of draws."""
        _, between, pooled = self._parts()
        batches = (self._batches / self._batch_sizes[:, None, None]).reshape(
            -1, self._batches.shape[2]
        )
        error = batches.var(axis=0, ddof=1) / len(batches)
        # Batches of chains that have not mixed are dependent: a half chain then counts as one draw.
        apart = self.r_hat() > APART
        error = np.where(apart, between / (2 * self.n_chains), error)
        taken = float(self.n_sweeps * self.n_chains)
        known = (error > 0) & (pooled > 0)
        return np.where(known, np.minimum(pooled / np.where(known, error, 1.0), taken), taken)
