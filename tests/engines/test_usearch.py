from tests.engines.postings import PostingsContract


class TestUsearch(PostingsContract):
    scheme = "usearch"
    approximate = ("hnsw",)
