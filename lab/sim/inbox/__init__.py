"""Both halves in one world: the server delivers to inboxes that die, lag and lose their database, and nothing is lost or doubled.

The sender's half is the world of `lab.sim` as it is, with its faults and all its checks. Its one customer is an
application with an inbox: the code of `surehook.inbox` behind its own ASGI door, on the SQL that ships, in one to three
processes with several workers each, on one SQLite database in memory (`database`). That database is real so that constraints,
savepoints and rollbacks are; a transaction happens in one instant of the world, which is what SQLite's single writer comes to.
Concurrent transactions on PostgreSQL and MySQL are the business of tests with their servers.

What befalls the receiver, drawn by the seed beside what befalls the sender (`plan`):

- a process is killed before any of its steps; before any call on its open transaction; in a handler that has written; before
  a commit; after a commit and before the answer. Its machine loses power, it is stopped in order, or frozen past its leases
- the database is late, stalls, is away, ends transactions for contention, commits and does not say so
- its clocks are off, drift, and are set
- answers are lost on broken connections; a middlebox says requests again, some of them with other bytes; a proxy in front
  answers in the inbox's place, or not at all
- handlers fail, ask for later, refuse until they are mended, ignore; two handlers share an event
- the endpoint's secret is rotated, and the receiver learns the new one in time or too late
- events come in schema versions that nobody knows until they are unparked
- people replay at either end, also of documents that have ended; finalize and reject, in some worlds moves of documents, for
  which who undoes them fails now and then

`stories` says what documents go through and what each event must come to; `oracle` compares that with the tables, read by
statements of its own.
"""
