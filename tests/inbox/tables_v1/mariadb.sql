CREATE TABLE surehook_inbox_conflicts (
	id BINARY(16) NOT NULL, 
	event BINARY(16) NOT NULL, 
	body_sha256 BINARY(32) NOT NULL, 
	request BINARY(16) NOT NULL, 
	received_at BIGINT NOT NULL, 
	PRIMARY KEY (id), 
	CONSTRAINT surehook_inbox_conflicts_once UNIQUE (event, body_sha256)
)ENGINE=InnoDB CHARSET=utf8mb4 ROW_FORMAT=DYNAMIC;

CREATE TABLE surehook_inbox_documents (
	document_type VARCHAR(128) COLLATE utf8mb4_bin NOT NULL, 
	tenant VARCHAR(128) COLLATE utf8mb4_bin NOT NULL, 
	document VARCHAR(255) COLLATE utf8mb4_bin NOT NULL, 
	state VARCHAR(128) NOT NULL, 
	body MEDIUMTEXT CHARACTER SET utf8mb4, 
	wake_at BIGINT, 
	updated_at BIGINT NOT NULL, 
	PRIMARY KEY (document_type, tenant, document)
)ENGINE=InnoDB CHARSET=utf8mb4 ROW_FORMAT=DYNAMIC;

CREATE INDEX surehook_inbox_documents_wake ON surehook_inbox_documents (wake_at);

CREATE TABLE surehook_inbox_events (
	id BINARY(16) NOT NULL, 
	source VARCHAR(64) COLLATE utf8mb4_bin NOT NULL, 
	tenant VARCHAR(128) COLLATE utf8mb4_bin NOT NULL, 
	event_id VARCHAR(255) COLLATE utf8mb4_bin NOT NULL, 
	type VARCHAR(255) COLLATE utf8mb4_bin, 
	body_sha256 BINARY(32) NOT NULL, 
	request BINARY(16) NOT NULL, 
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
)ENGINE=InnoDB CHARSET=utf8mb4 ROW_FORMAT=DYNAMIC;

CREATE INDEX surehook_inbox_events_received ON surehook_inbox_events (received_at);

CREATE TABLE surehook_inbox_receipts (
	event BINARY(16) NOT NULL, 
	source VARCHAR(64) COLLATE utf8mb4_bin NOT NULL, 
	event_id VARCHAR(255) COLLATE utf8mb4_bin NOT NULL, 
	delivery VARCHAR(64) NOT NULL, 
	endpoint VARCHAR(64) NOT NULL, 
	word MEDIUMTEXT CHARACTER SET utf8mb4 NOT NULL, 
	due_at BIGINT, 
	lease BINARY(16), 
	attempts INTEGER NOT NULL, 
	PRIMARY KEY (event)
)ENGINE=InnoDB CHARSET=utf8mb4 ROW_FORMAT=DYNAMIC;

CREATE INDEX surehook_inbox_receipts_due ON surehook_inbox_receipts (due_at, event);

CREATE TABLE surehook_inbox_requests (
	id BINARY(16) NOT NULL, 
	source VARCHAR(64) COLLATE utf8mb4_bin NOT NULL, 
	received_at BIGINT NOT NULL, 
	url MEDIUMTEXT CHARACTER SET utf8mb4, 
	headers MEDIUMTEXT CHARACTER SET utf8mb4 NOT NULL, 
	body LONGBLOB NOT NULL, 
	PRIMARY KEY (id)
)ENGINE=InnoDB CHARSET=utf8mb4 ROW_FORMAT=DYNAMIC;

CREATE INDEX surehook_inbox_requests_received ON surehook_inbox_requests (received_at);

CREATE TABLE surehook_inbox_runs (
	id BINARY(16) NOT NULL, 
	event BINARY(16) NOT NULL, 
	number INTEGER NOT NULL, 
	reason VARCHAR(256), 
	state VARCHAR(16) NOT NULL, 
	attempts SMALLINT NOT NULL, 
	due_at BIGINT, 
	lease BINARY(16), 
	accepted_at BIGINT NOT NULL, 
	processed_at BIGINT, 
	finalized_at BIGINT, 
	handler VARCHAR(256), 
	handler_version VARCHAR(64), 
	result_sha256 BINARY(32), 
	changed BOOL NOT NULL, 
	error_code VARCHAR(64), 
	error MEDIUMTEXT CHARACTER SET utf8mb4, 
	PRIMARY KEY (id), 
	CONSTRAINT surehook_inbox_runs_numbered UNIQUE (event, number)
)ENGINE=InnoDB CHARSET=utf8mb4 ROW_FORMAT=DYNAMIC;

CREATE INDEX surehook_inbox_runs_due ON surehook_inbox_runs (due_at, id);

CREATE INDEX surehook_inbox_runs_stopped ON surehook_inbox_runs (state, id);

CREATE TABLE surehook_inbox_steps (
	id BINARY(16) NOT NULL, 
	document_type VARCHAR(128) COLLATE utf8mb4_bin NOT NULL, 
	tenant VARCHAR(128) COLLATE utf8mb4_bin NOT NULL, 
	document VARCHAR(255) COLLATE utf8mb4_bin NOT NULL, 
	event BINARY(16), 
	event_id VARCHAR(255) COLLATE utf8mb4_bin NOT NULL, 
	verdict VARCHAR(16) NOT NULL, 
	decided_at BIGINT NOT NULL, 
	body MEDIUMTEXT CHARACTER SET utf8mb4 NOT NULL, 
	PRIMARY KEY (id)
)ENGINE=InnoDB CHARSET=utf8mb4 ROW_FORMAT=DYNAMIC;

CREATE INDEX surehook_inbox_steps_event ON surehook_inbox_steps (event);

CREATE INDEX surehook_inbox_steps_of ON surehook_inbox_steps (document, document_type, tenant, id);
