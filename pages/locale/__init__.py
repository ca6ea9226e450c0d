"""Translations of the pages, as gettext catalogues."""
