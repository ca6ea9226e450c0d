"""What there is to load, by name: models, and the vocabularies that files hold."""

from lmcore.loading.model_name import DTYPES, INT8_CACHE, WEIGHTS, ModelName, model_name
from lmcore.loading.models import (
    FOLDER_VARIABLE,
    AvailableModel,
    Doing,
    LoadingCancelled,
    Progress,
    available,
    built_in,
    load,
)
from lmcore.loading.quantised import quantised

__all__ = [
    "DTYPES",
    "FOLDER_VARIABLE",
    "INT8_CACHE",
    "WEIGHTS",
    "AvailableModel",
    "Doing",
    "LoadingCancelled",
    "ModelName",
    "Progress",
    "available",
    "built_in",
    "load",
    "model_name",
    "quantised",
]
