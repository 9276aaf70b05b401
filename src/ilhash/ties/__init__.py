"""Ties to what people already use, one file each; none of them is imported before somebody asks for it.

langchain              a vector store of LangChain              ``pip install "ilhash[langchain]"``
haystack               a document store and a retriever of Haystack   ``pip install "ilhash[haystack]"``
sentence_transformers  its ``quantize_embeddings`` and ``semantic_search``, on arrays, without torch
arrow                  a column of codes that says what it is, in memory and in Parquet   ``pip install "ilhash[io]"``
_documents             texts and codes in one file, which both stores stand on

``ilhash.search.as_faiss`` is where search is; models are transformers of scikit-learn as they come.
"""
