/**
 * Takes the deliveries of one connection and writes their acknowledgements when they have been decided.
 *
 * How an acknowledgement is held in MQTT.js 5.16 (`lib/handlers/publish.js`): `handleMessage` is overridden on the
 * instance, and its callback gets an error. The handler then passes the error to the pump, which ignores it (nothing is
 * emitted, nothing stays in `outgoing` or in a store) and goes on to the next packet, and no PUBACK is written. The
 * callback is never called late with success: that PUBACK would go out on whatever connection the client has by then,
 * where the packet id may name another message. We write PUBACKs ourselves, to the connection they belong to.
 *
 * States, of which the pump knows only whether its callback came back:
 *   reading   every packet is offered, its callback called at once
 *   held      `offer` answered false: that packet's callback is kept, MQTT.js reads nothing more, PINGRESP included;
 *             left by `resume` or by the end of the connection, after which the callback is forgotten, never called
 *   stopped   `stop` was called: the next packet is not offered and its callback is kept for good; never left
 */
import type { IPublishPacket } from 'mqtt';
import type { DeliverySink, ReceivedDelivery } from './port';
import type { Connection } from './connection';
import { shortReason } from './errors';

/** Any error will do: only its being there counts. One for all, because a new one costs a stack trace per message. */
const HELD = new Error('acknowledgement held');

const PUBACK = 0x40;
/** First answer to a QoS 2 PUBLISH: after it the broker may forget the message, so it is our promise there. */
const PUBREC = 0x50;
/** Fixed header and packet id. Without reason code and properties it is valid under 3.1.1 and 5 alike. */
const ACKNOWLEDGEMENT_BYTES = 4;

const NO_PROPERTIES: ReceivedDelivery['userProperties'] = Object.freeze(Object.create(null) as Record<string, string>);

/** What `ReceivedDelivery.acknowledgement` is: one reception of a packet on one connection. */
export class PacketReceipt {
  /** A receipt counts once: its packet id may already name another message when it is presented again. */
  spent = false;

  constructor(
    readonly pump: PacketPump,
    readonly packetId: number,
    readonly answer: typeof PUBACK | typeof PUBREC,
  ) {}
}

export class PacketPump {
  private heldCallback: (() => void) | null = null;
  private stopped = false;
  private resumes = 0;
  private receivedSincePing = false;
  private readonly unacknowledged = new Map<number, number>();
  private keepAlive: NodeJS.Timeout | undefined;
  private qos2Packet: unknown = null;

  constructor(
    private readonly connection: Connection,
    private readonly sink: DeliverySink,
    private readonly broker: string,
  ) {
    const { client } = connection;
    client.handleMessage = (packet, callback) => this.receive(packet, () => callback(HELD));
    client.on('packetreceive', (packet) => {
      // We subscribe at QoS 1, but a session may still hold QoS 2 messages of a subscription made before us. MQTT.js
      // would answer PUBREC on arrival, and a crash before the commit would lose the message. Seen as QoS 1 it comes
      // straight to `handleMessage`; PUBREC is written after the commit, and MQTT.js answers the PUBREL by itself.
      if (packet.cmd !== 'publish' || packet.qos !== 2) return;
      this.qos2Packet = packet;
      packet.qos = 1;
    });
    client.on('connect', () => {
      // Not the value we asked for: under MQTT 5 the broker may have set another. 0 is no keep-alive.
      if (client.keepalive > 0) this.keepAlive = setInterval(() => this.ping(), (client.keepalive * 1_000) / 2);
    });
    void connection.closed.then(() => this.release());
  }

  /** Leaves `held`. */
  resume(): void {
    this.resumes += 1;
    if (this.stopped) return;
    const callback = this.heldCallback;
    this.heldCallback = null;
    callback?.();
  }

  /** Enters `stopped`. */
  stop(): void {
    this.stopped = true;
  }

