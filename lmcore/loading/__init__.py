"""What there is to load, by name: models, and the vocabularies that files hold."""

from lmcore.loading.models import (
    DTYPES,
    FOLDER_VARIABLE,
    AvailableModel,
    Doing,
    LoadingCancelled,
    Progress,
    available,
    load,
    split_dtype,
)

__all__ = [
    "DTYPES",
    "FOLDER_VARIABLE",
    "AvailableModel",
    "Doing",
    "LoadingCancelled",
    "Progress",
    "available",
    "load",
    "split_dtype",
]
