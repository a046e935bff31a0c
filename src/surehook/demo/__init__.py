"""The demonstration: a real server, five real receivers, a signing workflow, and a `kill -9` in the middle.

    plan        what is published, to whom, under which (short) policies; pure
    receiver    a small HTTP server that can be slow, flaky or silent (`surehook listen` uses it too)
    receivers   the five of them as one process, with a memory of what they saw
    children    the server and the receivers as processes of their own
    publishing  the workflow through the client; a lost answer is repeated under the same key
    tally       what the API says against what the receivers saw; pure
    watching    progress in the terminal
    run         the play itself

The last line on stdout is the result: `accepted = delivered + open + dead + lost`, all in deliveries. A
delivery counts as delivered only where the API says so *and* the receiver saw it; everything accepted that is
neither delivered, open nor dead is lost, and one lost delivery fails the demonstration.
"""
