-- The functions of the main path again, at less cost. Those of before, which take other parameters, stay for instances
-- that still run while this is applied.
--
-- jit = off: costs that are set off the scale to forbid a plan (enable_seqscan) also make Postgres compile that plan,
-- at every call, for longer than it runs.

-- Stable, as what it calls is, so that it is put in line where it is used instead of being called once a row.
CREATE OR REPLACE FUNCTION "to_micros"(t TIMESTAMPTZ) RETURNS BIGINT LANGUAGE sql STABLE PARALLEL SAFE AS
  $$ SELECT (extract(epoch FROM t) * 1000000)::bigint $$;

-- Reads everything a batch is decided from, with the head and the incidents locked (design section 5, steps 2 and 3).
--   p_request: {hintTerm, incidents: [id], fields: [{i, f}], remembered: [size], sources: [{v, a, s, e}]}
--   p_keys:    [{k, d, s, n, p}]; apart, because every -> and ->> reads its document from the start
--     v key version, a agency, s source, e epoch or ''; k key (hex), d claim digest (hex), s place in `sources`,
--     n sequence or null, p position where the window saw the key, or null; i incident, f field.
-- Answers {term, size, recordedAt, policy, contract, heads, claims, fields, leaves}; times are microseconds.
--   claims and fields are objects of columns, null where there is none; k is the place of what was asked for.
--   claims, in order of position: p position, r recorded at, d claim digest, or null where it is the one asked for.
-- Tables are reached by LATERAL look-ups with a LIMIT, which the planner runs one by one through their index, and never
-- by scanning, nor by sorting what an index has in order: a plan made while the ledger was small is still right when it
-- is large.
CREATE FUNCTION "read_batch"(p_feed INTEGER, p_request JSON, p_keys JSON) RETURNS JSON LANGUAGE plpgsql
SET enable_seqscan = off SET enable_sort = off SET jit = off AS $$
DECLARE
  v_hint_term INTEGER := (p_request->>'hintTerm')::integer;
  head feed_head%ROWTYPE;
  v_now TIMESTAMPTZ;
  v_heads JSON;
  v_claims JSON;
  v_fields JSON;
  v_leaves JSON;