  /**
   * Writes the acknowledgements in one piece, in the order given; none where the connection is gone.
   * A packet id that came several times (brokers that resend on one connection) is acknowledged with the last of its
   * receipts: the earlier ones would free the id while a copy of it is still undecided.
   *
   * @returns how many were written
   */
  acknowledge(receipts: readonly PacketReceipt[]): number {
    const packets = Buffer.allocUnsafe(receipts.length * ACKNOWLEDGEMENT_BYTES);
    let length = 0;
    for (const receipt of receipts) {
      if (receipt.spent) continue;
      receipt.spent = true;
      const others = (this.unacknowledged.get(receipt.packetId) ?? 1) - 1;
      if (others > 0) {
        this.unacknowledged.set(receipt.packetId, others);
        continue;
      }
      this.unacknowledged.delete(receipt.packetId);
      length = packets.writeUInt8(receipt.answer, length);
      length = packets.writeUInt8(2, length);
      length = packets.writeUInt16BE(receipt.packetId, length);
    }
    if (length === 0 || !this.connection.write(packets.subarray(0, length))) return 0;
    return length / ACKNOWLEDGEMENT_BYTES;
  }

  private receive(packet: IPublishPacket, next: () => void): void {
    this.receivedSincePing = true;
    if (this.stopped) {
      this.heldCallback = next;
      return;
    }
    const resumesBefore = this.resumes;
    let more: boolean;
    try {
      more = this.sink.offer(this.toDelivery(packet));
    } catch (error) {
      // Not taken, so it must not be passed over: the broker delivers it again on the next connection.
      this.connection.fail(`the sink failed: ${shortReason(error)}`);
      return;
    }
    // A `resume` from within `offer` counts as well, or the connection would stand still for ever.
    if (more || this.resumes !== resumesBefore) next();
    else this.heldCallback = next;
  }

  private toDelivery(packet: IPublishPacket): ReceivedDelivery {
    const isQos2 = packet === this.qos2Packet;
    this.qos2Packet = null;
    const userProperties = packet.properties?.userProperties;
    return {
      broker: this.broker,
      // The topic stands in the packet itself, because no Topic Alias Maximum is announced: aliases are not allowed.
      topic: packet.topic,
      payload: typeof packet.payload === 'string' ? Buffer.from(packet.payload) : packet.payload,
      qos: isQos2 ? 2 : packet.qos,
      dup: packet.dup,
      retained: packet.retain,
      // Without a prototype, so that a property named `__proto__` or `constructor` is a value like any other.
      userProperties: userProperties
        ? Object.assign(Object.create(null) as Record<string, string | string[]>, userProperties)
        : NO_PROPERTIES,
      receivedAtMs: Date.now(),
      acknowledgement: this.receiptFor(packet, isQos2),
    };
  }

  private receiptFor(packet: IPublishPacket, isQos2: boolean): PacketReceipt | null {
    if (packet.qos === 0 || packet.messageId === undefined) return null;
    this.unacknowledged.set(packet.messageId, (this.unacknowledged.get(packet.messageId) ?? 0) + 1);
    return new PacketReceipt(this, packet.messageId, isQos2 ? PUBREC : PUBACK);
  }

  /**
   * Every half keep-alive. MQTT.js takes only a PINGRESP for a sign of life and breaks off after one and a half
   * intervals without. While we are held it reads none; and in a long backlog that is drained slowly the PINGRESP
   * waits behind megabytes of messages. In both cases we ping by hand, so that the broker keeps us, and tell the
   * keep-alive that all is well. A broker that dies meanwhile is noticed by the failing writes.
   */
  private ping(): void {
    if (!this.connection.live) return;
    if (!this.heldCallback && !this.receivedSincePing) return;
    this.receivedSincePing = false;
    this.connection.client.sendPing();
    this.connection.client.reschedulePing(true);
  }

  private release(): void {
    clearInterval(this.keepAlive);
    this.heldCallback = null;
    this.unacknowledged.clear();
  }
}
