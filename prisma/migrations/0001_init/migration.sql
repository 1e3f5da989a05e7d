-- Enums
CREATE TYPE "outcome" AS ENUM (
  'IGNORED', 'MALFORMED_REJECTED', 'DUPLICATE_SUPPRESSED', 'KEY_CONFLICT', 'STALE_OUT_OF_ORDER', 'EFFECT_FAILED',
  'APPLIED', 'RELEASED', 'DISMISSED');
CREATE TYPE "tier" AS ENUM ('WINDOW', 'LEDGER', 'HIGH_WATER_MARK', 'NONE');
CREATE TYPE "policy_origin" AS ENUM ('CONTRACT', 'API');

-- Feeds, their contracts and policies
CREATE TABLE "feed" (
  "id" SERIAL NOT NULL,
  "name" TEXT NOT NULL,
  "created_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  "retired_at" TIMESTAMPTZ(6),
  CONSTRAINT "feed_pkey" PRIMARY KEY ("id")
);
CREATE UNIQUE INDEX "feed_name_key" ON "feed"("name");

CREATE TABLE "feed_head" (
  "feed_id" INTEGER NOT NULL,
  "term" INTEGER NOT NULL DEFAULT 1,
  "size" BIGINT NOT NULL DEFAULT 0,
  "recorded_at" TIMESTAMPTZ(6) NOT NULL,
  "contract_version" INTEGER NOT NULL,
  "policy_version" INTEGER NOT NULL,
  CONSTRAINT "feed_head_pkey" PRIMARY KEY ("feed_id")
);

CREATE TABLE "feed_contract" (
  "feed_id" INTEGER NOT NULL,
  "version" INTEGER NOT NULL,
  "digest" BYTEA NOT NULL,
  "file" TEXT NOT NULL,
  "source_text" TEXT NOT NULL,
  "commit" TEXT,
  "first_position" BIGINT NOT NULL,
  "actor" TEXT NOT NULL,
  "recorded_at" TIMESTAMPTZ(6) NOT NULL,
  CONSTRAINT "feed_contract_pkey" PRIMARY KEY ("feed_id", "version")
);
CREATE UNIQUE INDEX "feed_contract_feed_id_digest_key" ON "feed_contract"("feed_id", "digest");

CREATE TABLE "policy_version" (
  "feed_id" INTEGER NOT NULL,
  "version" INTEGER NOT NULL,
  "first_position" BIGINT NOT NULL,
  "window_seconds" INTEGER NOT NULL,
  "max_entries" INTEGER NOT NULL,
  "ordering" TEXT NOT NULL,
  "contiguous" BOOLEAN NOT NULL,
  "max_sequence_jump" DECIMAL(38,0),
  "origin" "policy_origin" NOT NULL,
  "contract_digest" BYTEA,
  "commit" TEXT,
  "actor" TEXT NOT NULL,
  "reason" TEXT NOT NULL,
  "recorded_at" TIMESTAMPTZ(6) NOT NULL,
  CONSTRAINT "policy_version_pkey" PRIMARY KEY ("feed_id", "version")
);

-- Sources
CREATE TABLE "source_head" (
  "feed_id" INTEGER NOT NULL,
  "key_version" INTEGER NOT NULL,
  "agency" TEXT NOT NULL,
  "source_id" TEXT NOT NULL,
  "epoch" TEXT NOT NULL,
  "rank" DECIMAL(38,0),
  "mark" DECIMAL(38,0),
  "highest" DECIMAL(38,0),
  CONSTRAINT "source_head_pkey" PRIMARY KEY ("feed_id", "key_version", "agency", "source_id", "epoch")
);

-- The epoch in force of a source, among any number that it left.
CREATE INDEX "source_head_rank" ON "source_head"("feed_id", "key_version", "agency", "source_id", "rank" DESC)
  WHERE "rank" IS NOT NULL;

