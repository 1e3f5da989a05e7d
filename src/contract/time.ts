/** RFC 3339 times, as producers state them in `occurredAt`. */

const RFC3339 = /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))$/;
/** The usual form: in UTC, without a leap second. */
const PLAIN_UTC = /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3])(?::[0-5]\d){2}(?:\.\d+)?Z$/;
/** Days that their month or year may not have, and a year out of range. */
const DOUBTFUL_DATE = /^(?:0000|\d{4}-(?:02-(?:29|3\d)|(?:0[469]|11)-31))/;
const MS_PER_SECOND = 1000;
const MS_PER_MINUTE = 60_000;

/**
 * An RFC 3339 date-time in UTC with exactly six fractional digits (`2024-08-29T06:10:00.000000Z`), or null where the
 * text is none, or lies outside the years 1 to 9999 in UTC. Further digits are cut, never rounded into the future. A
 * leap second reads as the second after it, as in Postgres.
 */
export function utcTime(text: string): string | null {
  if (PLAIN_UTC.test(text) && !DOUBTFUL_DATE.test(text)) return withFraction(text, text.slice(20, -1));
  const match = RFC3339.exec(text);
  if (match === null) return null;
  const [, year, month, day, hour, minute, second] = match.map(Number) as [number, ...number[]];
  if (year === undefined || month === undefined || day === undefined) return null;
  if (hour === undefined || minute === undefined || second === undefined) return null;
  if (month < 1 || month > 12 || day < 1 || day > daysIn(year, month)) return null;
  if (hour > 23 || minute > 59 || second > 60) return null;
  const offsetMinutes = offsetOf(match[8], match[9], match[10]);
  if (offsetMinutes === null) return null;

  const start = new Date(0);
  // Not Date.UTC: it takes the years 0 to 99 for 1900 to 1999.
  start.setUTCFullYear(year, month - 1, day);
  start.setUTCHours(hour, minute - offsetMinutes);
  const isLeapSecond = second === 60;
  if (isLeapSecond && (start.getUTCHours() !== 23 || start.getUTCMinutes() !== 59)) return null;
  const utc = new Date(start.getTime() + (isLeapSecond ? MS_PER_MINUTE : second * MS_PER_SECOND));
  if (utc.getUTCFullYear() < 1 || utc.getUTCFullYear() > 9999) return null;
  const fraction = isLeapSecond ? '' : (match[7] ?? '');
  return withFraction(utc.toISOString(), fraction);
}

function withFraction(utc: string, fraction: string): string {
  return `${utc.slice(0, 19)}.${fraction.slice(0, 6).padEnd(6, '0')}Z`;
}

/** Minutes east of UTC; null for an offset that no clock has. */
function offsetOf(sign: string | undefined, hours = '00', minutes = '00'): number | null {
  if (Number(hours) > 23 || Number(minutes) > 59) return null;
  return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes));
}

function daysIn(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}
