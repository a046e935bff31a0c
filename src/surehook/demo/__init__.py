"""The demonstration: a real server, a real application, five other receivers, a signing workflow, and two `kill -9`.

    plan         events, receivers and (short) policies; pure
    publishing   the workflow through the client; a lost answer is repeated under the same key
    application  the receiving application: the inbox, the signing table, and a table of effects
    road         the network to the application, which loses, repeats and reorders
    receiver     a small HTTP server that can be slow, flaky or silent (`surehook listen` uses it too)
    receivers    the other receivers and the road as one process, with a memory of what they saw
    process      a program as a process of its own: start, kill, end
    children     the server, the application and the receivers as such processes
    kept         the content of the application's database
    tally        compares the API with what the receivers saw and the application has; pure
    words        the result in sentences; pure
    watching     progress in the terminal
    run          the demonstration itself

The last line on stdout is the result. `accepted = delivered + open + dead + lost`, all in deliveries; `applied` and
`applied_twice` are events. No process is believed about itself:

- A delivery is *delivered* only if the server's ledger says so **and** its receiver saw the request.
- A delivery to the application must also be in the application's database: its effect is there, or the inbox still has to
  process it. An event that was answered 2xx and is not stored, or was processed without its effect (every event of the
  demonstration is a move of its document), is *lost*.
- Everything accepted that is neither delivered, open nor dead is *lost*.
- *Applied* counts rows of the table that the handler writes, read with SQL of our own once the application has ended. Only
  the inbox keeps a row from being there twice.

The demonstration fails if one delivery is lost or one effect is there twice; if a move of a document does not begin where
the one before it ended; and if events wait in the inbox when there is nothing left to wait for.
"""