BEGIN
  SELECT * INTO STRICT head FROM feed_head WHERE feed_id = p_feed FOR UPDATE;
  v_now := greatest(clock_timestamp(), head.recorded_at);

  INSERT INTO incident (id)
  SELECT DISTINCT x COLLATE "C" FROM json_array_elements_text(p_request->'incidents') AS x ORDER BY 1
  ON CONFLICT (id) DO UPDATE SET id = excluded.id;

  -- The epochs that the batch names, and the one in force: a source may have left any number of others.
  SELECT json_agg(json_build_object('v', h.key_version, 'a', h.agency, 's', h.source_id, 'e', h.epoch,
                                    'r', h.rank::text, 'm', h.mark::text, 'h', h.highest::text))
  INTO v_heads
  FROM json_to_recordset(p_request->'sources') AS q(v integer, a text, s text, e text)
  CROSS JOIN LATERAL (
    SELECT * FROM source_head n
    WHERE n.feed_id = p_feed AND n.key_version = q.v AND n.agency = q.a AND n.source_id = q.s AND n.epoch = q.e
    UNION
    (SELECT * FROM source_head c
     WHERE c.feed_id = p_feed AND c.key_version = q.v AND c.agency = q.a AND c.source_id = q.s AND c.rank IS NOT NULL
     ORDER BY c.rank DESC LIMIT 1)
  ) h;

  WITH source AS MATERIALIZED (
    SELECT q.i, q.v, h.highest
    FROM ROWS FROM (json_to_recordset(p_request->'sources') AS (v integer, a text, s text, e text))
      WITH ORDINALITY AS q(v, a, s, e, i)
    LEFT JOIN LATERAL (
      SELECT n.highest FROM source_head n
      WHERE n.feed_id = p_feed AND n.key_version = q.v AND n.agency = q.a AND n.source_id = q.s AND n.epoch = q.e
      LIMIT 1
    ) h ON true
  ), wanted AS MATERIALIZED (
    SELECT q.i, s.v, decode(q.k, 'hex') AS k, decode(q.d, 'hex') AS d, q.p
    FROM ROWS FROM (json_to_recordset(p_keys) AS (k text, d text, s bigint, n numeric, p bigint))
      WITH ORDINALITY AS q(k, d, s, n, p, i)
    JOIN source s ON s.i = q.s + 1
    -- Above the highest sequence that was ever decided there is nothing to find.
    WHERE q.n IS NULL OR q.n <= s.highest
  ), proven AS MATERIALIZED (
    -- The claim of key and digest: where the window saw it, or by its index.
    SELECT w.i, w.v, w.k, coalesce(hit.position, claim.position) AS position,
      coalesce(hit.recorded_at, claim.recorded_at) AS recorded_at
    FROM wanted w
    LEFT JOIN LATERAL (
      SELECT e.position, e.recorded_at FROM ledger_entry e
      WHERE w.p IS NOT NULL AND head.term = v_hint_term
        AND e.feed_id = p_feed AND e.position = w.p AND e.key_version = w.v AND e.key = w.k AND e.claim_digest = w.d
      LIMIT 1
    ) hit ON true
    LEFT JOIN LATERAL (
      SELECT e.position, e.recorded_at FROM ledger_entry e
      WHERE hit.position IS NULL AND e.feed_id = p_feed AND e.key_version = w.v AND e.key = w.k AND e.claim_digest = w.d
      LIMIT 1
    ) claim ON true
  ), found AS (
    SELECT p.i, NULL::bytea AS d, p.position, p.recorded_at FROM proven p WHERE p.position IS NOT NULL
    UNION ALL
    -- Where there is none, the first claim of the key. A key that is stuck has any number of others, all of them
    -- conflicts that name the first; so whichever the index gives leads to it.
    SELECT w.i, c.claim_digest, c.position, c.recorded_at
    FROM (SELECT min(i) AS i, v, k FROM proven WHERE position IS NULL GROUP BY v, k) w
    CROSS JOIN LATERAL (
      SELECT CASE WHEN e.reason = 'same_key_other_digest' THEN e.original ELSE e.position END AS first
      FROM ledger_entry e
      WHERE e.feed_id = p_feed AND e.key_version = w.v AND e.key = w.k AND e.claim_digest IS NOT NULL
      LIMIT 1
    ) any_claim
    CROSS JOIN LATERAL (
      SELECT e.claim_digest, e.position, e.recorded_at FROM ledger_entry e
      WHERE e.feed_id = p_feed AND e.position = any_claim.first AND e.claim_digest IS NOT NULL
      LIMIT 1
    ) c
  )
  SELECT json_build_object('k', json_agg(f.i - 1), 'p', json_agg(f.position), 'r', json_agg(to_micros(f.recorded_at)),
                           'd', json_agg(encode(f.d, 'hex')))
  INTO v_claims FROM (SELECT * FROM found ORDER BY position) f;

  -- Of a value only its number is ever needed; what is none goes as an empty text, for there may be much of it.
  SELECT json_build_object('k', json_agg(q.k - 1), 'feed', json_agg(f.feed_id), 'a', json_agg(f.agency),
    's', json_agg(f.source_id), 'e', json_agg(f.epoch), 'r', json_agg(f.rank::text), 'n', json_agg(f.sequence::text),
    'value', json_agg(CASE WHEN left(f.value, 1) IN ('"', '{', '[') THEN '""' ELSE f.value END))
  INTO v_fields
  FROM ROWS FROM (json_to_recordset(p_request->'fields') AS (i text, f text)) WITH ORDINALITY AS q(i, f, k)
  CROSS JOIN LATERAL (SELECT * FROM incident_field WHERE incident_id = q.i AND field = q.f LIMIT 1) f;

  SELECT json_agg(json_build_object('size', q.size, 'leaf', encode(e.leaf_hash, 'hex')))
  INTO v_leaves
  FROM (SELECT x::bigint AS size FROM json_array_elements_text(p_request->'remembered') AS x) q
  CROSS JOIN LATERAL (
    SELECT n.leaf_hash FROM ledger_entry n WHERE n.feed_id = p_feed AND n.position = q.size - 1 LIMIT 1
  ) e;

  RETURN json_build_object(
    'term', head.term, 'size', head.size, 'recordedAt', to_micros(v_now),
    'policy', (SELECT json_build_object('version', p.version, 'windowSeconds', p.window_seconds,
                 'maxEntries', p.max_entries, 'ordering', p.ordering, 'contiguous', p.contiguous,
                 'maxSequenceJump', p.max_sequence_jump::text)
               FROM policy_version p WHERE p.feed_id = p_feed AND p.version = head.policy_version),
    'contract', (SELECT encode(c.digest, 'hex')
                 FROM feed_contract c WHERE c.feed_id = p_feed AND c.version = head.contract_version),
    'heads', coalesce(v_heads, '[]'), 'claims', v_claims,
    'fields', v_fields, 'leaves', coalesce(v_leaves, '[]'));
