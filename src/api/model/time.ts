/** Times as microseconds since 1970. A bigint: the year 9999 in microseconds is beyond 2^53. */

const MICROS_PER_SECOND = 1_000_000n;

/** RFC 3339 in UTC with exactly six fractional digits. */
export function timeOf(micros: bigint): string {
  let seconds = micros / MICROS_PER_SECOND;
  let fraction = micros % MICROS_PER_SECOND;
  if (fraction < 0n) {
    fraction += MICROS_PER_SECOND;
    seconds -= 1n;
  }
  const whole = new Date(Number(seconds) * 1000).toISOString().slice(0, -'.000Z'.length);
  return `${whole}.${fraction.toString().padStart(6, '0')}Z`;
}

/** @param utc as `timeOf` writes it */
export function microsOf(utc: string): bigint {
  const seconds = BigInt(Date.parse(`${utc.slice(0, 'yyyy-mm-ddThh:mm:ss'.length)}Z`)) / 1000n;
  return seconds * MICROS_PER_SECOND + BigInt(utc.slice(-'ffffffZ'.length, -1));
}
