"""Search of packed codes in Hamming space, and the durable store behind it."""

__all__: list[str] = []