END $$;

-- Stores the bytes of deliveries, in the transaction that locked the head: p_payloads [{d, b, n}], digest (hex), bytes
-- (base64; null where they are too many), size. They are stored whatever is decided about them, so meanwhile.
CREATE FUNCTION "store_payloads"(p_feed INTEGER, p_payloads JSON) RETURNS VOID LANGUAGE sql SET jit = off AS $$
  INSERT INTO payload (feed_id, bytes_digest, bytes, size_bytes)
  SELECT p_feed, decode(q.d, 'hex'), decode(q.b, 'base64'), q.n
  FROM json_to_recordset(p_payloads) AS q(d text, b text, n integer)
  -- Bytes that were larger than the limit of then may be within that of now.
  ON CONFLICT (feed_id, bytes_digest) DO UPDATE SET bytes = excluded.bytes
    WHERE payload.bytes IS NULL AND payload.purged_at IS NULL AND excluded.bytes IS NOT NULL;
$$;

-- Writes a decided batch (design section 5, steps 5 and 6), in the transaction that read it.
--   p_batch:   {id, term, termReason, first, recordedAt, received, deliveries, policyVersion, contractDigest,
--               heads: [{v, a, s, e, r, m, h}], fields: [{...}], members: [{...}]}
--   p_entries: one object an entry, in order of position; names are short because there are many, and what is null or
--     false is left out;
--     cd (claim digest) and ak (applied key) are 'same' where they are pd (payload digest) and k (key)
--   p_outbox:  [{p, t, k, b}]; apart, as the keys of read_batch are
-- Raises 40001 where the head is not where it was read: only a writer that did not lock it could cause that.
CREATE FUNCTION "write_batch"(p_feed INTEGER, p_batch JSON, p_entries JSON, p_outbox JSON) RETURNS INTEGER
LANGUAGE plpgsql SET jit = off AS $$
DECLARE
  v_first BIGINT := (p_batch->>'first')::bigint;
  v_term INTEGER := (p_batch->>'term')::integer;
  v_batch UUID := (p_batch->>'id')::uuid;
  v_recorded TIMESTAMPTZ := from_micros((p_batch->>'recordedAt')::bigint);
  v_policy INTEGER := (p_batch->>'policyVersion')::integer;
  v_contract BYTEA := decode(p_batch->>'contractDigest', 'hex');
  v_count INTEGER;
