"""z-steps on label graphs whose arcs are not written down: the same as on the graph with all of its arcs."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles import direct_energy, lowest_energy_by_flow, pull_from_outside

from ilhash import _core
from ilhash.graph import coupling_graph, graph_couplings
from ilhash.zstep import minimize, random_start

SIZES = st.lists(st.integers(1, 90), min_size=1, max_size=12)


def both(sizes, similar, dissimilar, seed, start=None, **more):
    """Return what the z-step of a label graph finds, and what that of the same arcs, given one by one, does."""
    own = _core.SignedGraph.from_classes(sizes, similar, dissimilar, seed)
    start = random_start(sum(sizes), seed) if start is None else start
    found = minimize(own, start, seed=seed, **more)
    field = np.zeros(len(start))  # asks for the general path
    return found, minimize(_core.SignedGraph.from_classes(sizes, similar, dissimilar, seed), start, seed=seed,
                           field=field, **more)  # fmt: skip


def check_same(found, wanted):
    assert np.array_equal(found.z, wanted.z)
    assert found.energies.tolist() == wanted.energies.tolist()
    assert (found.n_blocks, found.converged) == (wanted.n_blocks, wanted.converged)


@settings(deadline=None, max_examples=300)
@given(SIZES, st.integers(1, 120), st.integers(1, 120), st.integers(0, 2**40), st.sampled_from(["random", "fixed"]))
def test_random_label_problems_end_as_on_the_general_path(sizes, similar, dissimilar, seed, order):
    check_same(*both(sizes, similar, dissimilar, seed, block_order=order))


@settings(deadline=None, max_examples=100)
@given(SIZES, st.integers(1, 40), st.integers(1, 40), st.integers(0, 2**40), st.integers(0, 4))
def test_with_few_sweeps_too(sizes, similar, dissimilar, seed, limit):
    check_same(*both(sizes, similar, dissimilar, seed, max_sweeps=limit))


@settings(deadline=None, max_examples=100)
@given(SIZES, st.integers(1, 30), st.integers(1, 30), st.integers(0, 2**40), st.floats(0, 1))
def test_from_starts_that_are_nearly_pure_too(sizes, similar, dissimilar, seed, noise):
    rng = np.random.default_rng(seed)
    start = np.repeat(np.where(rng.random(len(sizes)) < 0.5, -1, 1), sizes)
    start[rng.random(len(start)) < noise] = 1
    check_same(*both(sizes, similar, dissimilar, seed, start.astype(np.int8)))


@pytest.mark.parametrize(
    ("sizes", "similar", "dissimilar"),
    [
        ([200] * 10, 100, 100),  # as a training set of 2,000
        ([437, 1, 64, 63, 65, 128, 129, 700], 40, 30),  # words that are full, and words that are not
        ([300] * 4, 20, 5),  # more words than twice the choices: whom a point chose is kept as numbers
        ([1200, 40, 2000], 30, 6),
        ([3] * 200, 5, 9),
        ([1] * 64, 1, 10),
        ([1, 1], 1, 1),
        ([5], 2, 3),
        ([1], 1, 1),
    ],
)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_shapes_of_all_kinds(sizes, similar, dissimilar, seed):
    check_same(*both(sizes, similar, dissimilar, seed))


def test_energies_and_cuts_are_right_by_definition():
    for seed in range(5):
        sizes = [70, 65, 130, 20]
        graph = _core.SignedGraph.from_classes(sizes, 40, 25, seed)
        start = random_start(sum(sizes), seed)
        found = minimize(graph, start, seed=seed, block_order="fixed")
        W = graph_couplings(graph)
        assert found.energies[0] == direct_energy(W, start)
        assert found.energies[-1] == direct_energy(W, found.z)
        for c in range(4):  # the last state is the minimum over each class alone
            inside = np.repeat(np.arange(4), sizes) == c
            own = W[inside][:, inside]
            pull = pull_from_outside(W, found.z, inside)
            assert direct_energy(own, found.z[inside], pull) == lowest_energy_by_flow(own, pull)


def test_arcs_are_those_that_were_drawn():
    """The graph with arcs is drawn when it is asked for, and is the one that z-steps saw."""
    sizes = [150, 90, 210]
    graph = _core.SignedGraph.from_classes(sizes, 20, 10, 3)
    start = random_start(450, 3)
    before = minimize(graph, start, seed=1)
    given = coupling_graph(graph_couplings(graph))
    assert given.grown_blocks().tolist() == np.repeat([0, 1, 2], sizes).tolist()
    check_same(before, minimize(given, start, seed=1))
    check_same(before, minimize(graph, start, seed=1))
    degrees = np.diff(scipy.sparse.csr_array(graph_couplings(graph)).indptr)
    assert np.array_equal(graph.degrees(), degrees)


def test_mixed_cuts_do_occur_and_are_right():
    """Few similar and many dissimilar neighbours: classes are torn apart."""
    mixed = 0
    for seed in range(30):
        found, wanted = both([60, 50, 40], 1, 12, seed)
        check_same(found, wanted)
        mixed += any(abs(int(part.sum())) < len(part) for part in np.split(found.z, [60, 110]))
    assert mixed > 10


@pytest.mark.parametrize("sizes", [[1], [1, 1], [4, 4], [1, 7], [300, 2]])
@pytest.mark.parametrize(("similar", "dissimilar"), [(0, 0), (1, 0), (0, 1), (1, 1), (50, 50)])
def test_who_is_connected(sizes, similar, dissimilar):
    graph = _core.SignedGraph.from_classes(sizes, similar, dissimilar, 0)
    assert np.array_equal(graph.connected(), graph.degrees() > 0)
