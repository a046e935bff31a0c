"""The demonstration: a real server, a real application, five other receivers, a signing workflow, and two `kill -9`.

    plan         what is published, to whom, under which (short) policies; pure
    publishing   the workflow through the client; a lost answer is repeated under the same key
    application  the receiving application: the inbox, the signing table, and a table of effects
    road         the way there, which loses, repeats and reorders
    receiver     a small HTTP server that can be slow, flaky or silent (`surehook listen` uses it too)
    receivers    the other receivers and the road as one process, with a memory of what they saw
    process      a program as a process of its own, started, killed, ended
    children     which programs those are
    kept         what the application's database holds
    tally        the API's word against what the receivers saw and the application has; pure
    words        the same in sentences; pure
    watching     progress in the terminal
    run          the play itself

The last line on stdout is the result. `accepted = delivered + open + dead + lost`, all in deliveries; `applied` and
`applied_twice` are events. Nothing is taken from what a process says of itself:

- A delivery is *delivered* only where the server's book says so **and** its receiver saw the request.
- A delivery to the application is, besides, in the application's database: its effect is there, or the inbox has it still to
  do. An event that was answered 2xx and is not there, and one that the inbox has finished with and whose effect is not there
  (every event of the play is a move of its document), are *lost*.
- Everything accepted that is neither delivered, open nor dead is *lost*.
- *Applied* counts rows of the table that the handler writes, read with SQL of our own once the application has ended. Nothing
  but the inbox keeps a row from being there twice.

One lost delivery or one effect that is there twice fails the demonstration; so do a move of a document that does not begin
where the one before it ended, and events that the inbox still has to do when nothing is left that they could wait for.
"""
