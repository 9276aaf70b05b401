"""Bagged PCA hashing."""

from __future__ import annotations

from typing import Any, ClassVar

from ilhash._parameters import check_count
from ilhash.diversity import seed_for
from ilhash.functions import HashFunction
from ilhash.methods._axes import principal_axes
from ilhash.methods._base import Method, Source, linear_functions

__all__ = ["BaggedTPCA"]


class BaggedTPCA(Method):
    """Thresholded PCA of many bootstrap samples, a few bits from each, side by side.

    Member m depends on (random_state, m) and the data alone: any number of bits, and a prefix is the shorter model.
    Principal axes hardly change from sample to sample, so members are more alike than those of supervised ensembles;
    with ``member_bits=1`` all bits are estimates of the first axis.

    Parameters
    ----------
    n_bits : int, default 64
        Number of bits b.
    member_bits : int, default 16
        Bits of each member, at most the number of directions in which its sample varies; the last member may give
        fewer.
    n_train : int or "auto", default "auto"
        Points N that each member draws, with replacement; "auto" is up to 5,000.
    random_state : int, RandomState, Generator or None, default 0
        What the samples are drawn from.

    References
    ----------
    C. Leng, J. Cheng, T. Yuan, X. Bai and H. Lu, Learning binary codes with bagging PCA, ECML PKDD 2014.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> BaggedTPCA(n_bits=12, member_bits=4).fit(X).transform(X).shape
    (100, 2)
    """

    nested: ClassVar[bool] = True
    auto_train: ClassVar[int] = 5_000

    def __init__(
        self, n_bits: int = 64, *, member_bits: int = 16, n_train: int | str = "auto", random_state: Any = 0
    ) -> None:
        super().__init__(n_bits, n_train=n_train, random_state=random_state)
        self.member_bits = member_bits

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("member_bits", self.member_bits)

    def _learn(self, source: Source) -> list[HashFunction]:
        functions: list[HashFunction] = []
        for member in range(-(-self.n_bits // self.member_bits)):
            drawn = source.pool.bootstrap(seed_for(source.seed, "rows", member), source.n_train)
            rows = source.training_set(drawn).rows
            variances, axes = principal_axes(rows)
            wanted = min(self.member_bits, self.n_bits - len(functions))
            if wanted > len(variances):
                raise ValueError(
                    f"member_bits must be at most {len(variances)} on these data, one per direction in which the "
                    f"{source.n_train} points of member {member} vary, got {self.member_bits}"
                )
            functions += linear_functions(rows, axes[:, :wanted])
        return functions