-- The ledger
CREATE TABLE "ledger_entry" (
  "feed_id" INTEGER NOT NULL,
  "position" BIGINT NOT NULL,
  "term" INTEGER NOT NULL,
  "encoding_version" SMALLINT NOT NULL,
  "batch_id" UUID NOT NULL,
  "item_index" INTEGER,
  "outcome" "outcome" NOT NULL,
  "tier" "tier" NOT NULL,
  "reason" TEXT NOT NULL,
  "held" BOOLEAN NOT NULL,
  "late" BOOLEAN NOT NULL,
  "key_version" INTEGER,
  "key" BYTEA,
  "claim_digest" BYTEA,
  "payload_digest" BYTEA NOT NULL,
  "bytes_digest" BYTEA NOT NULL,
  "agency" TEXT,
  "source_id" TEXT,
  "epoch" TEXT,
  "sequence" DECIMAL(38,0),
  "event_id" TEXT,
  "incident_id" TEXT,
  "original" BIGINT,
  "resolves" BIGINT,
  "actor" TEXT,
  "note" TEXT,
  "policy_version" INTEGER NOT NULL,
  "contract_digest" BYTEA NOT NULL,
  "broker" TEXT NOT NULL,
  "topic" TEXT NOT NULL,
  "qos" SMALLINT NOT NULL,
  "dup" BOOLEAN NOT NULL,
  "retained" BOOLEAN NOT NULL,
  "recorded_at" TIMESTAMPTZ(6) NOT NULL,
  "occurred_at" TIMESTAMPTZ(6),
  "leaf_hash" BYTEA NOT NULL,
  CONSTRAINT "ledger_entry_pkey" PRIMARY KEY ("feed_id", "position")
);
-- A claim: the one entry that decided this key with this digest first.
CREATE UNIQUE INDEX "ledger_entry_claim" ON "ledger_entry"("feed_id", "key_version", "key", "claim_digest")
  WHERE "claim_digest" IS NOT NULL;
-- A held entry is resolved once.
CREATE UNIQUE INDEX "ledger_entry_resolves" ON "ledger_entry"("feed_id", "resolves") WHERE "resolves" IS NOT NULL;
CREATE INDEX "ledger_entry_original" ON "ledger_entry"("feed_id", "original") WHERE "original" IS NOT NULL;
CREATE INDEX "ledger_entry_held" ON "ledger_entry"("feed_id", "position") WHERE "held";
CREATE INDEX "ledger_entry_not_applied" ON "ledger_entry"("feed_id", "outcome", "position") WHERE "outcome" <> 'APPLIED';
CREATE INDEX "ledger_entry_incident" ON "ledger_entry"("feed_id", "incident_id", "position");
CREATE INDEX "ledger_entry_source" ON "ledger_entry"("feed_id", "agency", "source_id", "position");

CREATE TABLE "applied_key" (
  "feed_id" INTEGER NOT NULL,
  "key_version" INTEGER NOT NULL,
  "key" BYTEA NOT NULL,
  "position" BIGINT NOT NULL,
  CONSTRAINT "applied_key_pkey" PRIMARY KEY ("feed_id", "key_version", "key")
);

CREATE TABLE "payload" (
  "feed_id" INTEGER NOT NULL,
  "bytes_digest" BYTEA NOT NULL,
  "bytes" BYTEA,
  "size_bytes" INTEGER NOT NULL,
  "purged_at" TIMESTAMPTZ(6),
  CONSTRAINT "payload_pkey" PRIMARY KEY ("feed_id", "bytes_digest")
);

CREATE TABLE "batch" (
  "id" UUID NOT NULL,
  "feed_id" INTEGER NOT NULL,
  "term" INTEGER NOT NULL,
  "first_position" BIGINT NOT NULL,
  "entries" INTEGER NOT NULL,
  "received" INTEGER NOT NULL,
  "deliveries" INTEGER NOT NULL,
  "recorded_at" TIMESTAMPTZ(6) NOT NULL,
  CONSTRAINT "batch_pkey" PRIMARY KEY ("id")
);
CREATE INDEX "batch_feed_id_recorded_at_idx" ON "batch"("feed_id", "recorded_at");

-- Effects
CREATE TABLE "incident" (
  -- Byte order is the lock order of incidents.
  "id" TEXT COLLATE "C" NOT NULL,
  "created_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  CONSTRAINT "incident_pkey" PRIMARY KEY ("id")
);

CREATE TABLE "incident_field" (
  "incident_id" TEXT COLLATE "C" NOT NULL,
  "field" TEXT COLLATE "C" NOT NULL,
  "value" TEXT,
  "feed_id" INTEGER NOT NULL,
  "position" BIGINT NOT NULL,
  "agency" TEXT NOT NULL,
  "source_id" TEXT NOT NULL,
  "epoch" TEXT,
  "rank" DECIMAL(38,0),
  "sequence" DECIMAL(38,0),
  CONSTRAINT "incident_field_pkey" PRIMARY KEY ("incident_id", "field")
);

