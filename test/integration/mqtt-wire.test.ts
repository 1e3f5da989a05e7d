import { createServer, type Socket } from 'node:net';
import { onCleanup } from '../support/cleanup';
import { PACKET, startObserver, wireLog, type WireLog } from '../support/mqtt-client';
import { sleep, until } from '../support/wait';

/**
 * What brokers do on the wire that none of those at hand can be made to do on demand. The peer is no broker: it says
 * CONNACK with what is given in the same chunk, SUBACK, and then only what the test writes.
 */
interface Peer {
  readonly url: string;
  readonly sockets: readonly Socket[];
  /** Connections that ended otherwise than by both sides' closing. */
  readonly errors: readonly Error[];
  readonly wire: WireLog;
}

const CONNACK = { 4: [0x20, 2, 1, 0], 5: [0x20, 3, 1, 0, 0] } as const;

/** PUBLISH at QoS 1 on topic `t`. */
function publish(
  version: 4 | 5,
  packetId: number,
  payload: string,
  options: { dup?: boolean; alias?: number } = {},
): Buffer {
  const alias = options.alias === undefined ? [0] : [3, 0x23, 0, options.alias];
  const body = [0, 1, 0x74, 0, packetId, ...(version === 5 ? alias : []), ...Buffer.from(payload)];
  return Buffer.from([options.dup ? 0x3a : 0x32, body.length, ...body]);
}

