"""New items and seen ones in the reproduction: halves that share nothing, numbers by hand, and where ILH loses."""

import numpy as np
import pytest

from ilhash import codes, methods
from ilhash.evaluation import precision_at_k
from ilhash.experiments import against_quantizers, kernels_on_digits, same_functions
from ilhash.experiments.engine import bases
from ilhash.experiments.engine.cells import UNDEFINED, Outcome
from ilhash.experiments.engine.models import fit_model
from ilhash.experiments.engine.problems import load_problem
from ilhash.experiments.engine.scales import SCALES, get_scale
from ilhash.experiments.engine.store import Results
from ilhash.experiments.engine.tasks import Context, compute

SMOKE = get_scale("smoke")


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    return load_problem("smoke", "images", tmp_path_factory.mktemp("data"))


def test_halves_share_nothing(problem):
    parts = bases.halves(problem, 1_000)
    learnt, kept = (set(map(bytes, part[0])) for part in (parts.train, parts.new))
    assert len(parts.train[0]) == len(parts.new[0]) == 500
    assert not learnt & kept
    assert learnt | kept == set(map(bytes, problem.X[:1_000].astype(np.float32)))
    assert parts.seen is parts.train
    by_row = {bytes(row): label for row, label in zip(problem.X.astype(np.float32), problem.y, strict=True)}
    assert all(by_row[bytes(row)] == label for row, label in zip(*parts.new, strict=True))


def test_numbers_are_those_of_the_model_by_hand(problem, tmp_path):
    cell = bases.bases_cell(SMOKE, "images", "ITQ", [16], 1.0, n_train=700)
    found = compute(cell, Context("smoke", tmp_path))
    parts = bases.halves(problem, cell.params["points"])
    model = methods.ITQ(16, n_train=700).fit(parts.train[0])
    asked = model.transform(parts.queries[0]), parts.queries[1]
    for base, (X, y) in parts.measured.items():
        wanted = precision_at_k(model.transform(X), y, *asked, bases.ks_at(SMOKE))
        np.testing.assert_allclose(found.arrays[base][0], wanted)
        assert found.arrays[f"{base}, asymmetric"][0, 0] != found.arrays[base][0, 0]


def test_factors_of_rabitq_leave_nothing_of_a_few_bytes(tmp_path):
    pytest.importorskip("faiss")
    few = compute(bases.bases_cell(SMOKE, "images", "RaBitQ", [32], 1.0), Context("smoke", tmp_path))
    enough = compute(bases.bases_cell(SMOKE, "images", "RaBitQ", [128], 1.0), Context("smoke", tmp_path))
    assert few.status == UNDEFINED
    assert "8 of factors" in few.reason
    assert enough.numbers["own_bytes"] == 16


@pytest.mark.parametrize("codes_of", ["SDH", "CCAITQ"])
def test_refitted_functions_follow_what_most_of_a_class_have(problem, codes_of):
    X, y = problem.X[:600], problem.y[:600]
    settings = {"codes_of": codes_of, "n_train": 600, "n_centers": 60, "hash_function": "trees", "n_trees": 40}
    refitted = fit_model("Refitted", settings, 8, 0, X, y)
    own = {"n_centers": 60} if codes_of == "SDH" else {}
    theirs = codes.unpack(methods.get(codes_of)(8, n_train=600, **own).fit(X, y).transform(X), 8)
    majority = np.array([theirs[y == label].mean(axis=0) >= 0.5 for label in range(10)])
    clear = np.abs(np.array([theirs[y == label].mean(axis=0) for label in range(10)]) - 0.5) > 0.05
    agree = (codes.unpack(refitted.transform(X), 8) == majority[y])[clear[y]]
    assert agree.mean() > 0.99, "trees learn what they were shown"


def _stored(folder, ours, theirs):
    """Write cells of the images in which every ILHt has one precision and everything else another."""
    results = Results.create(folder, SMOKE)
    for entrant in against_quantizers.entrants(SMOKE, "images"):
        for cell in entrant.cells.values():
            shape = (len(cell.params["at"]), len(cell.params["ks"]))
            table = np.full(shape, ours if entrant.ours else theirs)
            arrays = dict.fromkeys(("new", "seen", "new, asymmetric", "seen, asymmetric"), table)
            if not results.has(cell):
                results.write(cell, Outcome({"encode_us": 1.0}, arrays))
    return results


def test_where_we_lose_is_said_and_nothing_else(tmp_path):
    assert against_quantizers.losses(_stored(tmp_path / "won", 0.7, 0.6), "images") == []
    lost = against_quantizers.losses(_stored(tmp_path / "lost", 0.5, 0.6), "images")
    kinds = len(against_quantizers.ILHT)
    assert len(lost) == 2 * kinds * len(bases.all_bytes(SMOKE)) * len(bases.ks_at(SMOKE))
    assert lost[0].startswith("ILHt, new, 1 bytes, k = 10: .500 against ITQ .600, CCAITQ .600, Sign .600, PQ .600")


def test_captions_tell_losses(tmp_path):
    pictures = against_quantizers.pictures(_stored(tmp_path / "lost", 0.5, 0.6))
    assert [picture.title for picture in pictures] == ["Equal bytes on digits", "Encoding time on digits"]
    assert "Where it loses: ILHt, new, 1 bytes, k = 10: .500 against" in pictures[0].caption
    won = against_quantizers.pictures(_stored(tmp_path / "won", 0.7, 0.6))
    assert "Nothing of as many bytes is above any of its lines." in won[0].caption


@pytest.mark.parametrize("name", SCALES)
def test_every_kind_of_functions_has_the_same_methods(name):
    scale = get_scale(name)
    for functions in same_functions.FUNCTIONS:
        found = same_functions.entrants(scale, functions)
        kinds = {entrant.split(",")[0] for entrant in found} - {"KSH"}
        assert kinds == {"ILHt", "ILHit", "class", "SDH", "CCAITQ"}
        for by_bytes in found.values():
            for cell in by_bytes.values():
                settings = cell.params["settings"]
                assert settings.get("hash_function", functions) == functions
                if cell.params["method"] not in ("ILH", "KSH"):
                    assert settings["n_train"] == scale.images.n_base // 2, "all points"


def test_the_kernel_page_of_digits_scales_pixels_as_a_whole():
    found = kernels_on_digits.competitors(get_scale("paper"), 32)
    assert found["ILHt"].params["settings"]["scaling"] == found["KSH"].params["settings"]["scaling"] == "whole"
    assert found["KSH, neighbours"].params["settings"]["n_pairs"] == 100
    assert "n_pairs" not in found["KSH"].params["settings"]
    assert "ILHt, private centres" not in found
    assert {"SDH", "FastHash", "class, ECOC", "KSHcut", "OPQ", "Euclidean"} <= set(found)
