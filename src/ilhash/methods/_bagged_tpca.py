"""Bagged PCA hashing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ilhash._parameters import count
from ilhash.diversity import UniformOrder, seed_for
from ilhash.functions import HashFunction
from ilhash.hasher import Given
from ilhash.methods._axes import principal_axes
from ilhash.methods._base import Method, TrainingData, UndefinedError, linear_functions
from ilhash.storage import DamagedFileError, Record


@dataclass(eq=False, repr=False, kw_only=True)
class BaggedTPCA(Method):
    """Thresholded PCA of many bootstrap samples, a few bits from each, side by side.

    Member m depends on (random_state, m) and the data alone: any number of bits, and a prefix is the shorter model.
    Principal axes hardly change from sample to sample, so members are more alike than those of supervised ensembles;
    with ``member_bits=1`` all bits are estimates of the first axis.

    Parameters
    ----------
    member_bits : int, default 16
        Bits of each member, at most the number of directions in which its sample varies; the last member may give
        fewer.
    n_train : int or "auto", default "auto", points N that each member draws, with replacement; "auto" is up to 5,000
    random_state : int, RandomState, Generator or None, default 0, what the samples are drawn from

    Attributes
    ----------
    members_ : list of int, the member that each bit is of

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
    _kept: ClassVar[dict[str, Callable[[Record, str], Any]]] = {
        **Method._kept,
        "members": lambda record, name: record.all_of(name, int),
    }

    member_bits: int = count(16)

    def _learn(self, data: TrainingData) -> list[HashFunction]:
        functions: list[HashFunction] = []
        self.members_ = [bit // self.member_bits for bit in range(self.n_bits)]
        for member in range(-(-self.n_bits // self.member_bits)):
            rows = data.training_set(_rows_of_member(member, data.pool, data.seed, data.n_train)).rows
            variances, axes = principal_axes(rows)
            wanted = min(self.member_bits, self.n_bits - len(functions))
            if wanted > len(variances):
                raise UndefinedError(
                    f"member_bits must be at most {len(variances)} on these data, one per direction in which the "
                    f"{data.n_train} points of member {member} vary, got {self.member_bits}"
                )
            functions += linear_functions(rows, axes[:, :wanted])
        return functions

    def _rows_of_bit(self, bit: int, X: Any, y: Any, graph: Given) -> NDArray[np.int64]:
        if not self.members_:
            raise ValueError("the model must know the members of its bits, got one that an earlier version wrote")
        return np.sort(_rows_of_member(self.members_[bit], self._pool_again(X, y, graph), self.seed_, self.n_train_))

    def _with_bits(self, chosen: list[int]) -> BaggedTPCA:
        part = super()._with_bits(chosen)
        part.members_ = [self.members_[i] for i in chosen] if self.members_ else []
        return part

    def _read_own_document(self, record: Record) -> None:
        super()._read_own_document(record.completed({"members": []}))
        if self.members_ and (len(self.members_) != len(self.functions_) or min(self.members_) < 0):
            raise DamagedFileError(
                f"{record.where} must have 'members', one from 0 on for each bit, or none, got others"
            )


def _rows_of_member(member: int, pool: UniformOrder, seed: int, n_train: int) -> NDArray[np.int64]:
    return pool.bootstrap(seed_for(seed, "rows", member), n_train)
