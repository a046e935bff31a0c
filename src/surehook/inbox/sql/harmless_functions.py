"""Functions, types and keywords that stand before a parenthesis and set nothing in a session: those that databases bring."""

from __future__ import annotations

HARMLESS = frozenset(
    """
    abs acos age all and any array array_agg array_append array_cat array_length array_position array_prepend array_remove
    array_replace array_to_json array_to_string as ascii asin atan atan2 avg between bigint binary bit bit_and bit_length
    bit_or blob bool_and bool_or boolean btrim by bytea cardinality case cast cbrt ceil ceiling char char_length character
    character_length chr clock_timestamp coalesce concat concat_ws conflict convert convert_from convert_to corr cos cot
    count crc32 cube cume_dist curdate current_catalog current_database current_date current_schema current_setting
    current_time current_timestamp current_user currval curtime date date_add date_bin date_diff date_format date_part
    date_sub date_trunc datediff datetime day dayname dayofmonth dayofweek dayofyear decimal decode default degrees
    dense_rank digest distinct div double else encode end every except exists exp extract field filter find_in_set first
    first_value float floor format from from_base64 from_unixtime gen_random_bytes gen_random_uuid generate_series
    generate_subscripts get_lock glob greatest group group_concat grouping having hex hmac hour if ifnull iif ilike in
    inet_aton inet_ntoa initcap instr int integer intersect interval is isnull json json_agg json_array
    json_array_elements json_array_elements_text json_array_length json_arrayagg json_build_array json_build_object
    json_contains json_each json_each_text json_exists json_extract json_extract_path json_extract_path_text json_insert
    json_keys json_length json_merge_patch json_object json_object_agg json_object_keys json_objectagg json_patch
    json_populate_record json_populate_recordset json_query json_quote json_remove json_replace json_search json_set
    json_strip_nulls json_table json_to_record json_to_recordset json_tree json_type json_typeof json_unquote json_valid
    json_value jsonb jsonb_agg jsonb_array_elements jsonb_array_elements_text jsonb_array_length jsonb_build_array
    jsonb_build_object jsonb_each jsonb_each_text jsonb_exists jsonb_extract_path jsonb_extract_path_text jsonb_insert
    jsonb_object jsonb_object_agg jsonb_object_keys jsonb_path_exists jsonb_path_query jsonb_path_query_array
    jsonb_path_query_first jsonb_populate_record jsonb_populate_recordset jsonb_pretty jsonb_set jsonb_strip_nulls
    jsonb_to_record jsonb_to_recordset jsonb_typeof julianday justify_days justify_hours justify_interval key lag last_day
    last_insert_id last_insert_rowid last_value lastval lateral lcase lead least left length like limit ln locate log
    log10 log2 lower lower_inf lpad ltrim make_date make_interval make_time make_timestamp make_timestamptz materialized
    max md5 mid min minute mod mode month monthname multirange nextval not now nth_value ntile nullif num_nonnulls
    num_nulls numeric octet_length offset on only or ord order over overlay partition percent_rank percentile_cont
    percentile_disc pg_advisory_xact_lock pg_advisory_xact_lock_shared pg_backend_pid pg_column_size pg_notify pg_sleep
    pg_try_advisory_xact_lock pg_typeof phraseto_tsquery pi plainto_tsquery position pow power printf quarter quote
    quote_ident quote_literal quote_nullable radians rand random range_agg rank real recursive regexp_count regexp_instr
    regexp_like regexp_match regexp_matches regexp_replace regexp_split_to_array regexp_split_to_table regexp_substr
    release_lock repeat replace returning reverse right rollup round row row_count row_number row_to_json rpad rtrim
    sec_to_time second select set sets setval sha1 sha2 sha224 sha256 sha384 sha512 sign similar similarity sin sleep
    smallint some soundex space split_part sqrt starts_with statement_timestamp std stddev stddev_pop stddev_samp
    str_to_date strcmp strftime string_agg string_to_array string_to_table strpos subdate substr substring substring_index
    subtime sum sysdate tan text then time time_to_sec timediff timeofday timestamp timestampadd timestampdiff timestamptz
    timezone tinyint to to_ascii to_base64 to_char to_date to_days to_hex to_json to_jsonb to_number to_timestamp
    to_tsquery to_tsvector total transaction_timestamp translate trim trunc truncate ts_headline ts_rank ts_rank_cd
    tsrange tstzrange typeof ucase unhex union unistr unix_timestamp unixepoch unnest update upper upper_inf user using
    utc_date utc_time utc_timestamp uuid uuid_generate_v1 uuid_generate_v4 uuid_short uuidv4 uuidv7 values var_pop
    var_samp varbinary varbit varchar variance varying version websearch_to_tsquery week weekday when where width_bucket
    with within year yearweek zeroblob
    """.split()  # noqa: SIM905 (five hundred lines otherwise)
)
