"""Measurements of the product under load, counted from outside.

A bench is a door like the command line: it starts `surehook serve` as a child process, calls the HTTP
API that everybody calls, and believes nobody but its own receiver.

    load ──POST /v1/events──▶ server ──POST──▶ sink
      └── ids, sent, accepted ──▶ join ◀── ids, arrived ──┘

Generator (`load`), server and receiver (`sink`) are separate processes of one machine, so their
monotonic clocks are one clock and a latency is a subtraction. What the figures mean:

- *delivered* is counted at the sink: deliveries that it answered with 2xx, each once.
- *lost* is accepted (202) but not among them after the server has said that nothing is left to send.
- *duplicated* is a request that reached the sink after it had answered that delivery with 2xx.
- *accept* runs from the instant a request was meant to leave to the end of its 202. In open loop that
  instant is set by the rate alone, so a stalled server is charged for the requests it held up.
- *arrival* runs from the same instant to the arrival of the delivery's first request at the sink: it
  contains the acceptance. (The 202 is often read later than the delivery arrives.)
- *server CPU* is user and system time of the server's whole process tree, divided by deliveries.
- A throughput's clock stops when the last delivery has arrived and the lanes are empty.
"""
