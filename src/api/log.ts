import type { Logger } from '../ops/port';

/** The log of the service, as far as the API needs it. */
export type ApiLog = Pick<Logger, 'info' | 'warn' | 'error'>;