BEGIN
  WITH e AS MATERIALIZED (
    SELECT * FROM json_to_recordset(p_entries) AS e(
      p bigint, i integer, oc outcome, ti tier, re text, he boolean, la boolean, kv integer, k text, cd text, pd text,
      bd text, ag text, so text, ep text, sq numeric, ev text, inc text, og bigint, rs bigint, ac text, nt text,
      ak text, br text, tp text, qos smallint, dup boolean, rt boolean, oa timestamptz, lh text)
  ), applied AS (
    INSERT INTO applied_key (feed_id, key_version, key, position)
    SELECT p_feed, e.kv, decode(CASE e.ak WHEN 'same' THEN e.k ELSE e.ak END, 'hex'), e.p FROM e WHERE e.ak IS NOT NULL
  )
  INSERT INTO ledger_entry (
    feed_id, position, term, encoding_version, batch_id, item_index, outcome, tier, reason, held, late, key_version,
    key, claim_digest, payload_digest, bytes_digest, agency, source_id, epoch, sequence, event_id, incident_id,
    original, resolves, actor, note, policy_version, contract_digest, broker, topic, qos, dup, retained, recorded_at,
    occurred_at, leaf_hash)
  SELECT p_feed, e.p, v_term, 1, v_batch, e.i, e.oc, e.ti, e.re, e.he IS TRUE, e.la IS TRUE, e.kv,
    decode(e.k, 'hex'), decode(CASE e.cd WHEN 'same' THEN e.pd ELSE e.cd END, 'hex'), decode(e.pd, 'hex'),
    decode(e.bd, 'hex'), e.ag, e.so, e.ep, e.sq, e.ev, e.inc, e.og, e.rs, e.ac, e.nt, v_policy, v_contract, e.br, e.tp,
    e.qos, e.dup IS TRUE, e.rt IS TRUE, v_recorded, e.oa, decode(e.lh, 'hex')
  FROM e ORDER BY e.p;
  GET DIAGNOSTICS v_count = ROW_COUNT;

  INSERT INTO batch (id, feed_id, term, first_position, entries, received, deliveries, recorded_at)
  VALUES (v_batch, p_feed, v_term, v_first, v_count, (p_batch->>'received')::integer,
          (p_batch->>'deliveries')::integer, v_recorded);

  INSERT INTO source_head AS h (feed_id, key_version, agency, source_id, epoch, rank, mark, highest)
  SELECT p_feed, q.v, q.a, q.s, q.e, q.r, q.m, q.h
  FROM json_to_recordset(p_batch->'heads') AS q(v integer, a text, s text, e text, r numeric, m numeric, h numeric)
  ON CONFLICT (feed_id, key_version, agency, source_id, epoch)
    DO UPDATE SET rank = excluded.rank, mark = excluded.mark, highest = excluded.highest;

  INSERT INTO incident_field (incident_id, field, value, feed_id, position, agency, source_id, epoch, rank, sequence)
  SELECT q.i, q.f, q.value, p_feed, q.p, q.a, q.s, q.e, q.r, q.n
  FROM json_to_recordset(p_batch->'fields')
    AS q(i text, f text, value text, p bigint, a text, s text, e text, r numeric, n numeric)
  ON CONFLICT (incident_id, field) DO UPDATE SET value = excluded.value, feed_id = excluded.feed_id,
    position = excluded.position, agency = excluded.agency, source_id = excluded.source_id, epoch = excluded.epoch,
    rank = excluded.rank, sequence = excluded.sequence;

  INSERT INTO incident_member (incident_id, field, value_digest, value, feed_id, position)
  SELECT q.i, q.f, decode(q.d, 'hex'), q.value, p_feed, q.p
  FROM json_to_recordset(p_batch->'members') AS q(i text, f text, d text, value text, p bigint)
  ON CONFLICT DO NOTHING;

  INSERT INTO outbox (feed_id, position, term, topic, key, payload)
  SELECT p_feed, q.p, v_term, q.t, decode(q.k, 'hex'), decode(q.b, 'base64')
  FROM json_to_recordset(p_outbox) AS q(p bigint, t text, k text, b text);

  UPDATE feed_head SET size = v_first + v_count, term = v_term, recorded_at = v_recorded
  WHERE feed_id = p_feed AND size = v_first;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the head of feed % is not at %', p_feed, v_first USING ERRCODE = 'serialization_failure';
  END IF;

  IF p_batch->>'termReason' IS NOT NULL THEN
    PERFORM append_admin_event('TERM_OPENED', p_feed, 'replay-ledger', p_batch->>'termReason');
  END IF;
  RETURN v_count;
END $$;
