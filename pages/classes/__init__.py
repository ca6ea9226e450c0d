"""A class that answers a lesson together: students on their own screens, the answers on the teacher's.

- `store` keeps classes, students and votes in SQLite, and gives `records`; it knows nothing of pages or networks.
- `guesses` slows whoever tries codes.
- `operator` holds what the operator sets, and the one store of this server.
- `line` is the websocket of each browser in a class: votes come in, the state of the class goes out.
- `panel` shows the class above the page, to a student and to the teacher; `tables` is what the teacher saves.

A teacher's browser has a secret, and so has each student's; the store has their hashes. Neither is in a link.
"""
