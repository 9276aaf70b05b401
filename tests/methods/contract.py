"""What every method must keep; a method's test file inherits it, names the method, and adds what defines the method."""

import json
import pickletools
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator

import ilhash
from ilhash import codes, methods

N_BITS = 11  # odd, more than a byte

# scikit-learn compares margins to 1e-7, less than a digit of float32; test_the_order_of_rows does it for float32.
FINER_THAN_FLOAT32 = dict.fromkeys(
    ("check_methods_sample_order_invariance", "check_methods_subset_invariance"),
    "products in float32 round by where a row stands in its block",
)


def flipped(a, b, n_bits):
    """Share of bits in which two arrays of codes differ."""
    return float((codes.unpack(a, n_bits) != codes.unpack(b, n_bits)).mean())


class MethodContract:
    """Set ``name``; ``parameters`` keep a test quick, ``limit`` is the most bits that 64-dimensional digits allow."""

    name: str
    parameters: dict = {}  # noqa: RUF012
    bits = N_BITS
    other_bits = (1, 7, 8)
    limit: int | None = None  # a number of bits that is refused, with the reason
    reason = ""
    scale_free = True
    seeded = True  # whether another random_state gives other codes where all points are drawn
    tolerance = 2e-3  # share of bits that rounding may flip between scales and input types
    checks = {}  # noqa: RUF012  parameters for scikit-learn's checks, on data of a few dimensions

    # ------------------------------------------------------------------------------------------ tools

    @property
    def method(self):
        return methods.get(self.name)

    def make(self, **changes):
        return self.method(**{"n_bits": self.bits, **self.parameters, **changes})

    @pytest.fixture
    def data(self, digits):
        """The digits, fewer of them."""
        return digits[0][:600], digits[1][:600]

    @pytest.fixture
    def model(self, data):
        return self.make().fit(*data)

    # ------------------------------------------------------------------------------------------ codes

    def test_codes_are_packed_signs_of_the_margins(self, data, model):
        packed, margins = model.transform(data[0]), model.decision_function(data[0])
        assert packed.dtype == np.uint8
        assert packed.shape == (600, codes.bytes_per_code(self.bits))
        assert margins.dtype == np.float32
        assert margins.shape == (600, self.bits)
        assert np.isfinite(margins).all()
        assert np.array_equal(codes.unpack(packed, self.bits), margins > 0)
        assert np.array_equal(codes.pack(codes.unpack(packed, self.bits)), packed)  # padding is zero
        assert len(model.functions_) == self.bits

    def test_codes_tell_points_apart(self, data, model):
        assert len(np.unique(model.transform(data[0]), axis=0)) >= min(5, 2**self.bits)

    def test_any_number_of_bits(self, data):
        for n_bits in self.other_bits:
            packed = self.make(n_bits=n_bits).fit(*data).transform(data[0])
            assert packed.shape == (600, (n_bits + 7) // 8)
            assert not (packed[:, -1] & (0xFF >> ((n_bits - 1) % 8 + 1))).any()

    def test_more_bits_than_there_can_be_are_refused_with_the_reason(self, data):
        if self.limit is None:
            assert self.make(n_bits=130).fit(*data).transform(data[0]).shape == (600, 17)
            return
        with pytest.raises(ValueError, match=self.reason) as error:
            self.make(n_bits=self.limit).fit(*data)
        assert "n_bits must be" in str(error.value)
        assert f"got {self.limit}" in str(error.value)
        assert "\n" not in str(error.value)

    def test_batches_flip_only_bits_at_zero(self, data, model):
        X = data[0]
        margins = model.decision_function(X)
        pieces = np.concatenate([model.decision_function(X[i : i + 7]) for i in range(0, len(X), 7)])
        np.testing.assert_allclose(pieces, margins, rtol=1e-3, atol=1e-4 * np.abs(margins).max())
        differs = (margins > 0) != (pieces > 0)
        assert np.abs(margins[differs]).max(initial=0.0) <= 1e-4 * np.abs(margins).max()

    def test_a_prefix_is_the_shorter_model_or_there_is_none(self, data, model):
        if not model.nested:
            with pytest.raises(TypeError, match="fewer n_bits"):
                model[:3]
            return
        short = self.make(n_bits=self.bits - 4).fit(*data)
        part = model[: self.bits - 4]
        assert part.n_bits == self.bits - 4
        assert flipped(part.transform(data[0]), short.transform(data[0]), self.bits - 4) == 0
        np.testing.assert_allclose(part.decision_function(data[0]), short.decision_function(data[0]), rtol=1e-4)

    # ------------------------------------------------------------------------------------------ randomness

    def test_the_same_seed_gives_the_same_bytes(self, data, model):
        again = self.make().fit(*data)
        assert np.array_equal(again.decision_function(data[0]), model.decision_function(data[0]))

    def test_another_seed(self, data, model):
        other = self.make(random_state=1).fit(*data)
        differs = not np.array_equal(other.transform(data[0]), model.transform(data[0]))
        assert differs == self.seeded

    def test_random_state_none_and_generators(self, data):
        drawn = self.make(random_state=None).fit(*data)
        again = self.make(random_state=drawn.seed_).fit(*data)
        assert np.array_equal(drawn.decision_function(data[0]), again.decision_function(data[0]))
        assert self.make(random_state=np.random.default_rng(3)).fit(*data).seed_ != 3

    def test_fewer_training_points_are_drawn_at_random(self, data):
        few = [self.make(n_train=200, random_state=seed).fit(*data) for seed in (0, 1)]
        assert [model.n_train_ for model in few] == [200, 200]
        assert not np.array_equal(*(model.decision_function(data[0]) for model in few))
        with pytest.warns(UserWarning, match="n_train=601 is more than the 600 points"):
            assert self.make(n_train=601).fit(*data).n_train_ == 600

    # ------------------------------------------------------------------------------------------ input

    def test_input_types_layouts_and_memory_maps(self, data, model, tmp_path):
        X, y = data
        np.save(tmp_path / "X.npy", X.astype(np.uint8))
        wide = np.zeros((600, 100))
        wide[:, 20:84] = X
        wanted = model.transform(X)
        for other in (
            X.astype(np.float64),
            X.astype(np.float32),
            X.astype(np.uint8),
            np.asfortranarray(X),
            wide[:, 20:84],
            np.load(tmp_path / "X.npy", mmap_mode="r"),
        ):
            assert np.array_equal(self.make().fit(other, y).transform(other), wanted)

    def test_the_order_of_rows_does_not_matter(self, data, model):
        order = np.random.default_rng(0).permutation(len(data[0]))
        margins, shuffled = model.decision_function(data[0]), model.decision_function(data[0][order])
        np.testing.assert_allclose(shuffled, margins[order], rtol=1e-4, atol=1e-5 * np.abs(margins).max())

    def test_inputs_are_never_written(self, data):
        X, y = (array.copy() for array in data)
        X.flags.writeable = y.flags.writeable = False
        self.make().fit(X, y).transform(X)
        assert np.array_equal(X, data[0])

    @pytest.mark.parametrize("change", [lambda X: 1000 * X, lambda X: 0.001 * X, lambda X: X + 1e4])
    def test_scale_and_shift_do_not_matter(self, data, model, change):
        if not self.scale_free:
            pytest.skip(f"{self.name} depends on the scale of X by definition")
        X = data[0].astype(np.float64)
        other = self.make().fit(change(X), data[1])
        changed, before = (codes.unpack(m.transform(V), self.bits) for m, V in ((other, change(X)), (model, data[0])))
        # A bit that is inverted in all codes, as by the sign of an eigenvector, leaves every distance as it is.
        share = (changed != before).mean(axis=0)
        assert np.minimum(share, 1.0 - share).mean() <= self.tolerance

    def test_nan_infinity_and_other_shapes_are_refused(self, data, model):
        X, y = data
        broken = X.astype(np.float64)
        for bad in (np.nan, np.inf):
            broken[[3, 70], 2] = bad
            for call in (lambda: self.make().fit(broken, y), lambda: model.transform(broken)):
                with pytest.raises(ValueError, match="2 of 600 rows"):
                    call()
        with pytest.raises(ValueError, match="64 features"):
            model.transform(X[:, :5])
        with pytest.raises(ValueError, match="2-D"):
            self.make().fit(X[0], y[:1])
        with pytest.raises(ValueError, match="at least 2 rows"):
            self.make().fit(X[:1], y[:1])

    def test_bad_parameters_are_refused(self, data):
        for change, message in (
            ({"n_bits": 0}, "n_bits must be a whole number"),
            ({"n_bits": 2.5}, "n_bits must be a whole number"),
            ({"n_train": 1}, "n_train must be a whole number"),
            ({"n_train": "many"}, "n_train must be 'auto'"),
            ({"random_state": -1}, "random_state must be"),
        ):
            with pytest.raises(ValueError, match=message):
                self.make(**change).fit(*data)

    def test_a_fit_that_fails_leaves_the_model_as_it_was(self, data, model):
        before = model.transform(data[0])
        with pytest.raises(ValueError, match="NaN"):
            model.fit(np.full((50, 3), np.nan), np.arange(50) % 2)
        assert np.array_equal(model.transform(data[0]), before)

    def test_labels(self, data, model):
        X, y = data
        if not self.method.supervised:
            assert np.array_equal(self.make().fit(X).transform(X), model.transform(X))
            return
        with pytest.raises(ValueError, match="learns from labels"):
            self.make().fit(X)
        with pytest.raises(ValueError, match="at least 2 classes"):
            self.make().fit(X, np.zeros(600))
        with pytest.raises(ValueError, match="one entry per row"):
            self.make().fit(X, y[:-1])
        names = np.array([f"digit {label}" for label in y])
        assert np.array_equal(self.make(unlabeled=None).fit(X, names).transform(X), model.transform(X))
        indicator = (y[:, None] == np.unique(y)).astype(int)  # several labels are possible, one each is the same as y
        assert np.array_equal(self.make().fit(X, indicator).transform(X), model.transform(X))
        indicator[::3, 0] = 1
        assert not np.array_equal(self.make().fit(X, indicator).transform(X), model.transform(X))

    def test_unlabelled_points_do_no_harm(self, data):
        if not self.method.supervised:
            return
        X, y = data[0].copy(), data[1].copy()
        y[::5] = -1
        model = self.make().fit(X, y)
        assert np.isfinite(model.decision_function(X)).all()
        with pytest.raises(ValueError, match="no labelled point"):
            self.make().fit(X, np.full(600, -1))
        for unknown in (np.nan, None):
            labels = y.astype(object)
            labels[::5] = unknown
            assert np.array_equal(self.make().fit(X, labels).transform(X), model.transform(X))

    def test_constant_and_repeated_features_do_no_harm(self, data):
        X = np.concatenate([data[0], np.full((600, 2), 7.0), data[0][:, :3]], axis=1)
        assert np.isfinite(self.make().fit(X, data[1]).decision_function(X)).all()

    # ------------------------------------------------------------------------------------------ training

    def test_progress_ends_with_all_bits(self, data, model):
        moved = []
        again = self.make().fit(*data, progress=lambda *at: moved.append(at))
        assert moved[-1] == (self.bits, self.bits)
        assert [done for done, _ in moved] == sorted({done for done, _ in moved})
        assert np.array_equal(again.transform(data[0]), model.transform(data[0]))

    @pytest.mark.parametrize("name", ["affinity", "pairs", "client", "checkpoint"])
    def test_what_it_cannot_use_is_refused(self, data, tmp_path, name):
        with pytest.raises(ValueError, match=f"{name} must be None for {self.name}, got PosixPath: .*ILH takes it"):
            self.make().fit(*data, **{name: tmp_path / "c"})
        assert not (tmp_path / "c").exists()

    def test_other_supervision_is_answered_by_what_it_takes(self, data):
        own = r"labels \(y\), one or several per point" if self.method.supervised else "vectors alone"
        with pytest.raises(ValueError, match=f"it learns from {own}.*; ILH takes it$"):
            self.make().fit(data[0], pairs=np.array([[0, 1, 1], [0, 2, -1]]))

    def test_training_rows_are_those_that_were_read(self, data, monkeypatch, tmp_path):
        reads, gather = [], methods._base.gather

        def gathered(X, rows, *others):
            reads.append(rows)
            return gather(X, rows, *others)

        monkeypatch.setattr(methods._base, "gather", gathered)
        X, y = data
        fresh = self.make(n_train=200).fit(X, y)
        fresh.save(tmp_path / "m")
        for model in (fresh, ilhash.load(tmp_path / "m")):
            rows = [model.training_rows(bit) for bit in range(self.bits)]
            self.assert_read(rows, reads)
            assert np.array_equal(model.training_rows(-1, X, y), rows[-1])
            with pytest.raises(ValueError, match="600 of 600 rows to draw from, got 500 of 500"):
                model.training_rows(0, X[:500], y[:500])

    def assert_read(self, rows, reads):
        """All bits learn from the same rows, that were read once or again as they are."""
        for own in rows:
            for read in reads:
                assert np.array_equal(own, np.sort(read))

    def test_training_rows_need_the_labels_where_some_are_unknown(self, data):
        if not self.method.supervised:
            return
        X, y = data[0], np.where(np.arange(600) % 4 == 0, -1, data[1])
        model = self.make(n_train=100).fit(X, y)
        with pytest.raises(ValueError, match="X and y must be given again, since"):
            model.training_rows(0)
        rows = model.training_rows(0, X, y)
        assert len(rows) >= 100
        assert self.name == "SPLH" or (y[rows] >= 0).all()

    # ------------------------------------------------------------------------------------------ files

    def test_save_and_load(self, data, model, tmp_path):
        model.save(tmp_path / "m")
        again = ilhash.load(tmp_path / "m")
        assert type(again) is type(model)
        assert again.get_params() == model.get_params()
        assert again.report_ == model.report_
        assert again.seed_ == model.seed_
        assert np.array_equal(again.decision_function(data[0]), model.decision_function(data[0]))
        assert np.array_equal(again.transform(data[0]), model.transform(data[0]))
        again.save(tmp_path / "m2")
        assert sorted(f.name for f in (tmp_path / "m").iterdir()) == sorted(f.name for f in (tmp_path / "m2").iterdir())

    def test_files_hold_no_pickle_and_refuse_alteration(self, model, tmp_path):
        model.save(tmp_path / "m")
        (tmp_path / "m" / "README.md").write_text("a card is for people", encoding="utf-8")
        assert ilhash.load(tmp_path / "m").fingerprint() == model.fingerprint()
        files = [file for file in (tmp_path / "m").iterdir() if file.name != "README.md"]
        assert {file.suffix for file in files} <= {".json", ".safetensors", ".skops"}
        for file in files:
            with pytest.raises(ValueError, match="opcode"):
                list(pickletools.genops(file.read_bytes()))
            good = file.read_bytes()
            file.write_bytes(good[:-30] + bytes([good[-30] ^ 1]) + good[-29:])
            with pytest.raises(ValueError, match=r"altered|checksum|JSON"):
                ilhash.load(tmp_path / "m")
            file.write_bytes(good)
        assert json.loads((tmp_path / "m" / "config.json").read_text())["model"] == self.name

    # ------------------------------------------------------------------------------------------ scikit-learn

    def test_unfitted_models_say_so(self, data, tmp_path):
        model = self.make()
        for call in (
            model.transform,
            model.decision_function,
            lambda X: model.save(tmp_path / "m"),
            lambda X: model[0],
        ):
            with pytest.raises(NotFittedError):
                call(data[0])
        assert not (tmp_path / "m").exists()

    def test_clone_parameters_and_repr(self, model):
        fresh = clone(model)
        assert fresh.get_params() == model.get_params()
        assert not hasattr(fresh, "functions_")
        assert repr(fresh).startswith(f"{self.name}(")
        assert fresh.set_params(n_bits=3).n_bits == 3
        assert list(model.get_feature_names_out()) == [
            f"{self.name.lower()}_byte{i}" for i in range((self.bits + 7) // 8)
        ]

    def test_it_is_listed_with_one_line(self):
        line = self.method.__doc__.splitlines()[0]
        assert line.endswith(".")
        assert len(line) <= 120
        if self.name not in methods.registered():  # one of a user
            assert methods.available()[self.name] == line
            assert getattr(methods, self.name) is self.method

    def test_scikit_learn_finds_nothing_to_object_to(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = check_estimator(
                self.make(**{"n_bits": 1, **self.checks}), on_fail=None, expected_failed_checks=FINER_THAN_FLOAT32
            )
        assert [(r["check_name"], r["exception"]) for r in results if r["status"] == "failed"] == []
        assert sum(r["status"] == "passed" for r in results) > 35
