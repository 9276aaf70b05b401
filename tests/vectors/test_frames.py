"""Frames of pandas and polars and tables of pyarrow: features, ids and labels by their names."""

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from numpy.testing import assert_array_equal

from ilhash.vectors import as_matrix, column, columns_of, has_named_features, named_columns, take_rows, without_columns

FRAMES = ["pandas", "polars", "pyarrow", "batch"]
VALUES = np.arange(12, dtype=np.float32).reshape(4, 3)
SKUS = ["a", "b", "ä\n", "d"]


def frame(kind, columns):
    """Make a frame of columns, of which arrays (n, d) are vectors."""
    lists = {name: list(values) if np.ndim(values) == 2 else values for name, values in columns.items()}
    if kind == "pandas":
        return pandas.DataFrame(lists)
    if kind == "polars":
        return polars.DataFrame({name: polars.Series(values) for name, values in lists.items()})
    table = pyarrow.table({name: [np.asarray(v).tolist() for v in values] for name, values in lists.items()})
    return table if kind == "pyarrow" else table.combine_chunks().to_batches()[0]


@pytest.mark.parametrize("kind", FRAMES)
def test_columns_of_numbers_and_of_vectors_are_features(kind):
    plain = frame(kind, {"a": VALUES[:, 0], "b": VALUES[:, 1].astype(int)})
    assert columns_of(plain) == ["a", "b"]
    assert has_named_features(plain)
    assert_array_equal(as_matrix(plain), VALUES[:, :2])
    vectors = frame(kind, {"vector": VALUES, "more": VALUES[:, 0]})
    assert not has_named_features(vectors)
    assert_array_equal(as_matrix(vectors), np.column_stack([VALUES, VALUES[:, 0]]))
    assert_array_equal(as_matrix(take_rows(vectors, np.array([2, 0]))), as_matrix(vectors)[[2, 0]])


def test_vectors_of_fixed_length_are_features():
    kind = pyarrow.list_(pyarrow.float32(), 3)
    fixed = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(VALUES.ravel()), type=kind)
    table = pyarrow.table({"vector": fixed})
    series = polars.DataFrame({"vector": VALUES}, schema={"vector": polars.Array(polars.Float32, 3)})
    typed = pandas.DataFrame({"vector": pandas.Series(fixed, dtype=pandas.ArrowDtype(kind))})
    for given in (table, series, typed):
        matrix = as_matrix(given)
        assert_array_equal(matrix, VALUES)
        assert matrix.dtype == np.float32


@pytest.mark.parametrize("kind", FRAMES)
def test_ids_and_labels_are_taken_out_by_name(kind):
    given = frame(kind, {"sku": SKUS, "x": VALUES, "category": [1, 2, 1, 2]})
    X, y, names = named_columns(given, "category", "sku")
    assert_array_equal(as_matrix(X), VALUES)
    assert_array_equal(y, [1, 2, 1, 2])
    assert names == ["sku", "category"]
    assert column(given, "sku", "ids").tolist() == SKUS
    assert columns_of(without_columns(given, ["sku", "not there"])) == ["x", "category"]
    same, labels, none = named_columns(given, y, None)
    assert same is given
    assert labels is y
    assert none == []


@pytest.mark.parametrize("kind", FRAMES)
def test_what_is_wrong_is_said_with_the_column(kind):
    given = frame(kind, {"sku": SKUS, "x": VALUES})
    with pytest.raises(ValueError, match="y must name one column of X, got 'label' among sku, x"):
        named_columns(given, "label", None)
    with pytest.raises(ValueError, match=r"X\['sku'\] must hold numbers, or vectors of one length, got .*'a'; name it"):
        as_matrix(given)
    with pytest.raises(TypeError, match="ids must be the name of a column of X, got int"):
        named_columns(given, None, 3)
    ragged = frame("pyarrow", {"x": VALUES}).to_pydict()["x"]
    ragged[1] = [1.0]
    if kind != "batch":
        other = {"pandas": pandas.DataFrame, "polars": polars.DataFrame, "pyarrow": pyarrow.table}[kind]
        with pytest.raises(ValueError, match=r"X\['x'\] must hold vectors of one length, got lengths 1 to 3"):
            as_matrix(other({"x": ragged}))
        ragged[1] = None
        with pytest.raises(ValueError, match=r"X\['x'\] must hold a vector in every row, got none in 1 of 4"):
            as_matrix(other({"x": ragged}))


def test_a_name_needs_a_frame():
    with pytest.raises(
        ValueError, match="y must be given itself unless X is a frame with a column 'label', got ndarray"
    ):
        named_columns(VALUES, "label", None)
