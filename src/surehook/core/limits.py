"""All bounds of the product: value, unit, reason. In one place, so that the docs can print them.

Names end in their unit where it is not a count.
"""

from __future__ import annotations

# -- requests in ------------------------------------------------------------------------------------------

EVENT_BODY_BYTES = 256 * 1024  # receivers are advised to expect 20 KB; a quarter MiB is generous
BATCH_BODY_BYTES = 8 * 1024 * 1024  # one batch is held in memory several times over
BATCH_EVENTS = 1_000  # one group commit
MANAGEMENT_BODY_BYTES = 64 * 1024  # an endpoint or a policy is a page of text; a schema has its own line
ENDPOINT_BODY_BYTES = 320 * 1024  # three texts of PEM_BYTES with their line ends escaped, and the page
SCHEMA_BODY_BYTES = 256 * 1024  # JSON Schemas of real products run to tens of KB
# Of all event types together: each process keeps them read, in up to twelve times as much memory.
SCHEMAS_BYTES = 16 << 20
SCHEMA_PATTERNS = 100  # regular expressions in one schema; each may take twice the memory of the next line
SCHEMA_PATTERN_BYTES = 1024 * 1024  # of one compiled: 1,000 ASCII characters fit, 100 of all scripts not
SCHEMA_STEPS = 12_000_000  # of judging one payload, 2.5 ns each: other work waits for it
SCHEMA_PARTS = 12_000  # objects in a schema: one of 256 KiB in which half is names has 5,000
SCHEMA_PATTERN_PLACES = 150_000  # in all patterns of a schema, repetitions written out: 30 ms to compile
SCHEMA_VERSIONS = 20  # of one event type beside its own: receivers follow within a few
DATA_DEPTH = 64  # nesting of `data`; parsers of receivers begin to give up at about 100
NUMBER_DIGITS = 308  # digits in a row: more is infinite as a double, and slow for readers of big integers

# -- the HTTP server --------------------------------------------------------------------------------------

HEAD_BYTES = 32 * 1024  # request line and headers: ours are below 1 KiB, cookies of a shared host some KiB
REQUEST_LINE_BYTES = 8 * 1024  # RFC 9110 asks for 8,000 at least; our longest list with all filters has 2 KiB
HEAD_FIELDS = 100  # header lines: proxies add ten; each costs ten times its bytes as objects
PARTIAL_HEADS_BYTES = 16 * 1024 * 1024  # of all heads that have begun and not ended
CHUNK_LINE_BYTES = 1_024  # one line between chunks: a size is 16, the rest are extensions, or a trailer
CHUNK_OVERHEAD_BYTES = 64 * 1024  # beyond as many bytes as there are data
CHUNKS_SMALL = 1_024  # of one body, of any size; beyond them …
CHUNK_BYTES = 128  # … one chunk for so many bytes of data
CHUNKS_AT_ONCE = 64  # fifty microseconds to read, before other connections have their turn
FOLLOWING = 512  # connections whose chunks, or other small pieces, wait for turns of a millisecond
TRAILER_BYTES = 4 * 1024  # of one body, all lines; nobody reads them
READ_BYTES = 16 * 1024  # read at once of a connection without a reservation: the most it can make us hold
BODY_READ_BYTES = 256 * 1024  # read at once of a body whose bytes are reserved
HEAD_S = 10  # from the first byte of a head, or from the connection's beginning, to the head's end
BODY_S = 60  # from the moment a body is wanted to its end
BODY_RATE_BYTES = 1_024  # a second, on average, once a body has come for BODY_GRACE_S
BODY_GRACE_S = 5  # a lost packet or two are repeated within this time
IDLE_S = 75  # a connection between two requests; pools of callers give up sooner
ANSWER_S = 30  # in each such span an unread answer must move by BODY_RATE_BYTES a second
# A caller that is refused midway may go on sending for so long, and so many bytes, which are thrown away: many read no
# answer before they have sent everything, and some none when sending fails. Half as much again as the largest batch.
LINGER_S = 10
LINGER_BYTES = 12 * 1024 * 1024
UNSENT_BYTES = 64 * 1024 * 1024  # of all answers that are written and not yet read; a page may have 50 MB
CONNECTIONS_REFUSED = 128  # connections above the bound that get an answer; more are closed without one
LARGE_SHARE = 0.75  # of the byte budget for bodies over EVENT_BODY_BYTES: the rest is for single events

# -- texts of an event ------------------------------------------------------------------------------------