CREATE TABLE "incident_member" (
  "incident_id" TEXT COLLATE "C" NOT NULL,
  "field" TEXT COLLATE "C" NOT NULL,
  "value_digest" BYTEA NOT NULL,
  "value" TEXT NOT NULL,
  "feed_id" INTEGER NOT NULL,
  "position" BIGINT NOT NULL,
  CONSTRAINT "incident_member_pkey" PRIMARY KEY ("incident_id", "field", "value_digest")
);

CREATE TABLE "outbox" (
  "feed_id" INTEGER NOT NULL,
  "position" BIGINT NOT NULL,
  "term" INTEGER NOT NULL,
  "topic" TEXT NOT NULL,
  "key" BYTEA NOT NULL,
  "payload" BYTEA NOT NULL,
  "sent_at" TIMESTAMPTZ(6),
  CONSTRAINT "outbox_pkey" PRIMARY KEY ("feed_id", "position")
);
CREATE INDEX "outbox_unsent" ON "outbox"("feed_id", "position") WHERE "sent_at" IS NULL;

-- Administration
CREATE TABLE "admin_head" (
  "id" INTEGER NOT NULL,
  "size" BIGINT NOT NULL DEFAULT 0,
  CONSTRAINT "admin_head_pkey" PRIMARY KEY ("id")
);
INSERT INTO "admin_head" ("id", "size") VALUES (1, 0);

CREATE TABLE "admin_event" (
  "position" BIGINT NOT NULL,
  "kind" TEXT NOT NULL,
  "feed_id" INTEGER,
  "actor" TEXT NOT NULL,
  "detail" TEXT NOT NULL,
  "recorded_at" TIMESTAMPTZ(6) NOT NULL,
  CONSTRAINT "admin_event_pkey" PRIMARY KEY ("position")
);

CREATE TABLE "lease" (
  "name" TEXT NOT NULL,
  "owner" TEXT NOT NULL,
  "expires_at" TIMESTAMPTZ(6) NOT NULL,
  CONSTRAINT "lease_pkey" PRIMARY KEY ("name")
);

CREATE TABLE "mqtt_session" (
  "name" TEXT NOT NULL,
  "established_at" TIMESTAMPTZ(6) NOT NULL,
  CONSTRAINT "mqtt_session_pkey" PRIMARY KEY ("name")
);

-- What was decided stays as it was decided.
CREATE FUNCTION "refuse_change"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% on % is refused: its rows are immutable', TG_OP, TG_TABLE_NAME
    USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER "immutable" BEFORE UPDATE OR DELETE OR TRUNCATE ON "ledger_entry"
  FOR EACH STATEMENT EXECUTE FUNCTION "refuse_change"();
CREATE TRIGGER "immutable" BEFORE UPDATE OR DELETE OR TRUNCATE ON "policy_version"
  FOR EACH STATEMENT EXECUTE FUNCTION "refuse_change"();
CREATE TRIGGER "immutable" BEFORE UPDATE OR DELETE OR TRUNCATE ON "admin_event"
  FOR EACH STATEMENT EXECUTE FUNCTION "refuse_change"();
CREATE TRIGGER "immutable" BEFORE UPDATE OR DELETE OR TRUNCATE ON "feed_contract"
  FOR EACH STATEMENT EXECUTE FUNCTION "refuse_change"();

-- Microseconds since 1970, exact.
CREATE FUNCTION "to_micros"(t TIMESTAMPTZ) RETURNS BIGINT LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
  $$ SELECT (extract(epoch FROM t) * 1000000)::bigint $$;
CREATE FUNCTION "from_micros"(m BIGINT) RETURNS TIMESTAMPTZ LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
  $$ SELECT timestamptz '1970-01-01 00:00:00+00' + make_interval(secs => m / 1000000)
            + (m % 1000000) * interval '1 microsecond' $$;

-- Appends an administrative event. The administrative head is locked last (feed head, incidents, administrative head).
CREATE FUNCTION "append_admin_event"(p_kind TEXT, p_feed_id INTEGER, p_actor TEXT, p_detail TEXT) RETURNS BIGINT
LANGUAGE plpgsql AS $$
DECLARE
  next_position BIGINT;
