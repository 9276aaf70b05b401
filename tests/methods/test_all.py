"""What holds for the methods together."""

import subprocess
import sys

import numpy as np
import pytest

import ilhash
from ilhash import methods
from ilhash.evaluation import precision_at_k
from ilhash.experiments import Settings, compare
from ilhash.methods import authoring

# Parameters with which the slow ones are quick, where quality is not what is tested or less of it is enough.
QUICK = {"MLH": {"max_iter": 1000}, "FastHash": {"n_estimators": 10}}


@pytest.fixture(scope="module")
def fitted(digits):
    """Every method on a part of the digits, with as many bits as all of them can give."""
    X, y = digits[0][:500], digits[1][:500]
    return X, {name: methods.get(name)(n_bits=10, **QUICK.get(name, {})).fit(X, y) for name in methods.available()}


def test_names_are_found_in_any_case_and_others_refused():
    for name in methods.available():
        assert methods.get(name.lower()) is methods.get(name) is getattr(ilhash.methods, name)
        assert name in dir(methods)
    with pytest.raises(ValueError, match=r"method must be one of .*ITQ.* got 'XYZ'"):
        methods.get("XYZ")
    with pytest.raises(AttributeError, match="no attribute 'XYZ'"):
        methods.XYZ  # noqa: B018


def test_importing_the_package_imports_no_method():
    script = "import sys, ilhash.methods; assert not any(m.startswith('ilhash.methods.') for m in sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_all_methods_give_codes_of_their_own(fitted):
    X, models = fitted
    assert len({model.transform(X).tobytes() for model in models.values()}) == len(models)


def test_a_fresh_process_encodes_the_same_bytes(fitted, tmp_path):
    X, models = fitted
    np.save(tmp_path / "X.npy", X)
    for name, model in models.items():
        model.save(tmp_path / name)
    script = (
        "import sys, numpy as np, ilhash; X = np.load('X.npy')\n"
        "for name in sys.argv[1:]: sys.stdout.buffer.write(ilhash.load(name).transform(X).tobytes())"
    )
    run = subprocess.run([sys.executable, "-c", script, *models], check=True, capture_output=True, cwd=tmp_path)
    assert run.stdout == b"".join(model.transform(X).tobytes() for model in models.values())


def precision(name, n_bits, base, queries, k, **parameters):
    model = methods.get(name)(n_bits=n_bits, **parameters).fit(*base)
    return precision_at_k(model.transform(base[0]), base[1], model.transform(queries[0]), queries[1], k)


SUPERVISED = [name for name in methods.available() if methods.get(name).supervised]


@pytest.mark.parametrize("name", SUPERVISED)
def test_supervised_methods_beat_random_projections_on_digits(digits, name):
    X, y = digits
    data = {"base": (X[300:], y[300:]), "queries": (X[:300], y[:300]), "k": 50}
    assert precision(name, 16, **data, **QUICK.get(name, {})) > precision("LSH", 16, **data) + 0.15


@pytest.mark.slow
@pytest.mark.parametrize("name", SUPERVISED)
def test_supervised_methods_beat_random_projections_on_mnist(mnist, name):
    X, y, Xq, yq = mnist
    data = {"base": (X[:20_000], y[:20_000]), "queries": (Xq, yq), "k": 500, "n_train": 5_000}
    assert precision(name, 32, **data) > precision("LSH", 32, **data) + 0.1


def test_a_method_of_a_user_is_known_by_its_name(blobs, monkeypatch, tmp_path):
    monkeypatch.setattr(methods, "_REGISTERED", {})

    @methods.register
    class Axes(authoring.LinearMethod):
        """Signs of the first centred features."""

        nested = True

        def _directions(self, training, seed):
            return np.eye(training.rows.values.shape[1])[:, : self.n_bits], None

    assert methods.get("axes") is Axes
    assert methods.registered() == ("Axes",)
    assert "Axes" not in methods.available()
    model = Axes(n_bits=4).fit(blobs[0])
    model.save(tmp_path / "model")
    assert np.array_equal(ilhash.load(tmp_path / "model").transform(blobs[0]), model.transform(blobs[0]))
    settings = Settings(bits=(4,), n_train=100, n_queries=100, k=10, on_all=False)
    found = compare("blobs", *blobs, settings, tables=["linear"], only=["Axes", "LSH"])
    assert {row.name for row in found.rows} == {"ILHt", "LSH", "Axes"}
    assert all(row.precision_new > 0.2 for row in found.rows)


def test_names_and_classes_that_cannot_be_registered_are_refused():
    class ITQ(methods.LSH):
        """Another one of this name."""

    with pytest.raises(ValueError, match="must not be taken, got 'ITQ'"):
        methods.register(ITQ)
    with pytest.raises(TypeError, match=r"must be a class that derives .* got 'ITQ'"):
        methods.register("ITQ")
