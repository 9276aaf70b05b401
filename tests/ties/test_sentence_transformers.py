"""Functions of sentence-transformers on arrays: their documented results, and exact answers among codes."""

import numpy as np
import pytest

from ilhash import methods
from ilhash.codes import from_int8_offset, unpack
from ilhash.ties.sentence_transformers import cos_sim, dot_score, quantize_embeddings, semantic_search

RNG = np.random.default_rng(0)
CORPUS, QUERIES = RNG.normal(size=(300, 20)).astype(np.float32), RNG.normal(size=(7, 20)).astype(np.float32)


def test_binary_and_ubinary_are_the_signs():
    packed, offset = (quantize_embeddings(CORPUS, precision) for precision in ("ubinary", "binary"))
    assert (packed.dtype, offset.dtype, packed.shape) == (np.uint8, np.int8, (300, 3))
    assert np.array_equal(packed, np.packbits(CORPUS > 0, axis=1))
    assert np.array_equal(offset, (np.packbits(CORPUS > 0, axis=1).astype(int) - 128).astype(np.int8))
    assert np.array_equal(from_int8_offset(offset, 20), packed)


def test_levels_span_the_ranges():
    low, high = CORPUS.min(0), CORPUS.max(0)
    expected = ((CORPUS - low) / ((high - low) / 255)).astype(np.float64)
    for given in ({}, {"ranges": np.vstack([low, high])}, {"calibration_embeddings": CORPUS}):
        unsigned, signed = (quantize_embeddings(CORPUS, precision, **given) for precision in ("uint8", "int8"))
        assert (unsigned.dtype, signed.dtype) == (np.uint8, np.int8)
        assert np.abs(unsigned - expected).max() <= 1.0001
        assert np.array_equal(signed.astype(int), unsigned.astype(int) - 128)
    far = quantize_embeddings([[1000.0] * 20, [-1000.0] * 20], "uint8", calibration_embeddings=CORPUS)
    assert (far.min(1).tolist(), far.max(1).tolist()) == ([255, 0], [255, 0]), "wrapped around"
    assert quantize_embeddings(CORPUS.astype(float), "float32").dtype == np.float32
    assert quantize_embeddings([[1.0, 1.0], [1.0, 2.0]], "uint8").tolist() == [[0, 0], [0, 255]]  # a constant dimension


def test_a_model_makes_the_bits():
    model = methods.ITQ(n_bits=12).fit(CORPUS)
    assert np.array_equal(quantize_embeddings(CORPUS, "ubinary", model=model), model.transform(CORPUS))
    codes = model.transform(CORPUS)
    found = semantic_search(QUERIES, codes, top_k=5, corpus_precision="ubinary", model=model, rescore=False)
    distances = (unpack(model.transform(QUERIES), 12)[:, None] != unpack(codes, 12)).sum(2)
    assert [[hit["score"] for hit in row] for row in found] == np.sort(distances, axis=1)[:, :5].tolist()


@pytest.mark.parametrize("score", [cos_sim, dot_score])
@pytest.mark.parametrize("chunk", [1, 7, 500])
def test_semantic_search_is_a_sort(score, chunk):
    found = semantic_search(QUERIES, CORPUS, chunk, chunk, top_k=9, score_function=score)
    scores = QUERIES.astype(float) @ CORPUS.T.astype(float)
    if score is cos_sim:
        scores /= np.linalg.norm(QUERIES, axis=1)[:, None] * np.linalg.norm(CORPUS, axis=1)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :9]
    assert [[hit["corpus_id"] for hit in row] for row in found] == order.tolist()
    assert np.allclose(
        [[hit["score"] for hit in row] for row in found], np.take_along_axis(scores, order, 1), atol=1e-6
    )


def test_one_query_and_few_answers():
    found = semantic_search(QUERIES[0], CORPUS[:3], top_k=10)
    assert (len(found), len(found[0])) == (1, 3)
    assert {type(value) for value in found[0][0].values()} == {int, float}


@pytest.mark.parametrize("precision", ["binary", "ubinary"])
def test_rescoring_is_the_dot_product_with_the_bits(precision):
    """Of sentence-transformers' order of a shortlist: query numbers times bits of 0 and 1; here of the whole corpus."""
    width = 16
    codes = quantize_embeddings(CORPUS[:, :width], precision)
    found = semantic_search(QUERIES[:, :width], codes, top_k=6, corpus_precision=precision)
    scores = QUERIES[:, :width].astype(float) @ (CORPUS[:, :width] > 0).T
    assert np.allclose([[hit["score"] for hit in row] for row in found], -np.sort(-scores)[:, :6], atol=1e-5)
    asked = quantize_embeddings(QUERIES[:, :width], precision)
    by_codes = semantic_search(asked, codes, top_k=6, corpus_precision=precision)
    assert by_codes == semantic_search(QUERIES[:, :width], codes, top_k=6, corpus_precision=precision, rescore=False)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: quantize_embeddings(CORPUS, "int4"), "precision must be one of"),
        (lambda: quantize_embeddings([[np.nan]], "binary"), "embeddings must be finite, got 1 of 1"),
        (lambda: quantize_embeddings(CORPUS, "int8", ranges=np.zeros((2, 3))), "ranges must be"),
        (lambda: quantize_embeddings(CORPUS, "int8", model=3), "model must be left out"),
        (lambda: semantic_search(QUERIES, CORPUS[:, :3]), "must have as many columns, got 20 and 3"),
        (lambda: semantic_search(QUERIES, CORPUS, top_k=0), "top_k must be a whole number of at least 1, got 0"),
        (lambda: semantic_search(QUERIES, CORPUS, model=3), "model must be left out"),
        (lambda: semantic_search(QUERIES, CORPUS, corpus_precision="ubinary"), "corpus_embeddings of 20 bits must be"),
    ],
)
def test_wrong_arguments_are_refused(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