EVENT_TYPE_CHARS = 128  # a name for people and for filters
TEXT_CHARS = 256  # subject, source, correlation and causation ids: keys of other systems
VERSION_CHARS = 64  # schema_version, workflow_version
SEQUENCE_MAX = 2**63 - 1  # the signed 64 bits of both databases
IDEMPOTENCY_KEY_CHARS = 255  # visible ASCII, as header values travel unharmed
EVENT_ID_AHEAD_S = 300  # an id from further ahead of the clock could not be told from a repeat later
IDEMPOTENCY_KEPT_S = 24 * 3600  # the shortest time a key is remembered

# -- texts of management -----------------------------------------------------------------------------------

TENANT_CHARS = 64  # a tenant's id stands in every row and every key
TENANT_PATTERN = r"\A[a-z0-9_-]{1,64}\Z"
DESCRIPTION_CHARS = 1_024  # a paragraph: descriptions and notes

# -- endpoints --------------------------------------------------------------------------------------------

TENANT_ENDPOINTS = 10_000  # an event and all its deliveries are one transaction: of so many, 0.1 to 0.5 s
FILTERS = 100  # filters per endpoint; more is a sign that `*` was meant
FILTER_CHARS = EVENT_TYPE_CHARS + 2  # an event type and `.*`
HEADERS = 20  # custom headers per endpoint
HEADER_NAME_CHARS = 64  # longer names meet proxies that refuse them
HEADER_VALUE_CHARS = 1_024  # room for a bearer token
TOKEN_CHARS = 4_096  # a fixed bearer token or key: signed tokens with many claims run to 3 KB
CREDENTIAL_BYTES = 1_024  # user names, passwords, client ids and secrets
SCOPES = 50  # OAuth2 scopes asked for; more is a sign that a role was meant
SCOPE_CHARS = 256
AUDIENCE_CHARS = 1_024  # a URL or a name
PEM_BYTES = 64 * 1024  # a certificate is 2 KB; a bundle of a company's authorities some dozens of them
FINALIZE_WITHIN_S = 30 * 86_400  # later the event is past its retention
FILTER_MEMO = 10_000  # event types whose fan-out is memoised per tenant; beyond, the memo is emptied
# … and endpoints in these, 8 bytes each: a hundred fan-outs to as many as a tenant may have.
FILTER_PLACES = 1_000_000

# -- policies (seconds unless the name says otherwise) ----------------------------------------------------

TIMEOUT_S = (0.05, 60.0)  # shorter than a round trip never succeeds; longer holds a slot for a minute
SCHEDULE_STEPS = 100  # retries of any schedule; the longest profile has 60
WAIT_S = (0.01, 30 * 86_400.0)  # shorter is a busy loop; longer is not a retry any more
GROWTH = (1.0, 10.0)  # factor between two exponential waits
WAIT_FACTOR = (10.0, 200.0)  # as webhooks.uno bounds it
WAIT_FACTOR_TOTAL_S = 10 * 86_400.0  # webhooks.uno: a wait that would pass ten days in all is not begun
JITTER_ADD_S = (0.0, 3_600.0)
MAX_AGE_S = (1.0, 90 * 86_400.0)  # retention of events is shorter than that by default
ESCALATE_S = (1.0, 30 * 86_400.0)
REDIRECTS = 2  # followed per attempt; each one is another address to judge
SUCCESS_ENTRIES = 20
TERMINAL_ENTRIES = 50
AUTO_DISABLE_FAILURES = 10_000
BREAKER_WINDOW_S = (1.0, 86_400.0)
BREAKER_CALLS = 10_000
PROBE_AFTER_S = (0.1, 86_400.0)
PROBE_S = 90.0  # a probe that says nothing for so long is lost: the longest time-out, and half of it for the way there
# How late an older opening may still be written: no lease lasts so long.
CLOSINGS_KEPT_MS = 86_400_000
POLICY_REFERENCE_BYTES = 16 * 1024  # a hundred steps fit in two KB

# -- signatures -------------------------------------------------------------------------------------------

SECRET_BYTES = (24, 64)  # Standard Webhooks 1.0.0: 24 to 64 random bytes
SECRET_BYTES_DEFAULT = 32
MESSAGE_ID_CHARS = 128
SIGNATURES = 32  # in one header; a rotation needs two
SECRET_OVERLAP_MAX_S = 30 * 86_400  # for which a secret still signs after its rotation
SIGNATURE_HEADER_BYTES = 4 * 1024
TOLERANCE_S = 300  # clock difference between sender and receiver, both edges inclusive

# -- what a receiver's answer may make us read ------------------------------------------------------------

VERDICT_BYTES = 16 * 1024  # the kept part of an answer's body
ANSWERS_WHOLE = 10  # of one delivery, kept as far as they were read; and so is the one that ends it
# Of headers, and of the body, of the others: a hundred of them are 400 KB and not 2 MB.
ANSWER_BYTES_LATER = 1024
VERDICT_CODE_CHARS = 64
RETRY_AFTER_S = 10**9  # 31 years: above every cap of a policy
