/**
 * What most teams would write: one message at a time, each in an interactive Prisma transaction of its own that checks
 * whether the key was processed, upserts the incident and inserts an audit row, and an acknowledgement after it.
 * On the product's tables, so that both write rows of the same kind.
 */
import { createHash, randomUUID } from 'node:crypto';
import { PrismaPg } from '@prisma/adapter-pg';
import { connect, type IPublishPacket } from 'mqtt';
import type * as ClientModule from '../../src/generated/prisma/client';
import { acceptedAt, sessionOptions } from '../broker-session';
import { type Measured, peakRssBytes, serveJob } from '../child';
import { built } from '../product';

export interface PerMessageJob {
  readonly url: string;
  readonly clientId: string;
  readonly messages: number;
  /** With the product's tables, and nothing else in it. */
  readonly databaseUrl: string;
}

interface CadMessage {
  readonly incident_id: string;
  readonly boot_id: string;
  readonly sequence: number;
  readonly sent: string;
  readonly type: string;
  readonly payload: { readonly unit?: string; readonly status?: string; readonly delta?: number };
}

const FEED_ID = 1;
const AGENCY = 'county-fire';

async function drain({ url, clientId, messages, databaseUrl }: PerMessageJob): Promise<Measured> {
  const { PrismaClient } = built<typeof ClientModule>('generated/prisma/client');
  const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: databaseUrl }) });
  await prisma.$connect();
  const client = connect(url, sessionOptions(clientId));
  let landed = 0;
  const last = new Promise<number>((resolve, reject) => {
    // MQTT.js acknowledges and reads the next one when the callback comes back.
    client.handleMessage = (packet, callback) => {
      land(prisma, packet, landed).then(() => {
        landed += 1;
        callback();
        if (landed === messages) resolve(performance.now());
      }, reject);
    };
  });
  const start = await acceptedAt(client);
  const end = await last;
  await client.endAsync();
  await prisma.$disconnect();
  return { messages, seconds: (end - start) / 1000, peakRssBytes: peakRssBytes() };
}

async function land(
  prisma: ClientModule.PrismaClient,
  { topic, payload, qos, dup, retain }: IPublishPacket,
  position: number,
) {
  const message = JSON.parse(payload.toString()) as CadMessage;
  const sourceId = topic.split('/')[1] ?? '';
  const key = sha256([AGENCY, sourceId, message.boot_id, message.sequence].join('|'));
  const digest = sha256(payload);
  await prisma.$transaction(async (tx) => {
    const where = { feedId_keyVersion_key: { feedId: FEED_ID, keyVersion: 1, key } };
    const processed = await tx.appliedKey.findUnique({ where });
    if (processed === null) {
      await tx.appliedKey.create({ data: { feedId: FEED_ID, keyVersion: 1, key, position } });
      const { incident_id: id } = message;
      await tx.incident.upsert({ where: { id }, create: { id }, update: {} });
      const { field, value } = change(message);
      await tx.incidentField.upsert({
        where: { incidentId_field: { incidentId: id, field } },
        create: { incidentId: id, field, value, feedId: FEED_ID, position, agency: AGENCY, sourceId },
        update: { value, position, agency: AGENCY, sourceId },
      });
    }
    await tx.ledgerEntry.create({
      data: {
        feedId: FEED_ID,
        position,
        term: 1,
        encodingVersion: 1,
        batchId: randomUUID(),
        outcome: processed === null ? 'APPLIED' : 'DUPLICATE_SUPPRESSED',
        tier: 'NONE',
        reason: 'audit',
        held: false,
        late: false,
        keyVersion: 1,
        key,
        payloadDigest: digest,
        bytesDigest: digest,
        agency: AGENCY,
        sourceId,
        epoch: message.boot_id,
        sequence: message.sequence,
        incidentId: message.incident_id,
        original: processed?.position ?? null,
        policyVersion: 1,
        contractDigest: digest,
        broker: 'default',
        topic,
        qos,
        dup,
        retained: retain,
        recordedAt: new Date(),
        occurredAt: new Date(message.sent),
        leafHash: digest,
      },
    });
  });
}

function change({ type, payload }: CadMessage): { readonly field: string; readonly value: string } {
  return { field: `${type}/${payload.unit ?? ''}`, value: JSON.stringify(payload.status ?? payload.delta ?? true) };
}

function sha256(data: string | Uint8Array): Uint8Array<ArrayBuffer> {
  return new Uint8Array(createHash('sha256').update(data).digest());
}

serveJob(drain);