async function startPeer(version: 4 | 5, withConnack: Buffer = Buffer.alloc(0)): Promise<Peer> {
  const sockets: Socket[] = [];
  const errors: Error[] = [];
  const wire = wireLog();
  const server = createServer((socket) => {
    const id = sockets.push(socket);
    let answered = 0;
    socket.on('error', (error) => errors.push(error));
    socket.on('data', (chunk) => {
      wire.hook(chunk, { id, cut: () => socket.destroy() });
      const packets = wire.packets.filter(({ connection }) => connection === id);
      for (const { type, body } of packets.slice(answered)) {
        if (type === PACKET.CONNECT) socket.write(Buffer.concat([Buffer.from(CONNACK[version]), withConnack]));
        const suback = [...body.subarray(0, 2), ...(version === 5 ? [0] : []), 1];
        if (type === PACKET.SUBSCRIBE) socket.write(Buffer.from([0x90, suback.length, ...suback]));
        if (type === PACKET.DISCONNECT) socket.end();
      }
      answered = packets.length;
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onCleanup(async () => {
    sockets.forEach((socket) => socket.destroy());
    await new Promise((resolve) => server.close(resolve));
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('not listening on TCP');
  return { url: `mqtt://127.0.0.1:${address.port}`, sockets, errors, wire };
}

describe.each([4, 5] as const)('on the wire, MQTT version %i', (protocolVersion) => {
  it('delivers messages of a resumed session that come in one chunk with the CONNACK', async () => {
    const peer = await startPeer(
      protocolVersion,
      Buffer.concat([publish(protocolVersion, 1, 'a'), publish(protocolVersion, 2, 'b')]),
    );
    const observer = startObserver({ urls: [peer.url], protocolVersion });
    await observer.received(2);
    expect(observer.subscriber.acknowledge(observer.deliveries)).toBe(2);
    await until(() => peer.wire.acknowledged().length === 2, { what: 'the PUBACKs' });
    expect(peer.wire.acknowledged()).toEqual([1, 2]);
    await observer.subscribed();
    await observer.subscriber.close();
  });

  it('C005: a packet that is sent again on the same connection is acknowledged when its last copy is decided', async () => {
    const peer = await startPeer(protocolVersion);
    const observer = startObserver({ urls: [peer.url], protocolVersion });
    await observer.subscribed();
    peer.sockets[0]?.write(publish(protocolVersion, 7, 'a'));
    await observer.received(1);
    peer.sockets[0]?.write(publish(protocolVersion, 7, 'a', { dup: true }));
    peer.sockets[0]?.write(publish(protocolVersion, 8, 'b'));
    await observer.received(3);
    expect(observer.deliveries.map(({ dup }) => dup)).toEqual([false, true, false]);
    const [first, second, third] = observer.deliveries.map((delivery) => [delivery]);
    expect(observer.subscriber.acknowledge(first ?? [])).toBe(0);
    expect(observer.subscriber.acknowledge(third ?? [])).toBe(1);
    expect(observer.subscriber.acknowledge(second ?? [])).toBe(1);
    await until(() => peer.wire.acknowledged().length === 2, { what: 'the PUBACKs' });
    expect(peer.wire.acknowledged()).toEqual([8, 7]);

    // Free again, the id names another message.
    peer.sockets[0]?.write(publish(protocolVersion, 7, 'c'));
    await observer.received(4);
    expect(observer.subscriber.acknowledge(observer.deliveries)).toBe(1);
    await until(() => peer.wire.acknowledged().length === 3, { what: 'the PUBACK' });
    expect(peer.wire.acknowledged()).toEqual([8, 7, 7]);
    await observer.subscriber.close();
  });

  it('breaks the connection off at a malformed packet instead of reading on in the middle of the next', async () => {
    const peer = await startPeer(protocolVersion);
    const observer = startObserver({ urls: [peer.url], protocolVersion });
    await observer.subscribed();
    peer.sockets[0]?.write(Buffer.from([0x36, 4, 0, 1, 0x74, 0])); // QoS 3
    await observer.subscribed(2);
    expect(observer.eventsOf('disconnected')[0]?.reason).toMatch(/qos/i);
    await observer.subscriber.close();
  });

  it('takes whatever comes for a sign of life, and keeps pinging, while no PINGRESP does', async () => {
    const peer = await startPeer(protocolVersion);
    const observer = startObserver({ urls: [peer.url], protocolVersion, keepaliveSeconds: 1 });
    await observer.subscribed();
    for (let packetId = 1; packetId <= 40; packetId += 1) {
      peer.sockets[0]?.write(publish(protocolVersion, packetId, 'a'));
      await sleep(100);
    }
    expect(observer.events.map(({ type }) => type)).toEqual(['connected', 'subscribed']);
    expect(peer.wire.count(PACKET.PINGREQ)).toBeGreaterThanOrEqual(4);
    // And silence is none.
    await until(() => observer.eventsOf('disconnected').length > 0, { what: 'the end of a silent connection' });
    expect(observer.eventsOf('disconnected')[0]?.reason).toBe('Keepalive timeout');
    await observer.subscriber.close();
  });

  it('closes without a reset, which could overtake the last acknowledgements, also with much left unread', async () => {
    const peer = await startPeer(protocolVersion);
    const observer = startObserver({ urls: [peer.url], protocolVersion });
    observer.wantMore = () => false;
    await observer.subscribed();
    // More than the kernel keeps for both ends, so that the peer has not written all of it when we go.
    const message = publish(protocolVersion, 1, 'x'.repeat(90));
    peer.sockets[0]?.write(Buffer.alloc(200_000 * message.length, message));
    await observer.received(1);
    expect(observer.subscriber.acknowledge(observer.deliveries)).toBe(1);
    await observer.subscriber.close();
    expect(observer.deliveries).toHaveLength(1);
    await until(() => peer.sockets[0]?.closed, { what: 'the end of the connection' });
    expect(peer.errors).toEqual([]);
    expect(peer.wire.packets.map(({ type }) => type).slice(-2)).toEqual([PACKET.PUBACK, PACKET.DISCONNECT]);
  });
});

it('lets no broker use a topic alias, which would leave a delivery without its topic', async () => {
  const peer = await startPeer(5);
  const observer = startObserver({ urls: [peer.url], protocolVersion: 5 });
  await observer.subscribed();
  peer.sockets[0]?.write(publish(5, 1, 'a', { alias: 1 }));
  await observer.subscribed(2);
  expect(observer.deliveries).toEqual([]);
  expect(observer.eventsOf('disconnected')[0]?.reason).toMatch(/topic alias/i);
  await observer.subscriber.close();
});
