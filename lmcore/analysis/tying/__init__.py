"""Tied or not: told by identity of storage, and tried under the operations that keep or break it."""

from lmcore.analysis.tying.storage import Storage, storage_of, storage_of_model

__all__ = ["Storage", "storage_of", "storage_of_model"]