BEGIN
  UPDATE admin_head SET size = size + 1 WHERE id = 1 RETURNING size - 1 INTO STRICT next_position;
  INSERT INTO admin_event (position, kind, feed_id, actor, detail, recorded_at)
  VALUES (next_position, p_kind, p_feed_id, p_actor, p_detail, clock_timestamp());
  RETURN next_position;
END $$;

-- Reads everything a batch is decided from, with the head and the incidents locked (design section 5, steps 2 and 3).
--   p_request: {feed, hintTerm, incidents: [id], fields: [{i, f}], remembered: [size], sources: [{v, a, s, e}]}
--   p_keys:    [{v, k, d, a, s, e, n, p}]; apart, because every -> and ->> reads its document from the start
--     v key version, k key (hex), d claim digest (hex), a agency, s source, e epoch or '', n sequence or null,
--     p position where the window saw the key, or null; i incident, f field.
-- Answers {term, size, recordedAt, policy, contract, heads, claims, fields, leaves}; times are microseconds as text.
-- Tables are reached by LATERAL look-ups with a LIMIT, which the planner runs one by one through their index, and never
-- by scanning, nor by sorting what an index has in order: a plan made while the ledger was small is still right when it
-- is large.
CREATE FUNCTION "read_batch"(p_request JSON, p_keys JSON) RETURNS JSON LANGUAGE plpgsql
SET enable_seqscan = off SET enable_sort = off AS $$
DECLARE
  v_feed INTEGER := (p_request->>'feed')::integer;
  v_hint_term INTEGER := (p_request->>'hintTerm')::integer;
  head feed_head%ROWTYPE;
  v_now TIMESTAMPTZ;
  v_heads JSON;
  v_claims JSON;
  v_fields JSON;
  v_leaves JSON;
