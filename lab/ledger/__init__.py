"""The book in dictionaries: complete, honest, and gone when the process ends.

It keeps the contract of the ports to the letter, so that the simulated world, the tests and a database
can be exchanged for each other. Three things make it so:

- *Rows are its own.* What goes in is copied into `rows.Row`, what comes out is a fresh `Delivery`; no
  caller can change the book by changing a value in hand.
- *Every call is one step.* A method's body never suspends, so calls of any number of nodes are serial,
  as if each were one transaction. A method looks first and writes after: one that raises has changed nothing.
- *Every index is kept, none is scanned.* `book.Book` moves a row between the index of its holder, of its
  parking group or of its lane; claims cost O(batch) whatever lies parked.

`hooks.py` is where a simulated world reaches in: it may suspend before and after each step, and may raise
there what a database raises. `ledger.MemoryLedger` puts the parts together.
"""
