"""Ids are names: what a model computes under other ones."""