BEGIN
  SELECT * INTO STRICT head FROM feed_head WHERE feed_id = v_feed FOR UPDATE;
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
    WHERE n.feed_id = v_feed AND n.key_version = q.v AND n.agency = q.a AND n.source_id = q.s AND n.epoch = q.e
    UNION
    (SELECT * FROM source_head c
     WHERE c.feed_id = v_feed AND c.key_version = q.v AND c.agency = q.a AND c.source_id = q.s AND c.rank IS NOT NULL
     ORDER BY c.rank DESC LIMIT 1)
  ) h;

  WITH wanted AS MATERIALIZED (
    SELECT q.v, decode(q.k, 'hex') AS k, decode(q.d, 'hex') AS d, q.p, hit.recorded_at
    FROM json_to_recordset(p_keys) AS q(v integer, k text, d text, a text, s text, e text, n numeric, p bigint)
    LEFT JOIN LATERAL (
      SELECT h.highest FROM source_head h
      WHERE h.feed_id = v_feed AND h.key_version = q.v AND h.agency = q.a AND h.source_id = q.s AND h.epoch = q.e
      LIMIT 1
    ) head_of ON q.n IS NOT NULL
    LEFT JOIN LATERAL (
      SELECT e.recorded_at FROM ledger_entry e
      WHERE e.feed_id = v_feed AND e.position = q.p
        AND e.key_version = q.v AND e.key = decode(q.k, 'hex') AND e.claim_digest = decode(q.d, 'hex')
      LIMIT 1
    ) hit ON q.p IS NOT NULL AND head.term = v_hint_term
    -- Above the highest sequence that was ever decided there is nothing to find.
    WHERE q.n IS NULL OR q.n <= head_of.highest
  ), proven AS MATERIALIZED (
    -- The claim of key and digest: where the window saw it, or by its index.
    SELECT w.v, w.k, w.d, w.p AS position, w.recorded_at FROM wanted w WHERE w.recorded_at IS NOT NULL
    UNION ALL
    SELECT w.v, w.k, w.d, c.position, c.recorded_at
    FROM wanted w
    LEFT JOIN LATERAL (
      SELECT e.position, e.recorded_at FROM ledger_entry e
      WHERE e.feed_id = v_feed AND e.key_version = w.v AND e.key = w.k AND e.claim_digest = w.d
      LIMIT 1
    ) c ON true
    WHERE w.recorded_at IS NULL
  ), found AS (
    SELECT p.v, p.k, p.d, p.position, p.recorded_at FROM proven p WHERE p.position IS NOT NULL
    UNION
    -- Where there is none, the first claim of the key. A key that is stuck has any number of others, all of them
    -- conflicts that name the first; so whichever the index gives leads to it.
    SELECT w.v, w.k, c.claim_digest, c.position, c.recorded_at
    FROM (SELECT DISTINCT v, k FROM proven WHERE position IS NULL) w
    CROSS JOIN LATERAL (
      SELECT CASE WHEN e.reason = 'same_key_other_digest' THEN e.original ELSE e.position END AS first
      FROM ledger_entry e
      WHERE e.feed_id = v_feed AND e.key_version = w.v AND e.key = w.k AND e.claim_digest IS NOT NULL
      LIMIT 1
    ) any_claim
    CROSS JOIN LATERAL (
      SELECT e.claim_digest, e.position, e.recorded_at FROM ledger_entry e
      WHERE e.feed_id = v_feed AND e.position = any_claim.first
      LIMIT 1
    ) c
  )
  SELECT json_agg(json_build_object('v', v, 'k', encode(k, 'hex'), 'd', encode(d, 'hex'), 'p', position,
                                    'r', to_micros(recorded_at)::text) ORDER BY position)
  INTO v_claims FROM found;

  -- Of a value only its number is ever needed; what is none goes as an empty text, for there may be much of it.
  SELECT json_agg(json_build_object('i', f.incident_id, 'f', f.field, 'feed', f.feed_id,
                                    'value', CASE WHEN left(f.value, 1) IN ('"', '{', '[') THEN '""' ELSE f.value END,
                                    'a', f.agency, 's', f.source_id, 'e', f.epoch, 'r', f.rank::text, 'n', f.sequence::text))
  INTO v_fields
  FROM json_to_recordset(p_request->'fields') AS q(i text, f text)
  CROSS JOIN LATERAL (SELECT * FROM incident_field WHERE incident_id = q.i AND field = q.f LIMIT 1) f;

  SELECT json_agg(json_build_object('size', q.size, 'leaf', encode(e.leaf_hash, 'hex')))
  INTO v_leaves
  FROM (SELECT x::bigint AS size FROM json_array_elements_text(p_request->'remembered') AS x) q
  CROSS JOIN LATERAL (
    SELECT n.leaf_hash FROM ledger_entry n WHERE n.feed_id = v_feed AND n.position = q.size - 1 LIMIT 1
  ) e;

  RETURN json_build_object(
    'term', head.term, 'size', head.size, 'recordedAt', to_micros(v_now)::text,
    'policy', (SELECT json_build_object('version', p.version, 'windowSeconds', p.window_seconds,
                 'maxEntries', p.max_entries, 'ordering', p.ordering, 'contiguous', p.contiguous,
                 'maxSequenceJump', p.max_sequence_jump::text)
               FROM policy_version p WHERE p.feed_id = v_feed AND p.version = head.policy_version),
    'contract', (SELECT encode(c.digest, 'hex')
                 FROM feed_contract c WHERE c.feed_id = v_feed AND c.version = head.contract_version),
    'heads', coalesce(v_heads, '[]'), 'claims', coalesce(v_claims, '[]'),
    'fields', coalesce(v_fields, '[]'), 'leaves', coalesce(v_leaves, '[]'));
END $$;

