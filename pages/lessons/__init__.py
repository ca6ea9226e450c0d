"""Lessons: a way through the pages, each step a page's state and a question to answer before looking.

A lesson is a TOML file; `tour.toml` beside this file is one, and a teacher's own lie in the folder that
`GLASS_BOX_LM_LESSONS` names. The answers are never written down: a step names what is measured, and it is computed
from the model in front of the reader.
"""
