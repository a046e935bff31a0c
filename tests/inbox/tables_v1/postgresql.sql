CREATE TABLE surehook_inbox_conflicts (
	id BYTEA NOT NULL, 
	event BYTEA NOT NULL, 
	body_sha256 BYTEA NOT NULL, 
	request BYTEA NOT NULL, 
	received_at BIGINT NOT NULL, 
	PRIMARY KEY (id), 
	CONSTRAINT surehook_inbox_conflicts_once UNIQUE (event, body_sha256)
);

CREATE TABLE surehook_inbox_documents (
	document_type VARCHAR(128) NOT NULL, 
	tenant VARCHAR(128) NOT NULL, 
	document VARCHAR(255) NOT NULL, 
	state VARCHAR(128) NOT NULL, 
	body TEXT, 
	wake_at BIGINT, 
	updated_at BIGINT NOT NULL, 
	PRIMARY KEY (document_type, tenant, document)
);

CREATE INDEX surehook_inbox_documents_wake ON surehook_inbox_documents (wake_at) WHERE wake_at IS NOT NULL;

CREATE TABLE surehook_inbox_events (
	id BYTEA NOT NULL, 
	source VARCHAR(64) NOT NULL, 
	tenant VARCHAR(128) NOT NULL, 
	event_id VARCHAR(255) NOT NULL, 
	type VARCHAR(255), 
	body_sha256 BYTEA NOT NULL, 
	request BYTEA NOT NULL, 
	item INTEGER, 
	received_at BIGINT NOT NULL, 
	occurred_at BIGINT, 
	sent_at BIGINT, 
	proven VARCHAR(64) NOT NULL, 
	key_id VARCHAR(256), 
	schema_version VARCHAR(64), 
	correlation_id VARCHAR(256), 
	PRIMARY KEY (id), 
	CONSTRAINT surehook_inbox_events_once UNIQUE (source, tenant, event_id)
);

CREATE INDEX surehook_inbox_events_received ON surehook_inbox_events (received_at);

CREATE TABLE surehook_inbox_receipts (
	event BYTEA NOT NULL, 
	source VARCHAR(64) NOT NULL, 
	event_id VARCHAR(255) NOT NULL, 
	delivery VARCHAR(64) NOT NULL, 
	endpoint VARCHAR(64) NOT NULL, 
	word TEXT NOT NULL, 
	due_at BIGINT, 
	lease BYTEA, 
	attempts INTEGER NOT NULL, 
	PRIMARY KEY (event)
);

CREATE INDEX surehook_inbox_receipts_due ON surehook_inbox_receipts (due_at, event) WHERE due_at IS NOT NULL;

CREATE TABLE surehook_inbox_requests (
	id BYTEA NOT NULL, 
	source VARCHAR(64) NOT NULL, 
	received_at BIGINT NOT NULL, 
	url TEXT, 
	headers TEXT NOT NULL, 
	body BYTEA NOT NULL, 
	PRIMARY KEY (id)
);

CREATE INDEX surehook_inbox_requests_received ON surehook_inbox_requests (received_at);

CREATE TABLE surehook_inbox_runs (
	id BYTEA NOT NULL, 
	event BYTEA NOT NULL, 
	number INTEGER NOT NULL, 
	reason VARCHAR(256), 
	state VARCHAR(16) NOT NULL, 
	attempts SMALLINT NOT NULL, 
	due_at BIGINT, 
	lease BYTEA, 
	accepted_at BIGINT NOT NULL, 
	processed_at BIGINT, 
	finalized_at BIGINT, 
	handler VARCHAR(256), 
	handler_version VARCHAR(64), 
	result_sha256 BYTEA, 
	changed BOOLEAN NOT NULL, 
	error_code VARCHAR(64), 
	error TEXT, 
	PRIMARY KEY (id), 
	CONSTRAINT surehook_inbox_runs_numbered UNIQUE (event, number)
);

CREATE INDEX surehook_inbox_runs_due ON surehook_inbox_runs (due_at, id) WHERE due_at IS NOT NULL;

CREATE INDEX surehook_inbox_runs_stopped ON surehook_inbox_runs (state, id) WHERE state in ('dead', 'held', 'parked');

CREATE TABLE surehook_inbox_steps (
	id BYTEA NOT NULL, 
	document_type VARCHAR(128) NOT NULL, 
	tenant VARCHAR(128) NOT NULL, 
	document VARCHAR(255) NOT NULL, 
	event BYTEA, 
	event_id VARCHAR(255) NOT NULL, 
	verdict VARCHAR(16) NOT NULL, 
	decided_at BIGINT NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (id)
);

CREATE INDEX surehook_inbox_steps_event ON surehook_inbox_steps (event);

CREATE INDEX surehook_inbox_steps_of ON surehook_inbox_steps (document, document_type, tenant, id);