-- Writes a decided batch (design section 5, steps 5 and 6), in the transaction that read it.
--   p_batch:    {id, feed, term, termReason, first, recordedAt, received, deliveries, policyVersion, contractDigest,
--                heads: [{v, a, s, e, r, m, h}], fields: [{...}], members: [{...}]}
--   p_entries:  one object an entry, in order of position; names are short because there are many
--   p_payloads: [{d, b, n}], p_outbox: [{p, t, k, b}]; apart, as the keys of read_batch are
-- Raises 40001 where the head is not where it was read: only a writer that did not lock it could cause that.
CREATE FUNCTION "write_batch"(p_batch JSON, p_entries JSON, p_payloads JSON, p_outbox JSON) RETURNS INTEGER
LANGUAGE plpgsql AS $$
DECLARE
  v_feed INTEGER := (p_batch->>'feed')::integer;
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
  ), entries AS (
    INSERT INTO ledger_entry (
      feed_id, position, term, encoding_version, batch_id, item_index, outcome, tier, reason, held, late, key_version,
      key, claim_digest, payload_digest, bytes_digest, agency, source_id, epoch, sequence, event_id, incident_id,
      original, resolves, actor, note, policy_version, contract_digest, broker, topic, qos, dup, retained, recorded_at,
      occurred_at, leaf_hash)
    SELECT v_feed, e.p, v_term, 1, v_batch, e.i, e.oc, e.ti, e.re, e.he, e.la, e.kv,
      decode(e.k, 'hex'), decode(e.cd, 'hex'), decode(e.pd, 'hex'), decode(e.bd, 'hex'), e.ag, e.so, e.ep, e.sq, e.ev,
      e.inc, e.og, e.rs, e.ac, e.nt, v_policy, v_contract, e.br, e.tp, e.qos, e.dup, e.rt, v_recorded,
      e.oa, decode(e.lh, 'hex')
    FROM e ORDER BY e.p
    RETURNING 1
  ), applied AS (
    INSERT INTO applied_key (feed_id, key_version, key, position)
    SELECT v_feed, e.kv, decode(e.ak, 'hex'), e.p FROM e WHERE e.ak IS NOT NULL
    RETURNING 1
  )
  SELECT count(*) INTO v_count FROM entries;

  INSERT INTO batch (id, feed_id, term, first_position, entries, received, deliveries, recorded_at)
  VALUES (v_batch, v_feed, v_term, v_first, v_count, (p_batch->>'received')::integer,
          (p_batch->>'deliveries')::integer, v_recorded);

  INSERT INTO payload (feed_id, bytes_digest, bytes, size_bytes)
  SELECT v_feed, decode(q.d, 'hex'), decode(q.b, 'base64'), q.n
  FROM json_to_recordset(p_payloads) AS q(d text, b text, n integer)
  -- Bytes that were larger than the limit of then may be within that of now.
  ON CONFLICT (feed_id, bytes_digest) DO UPDATE SET bytes = excluded.bytes
    WHERE payload.bytes IS NULL AND payload.purged_at IS NULL AND excluded.bytes IS NOT NULL;

  INSERT INTO source_head AS h (feed_id, key_version, agency, source_id, epoch, rank, mark, highest)
  SELECT v_feed, q.v, q.a, q.s, q.e, q.r, q.m, q.h
  FROM json_to_recordset(p_batch->'heads') AS q(v integer, a text, s text, e text, r numeric, m numeric, h numeric)
  ON CONFLICT (feed_id, key_version, agency, source_id, epoch)
    DO UPDATE SET rank = excluded.rank, mark = excluded.mark, highest = excluded.highest;

  INSERT INTO incident_field (incident_id, field, value, feed_id, position, agency, source_id, epoch, rank, sequence)
  SELECT q.i, q.f, q.value, v_feed, q.p, q.a, q.s, q.e, q.r, q.n
  FROM json_to_recordset(p_batch->'fields')
    AS q(i text, f text, value text, p bigint, a text, s text, e text, r numeric, n numeric)
  ON CONFLICT (incident_id, field) DO UPDATE SET value = excluded.value, feed_id = excluded.feed_id,
    position = excluded.position, agency = excluded.agency, source_id = excluded.source_id, epoch = excluded.epoch,
    rank = excluded.rank, sequence = excluded.sequence;

  INSERT INTO incident_member (incident_id, field, value_digest, value, feed_id, position)
  SELECT q.i, q.f, decode(q.d, 'hex'), q.value, v_feed, q.p
  FROM json_to_recordset(p_batch->'members') AS q(i text, f text, d text, value text, p bigint)
  ON CONFLICT DO NOTHING;

  INSERT INTO outbox (feed_id, position, term, topic, key, payload)
  SELECT v_feed, q.p, v_term, q.t, decode(q.k, 'hex'), decode(q.b, 'base64')
  FROM json_to_recordset(p_outbox) AS q(p bigint, t text, k text, b text);

  UPDATE feed_head SET size = v_first + v_count, term = v_term, recorded_at = v_recorded
  WHERE feed_id = v_feed AND size = v_first;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the head of feed % is not at %', v_feed, v_first USING ERRCODE = 'serialization_failure';
  END IF;

  IF p_batch->>'termReason' IS NOT NULL THEN
    PERFORM append_admin_event('TERM_OPENED', v_feed, 'replay-ledger', p_batch->>'termReason');
  END IF;
  RETURN v_count;
END $$;
