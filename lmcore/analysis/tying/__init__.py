"""Tied or not: decided by identity of storage, and tested under the operations that keep or break it."""

from lmcore.analysis.tying.storage import Storage, storage_of, storage_of_model

__all__ = ["Storage", "storage_of", "storage_of_model"]
