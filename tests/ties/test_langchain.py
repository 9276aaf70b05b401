"""The vector store of LangChain, by LangChain's own suite, in memory and in a file, with and without a model."""

import numpy as np
import pytest

langchain_tests = pytest.importorskip("langchain_tests.integration_tests.vectorstores")


from langchain_core.documents import Document  # noqa: E402
from langchain_core.embeddings import DeterministicFakeEmbedding  # noqa: E402

from ilhash import methods  # noqa: E402
from ilhash.ties.langchain import IlhashVectorStore  # noqa: E402

SIZE = langchain_tests.EMBEDDING_SIZE


@pytest.fixture(scope="module")
def model():
    return methods.LSH(n_bits=64).fit(np.random.default_rng(0).normal(size=(200, SIZE)))


class Suite(langchain_tests.VectorStoreIntegrationTests):
    """What LangChain asks of every vector store, sync and async; nothing of it is switched off."""


class TestSigns(Suite):
    @pytest.fixture
    def vectorstore(self):
        store = IlhashVectorStore(self.get_embeddings())
        yield store
        store.close()


class TestModelInAFile(Suite):
    @pytest.fixture
    def vectorstore(self, tmp_path, model):
        store = IlhashVectorStore(self.get_embeddings(), model=model, path=tmp_path / "documents.db", order="hamming")
        yield store
        store.close()


class TestVectors(Suite):
    @pytest.fixture
    def vectorstore(self, model):
        store = IlhashVectorStore(self.get_embeddings(), model=model, order="vectors")
        yield store
        store.close()


# ---------------------------------------------------------------------------------------------- what the suite leaves

TEXTS = [f"text number {i}" for i in range(40)]


def filled(**settings):
    metadatas = [{"even": i % 2 == 0} for i in range(40)]
    ids = [str(i) for i in range(40)]
    embedding = DeterministicFakeEmbedding(size=64)
    return IlhashVectorStore.from_texts(TEXTS, embedding, metadatas, ids=ids, **settings)


@pytest.mark.parametrize("order", ["hamming", "asymmetric", "vectors"])
def test_scores_fall_from_1(order):
    store = filled(order=order)
    found = store.similarity_search_with_score("text number 7", k=40)
    assert (found[0][0].id, found[0][1]) == ("7", pytest.approx(1.0))
    scores = [score for _, score in found]
    assert scores == sorted(scores, reverse=True)
    assert 0 <= scores[-1] < scores[1] < 1
    near = store.similarity_search_with_relevance_scores("text number 7", k=40, score_threshold=0.99)
    assert [document.id for document, _ in near] == ["7"]


def test_filters_and_diversity():
    store = filled()
    odd = store.similarity_search("text number 8", k=40, filter={"even": False})
    assert {int(document.id) % 2 for document in odd} == {1}
    assert len(odd) == 20
    late = store.similarity_search("text number 8", k=3, filter=lambda document: int(document.id) > 30)
    assert all(int(document.id) > 30 for document in late)
    diverse = store.max_marginal_relevance_search("text number 8", k=5, fetch_k=20, lambda_mult=0.2)
    assert (diverse[0].id, len({document.id for document in diverse})) == ("8", 5)
    assert store.as_retriever(search_kwargs={"k": 2}).invoke("text number 3")[0].id == "3"
    with pytest.raises(TypeError, match="filter must be a function or a mapping"):
        store.similarity_search("x", filter=3)


def test_all_go_with_delete_without_ids():
    store = filled()
    store.delete()
    assert len(store) == 0
    assert store.similarity_search("text number 1") == []
    store.add_documents([])
    store.add_documents([Document(page_content="a", id="1"), Document(page_content="b", id="1")])
    assert [one.page_content for one in store.get_by_ids(["1"])] == ["b"]


@pytest.mark.parametrize(
    ("given", "error", "sentence"),
    [
        ({"embedding": 3}, TypeError, "embedding must be Embeddings of LangChain, got int"),
        ({"model": 3}, TypeError, "model must be a model of ilhash, its folder or None, got int"),
        ({"order": "best"}, ValueError, "order must be one of 'hamming', 'asymmetric', 'vectors', got 'best'"),
    ],
)
def test_wrong_settings_are_refused(given, error, sentence):
    with pytest.raises(error, match=sentence):
        IlhashVectorStore(**{"embedding": DeterministicFakeEmbedding(size=4), **given})
    store = filled()
    with pytest.raises(ValueError, match="ids must be one per document, got 1 for 2"):
        store.add_documents([Document(page_content="a")] * 2, ids=["1"])
    with pytest.raises(ValueError, match="metadata must be values that JSON can hold"):
        store.add_documents([Document(page_content="a", metadata={"x": object()})])
    with pytest.raises(ValueError, match="k must be a whole number of at least 1, got 0"):
        store.similarity_search("a", k=0)
