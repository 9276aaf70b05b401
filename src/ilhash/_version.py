"""The version of this library, which everything that it writes carries."""

__version__ = "0.1.0"
