"""The document store of Haystack, by Haystack's own suites, in memory and in a file, with and without a model."""

import sys

import numpy as np
import pytest

suite = pytest.importorskip("haystack.testing.document_store")
later = pytest.importorskip("haystack.testing.document_store_async")

from haystack import Document, Pipeline  # noqa: E402
from haystack.core.errors import DeserializationError  # noqa: E402
from haystack.document_stores.errors import DuplicateDocumentError  # noqa: E402
from haystack.document_stores.types import DuplicatePolicy  # noqa: E402

from ilhash import methods  # noqa: E402
from ilhash.ties.haystack import IlhashDocumentStore, IlhashEmbeddingRetriever  # noqa: E402

WIDTH = 768  # of the embeddings of Haystack's suite


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model"
    methods.LSH(n_bits=128).fit(np.random.default_rng(0).normal(size=(100, WIDTH))).save(path)
    return path


class Suite(
    suite.DocumentStoreBaseExtendedTests,
    suite.CountDocumentsByFilterTest,
    suite.CountUniqueMetadataByFilterTest,
    suite.GetMetadataFieldsInfoTest,
    suite.GetMetadataFieldMinMaxTest,
    suite.GetMetadataFieldUniqueValuesTest,
    later.CountDocumentsAsyncTest,
    later.WriteDocumentsAsyncTest,
    later.DeleteDocumentsAsyncTest,
    later.DeleteAllAsyncTest,
    later.DeleteByFilterAsyncTest,
    later.UpdateByFilterAsyncTest,
    later.FilterDocumentsAsyncTest,
    later.CountDocumentsByFilterAsyncTest,
    later.CountUniqueMetadataByFilterAsyncTest,
    later.GetMetadataFieldsInfoAsyncTest,
    later.GetMetadataFieldMinMaxAsyncTest,
    later.GetMetadataFieldUniqueValuesAsyncTest,
):
    """All that Haystack has for stores; the two tests of the policy NONE are left to each store."""

    def test_write_documents(self, document_store):
        document = Document(content="one")
        assert document_store.write_documents([document]) == 1
        with pytest.raises(DuplicateDocumentError):
            document_store.write_documents([document], policy=DuplicatePolicy.NONE)

    async def test_write_documents_async(self, document_store):
        document = Document(content="one")
        assert await document_store.write_documents_async([document]) == 1
        with pytest.raises(DuplicateDocumentError):
            await document_store.write_documents_async([document], policy=DuplicatePolicy.NONE)


class TestInMemory(Suite):
    @pytest.fixture
    def document_store(self):
        store = IlhashDocumentStore()
        yield store
        store.close()


class TestInAFile(Suite):
    @pytest.fixture
    def document_store(self, tmp_path, model):
        store = IlhashDocumentStore(model, tmp_path / "documents.db", order="vectors")
        yield store
        store.close()


# ---------------------------------------------------------------------------------------------- what the suite leaves


def documents(n=30):
    X = np.random.default_rng(1).normal(size=(n, WIDTH))
    return [
        Document(id=str(i), content=f"text {i}", meta={"even": i % 2 == 0}, embedding=X[i].tolist()) for i in range(n)
    ]


@pytest.mark.parametrize("order", ["hamming", "asymmetric", "vectors"])
def test_the_nearest_are_those_of_the_model(model, order):
    written = documents()
    store = IlhashDocumentStore(model, order=order)
    store.write_documents(written)
    for wanted in written[:5]:
        found = store.embedding_retrieval(wanted.embedding, top_k=4)
        assert found[0].id == wanted.id
        assert found[0].score == pytest.approx(1.0)
        assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
        assert found[0].embedding is None
        assert 0 <= found[-1].score < 1
    odd = {"field": "meta.even", "operator": "==", "value": False}
    assert {int(one.id) % 2 for one in store.embedding_retrieval(written[0].embedding, odd, top_k=30)} == {1}


def test_a_store_without_embeddings_keeps_codes_alone(model, tmp_path):
    lean, full = tmp_path / "lean.db", tmp_path / "full.db"
    for path, keep in ((lean, False), (full, True)):
        store = IlhashDocumentStore(model, path, keep_embeddings=keep)
        store.write_documents(documents(200))
        store.update_by_filter({}, {"seen": True})
        (found,) = store.embedding_retrieval(documents()[7].embedding, top_k=1, return_embedding=True)
        assert (found.id, found.meta["seen"], found.embedding is not None) == ("7", True, keep)
        store.close()
    assert lean.stat().st_size < 80_000 < 8 * 200 * WIDTH < full.stat().st_size
    with pytest.raises(ValueError, match="where vectors were not kept, got 'vectors' and 10 of 10 without"):
        IlhashDocumentStore(model, lean, order="vectors").embedding_retrieval(documents()[7].embedding, top_k=1)
    with pytest.raises(ValueError, match="order must be 'hamming' or 'asymmetric'"):
        IlhashDocumentStore(model, order="vectors", keep_embeddings=False)


def test_a_pipeline_asks_it_and_is_written_down(model, tmp_path):
    store = IlhashDocumentStore(str(model), tmp_path / "documents.db")
    store.write_documents(documents())
    pipeline = Pipeline()
    pipeline.add_component("retriever", IlhashEmbeddingRetriever(store, top_k=3))
    asked = {"retriever": {"query_embedding": documents()[4].embedding}}
    first = pipeline.run(asked)["retriever"]["documents"]
    with pytest.raises(DeserializationError, match="not on the trusted-module allowlist"):
        Pipeline.loads(pipeline.dumps())
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["ilhash.ties.haystack"]).run(asked)["retriever"][
        "documents"
    ]
    assert [one.id for one in first] == [one.id for one in again]
    assert first[0].id == "4"
    with pytest.raises(ValueError, match="model must be given as the folder"):
        IlhashDocumentStore(methods.Sign().fit(np.eye(3))).to_dict()


async def test_the_retriever_can_be_awaited(model):
    store = IlhashDocumentStore(model)
    await store.write_documents_async(documents())
    found = await IlhashEmbeddingRetriever(store, top_k=2).run_async(documents()[4].embedding)
    assert found["documents"][0].id == "4"
    assert (await store.embedding_retrieval_async(documents()[5].embedding))[0].id == "5"


def test_metadata_that_json_cannot_hold_are_refused_and_nothing_is_written():
    store = IlhashDocumentStore()
    with pytest.raises(ValueError, match="meta must be values that JSON can hold"):
        store.write_documents([Document(content="a"), Document(content="b", meta={"x": object()})])
    assert store.count_documents() == 0


def test_telemetry_of_haystack_is_off_here():
    telemetry = sys.modules.get("haystack.telemetry._telemetry")
    assert telemetry is None or telemetry.telemetry is None
