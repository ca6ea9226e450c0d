"""Tests of the pages and what they share."""
