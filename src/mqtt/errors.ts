/**
 * What can go wrong between us and a broker, as codes. Code branches on `code`, never on the text.
 */

export type MqttErrorCode =
  /** No broker accepted us within the time given; the message was not sent. */
  | 'NOT_CONNECTED'
  /** The connection ended before the PUBACK: the message may or may not have arrived. */
  | 'CONNECTION_LOST'
  /** No PUBACK within the time given: the message may or may not have arrived. */
  | 'TIMEOUT'
  /** The broker answered with a reason code of 0x80 or above (MQTT 5): it did not take the message. */
  | 'REFUSED'
  /** A message before it was refused, so this one was held back to keep the order; nothing was sent. */
  | 'HELD_BACK'
  /** A topic that cannot be published to (MQTT 3.1.1 section 4.7); nothing was sent. */
  | 'INVALID_TOPIC'
  /** The publisher was closed; the message may or may not have arrived. */
  | 'CLOSED';

export class MqttError extends Error {
  constructor(
    readonly code: MqttErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = 'MqttError';
  }
}

const REASON_LENGTH = 120;

/**
 * An error as a short reason for events and logs: the system's or TLS code where there is one (`ECONNREFUSED`,
 * `CERT_HAS_EXPIRED`), else the first line of the message, at most 120 characters.
 */
export function shortReason(error: unknown): string {
  // By shape, not by `instanceof`: errors of Node's core may come from another realm.
  if (typeof error !== 'object' || error === null) return String(error).slice(0, REASON_LENGTH);
  // MQTT reason codes are numbers on the same property; their message says more than the number.
  if ('code' in error && typeof error.code === 'string') return error.code;
  const message = 'message' in error ? String(error.message) : '';
  const [firstLine = ''] = message.split('\n');
  return firstLine.slice(0, REASON_LENGTH) || 'unknown error';
}
