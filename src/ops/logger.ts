/** Structured logs. */
import pino from 'pino';
import type { Logger } from './port';

/** JSON lines on standard error: standard output belongs to commands. */
export function createLogger(level: string): Logger {
  return pino(
    { level, redact: ['password', 'token', '*.password', '*.token'], serializers: { err: errorFields } },
    pino.destination({ fd: 2, sync: true }),
  );
}

/** Code and message of an error and its causes; no stack, no parameters, no connection strings. */
function errorFields(error: unknown): unknown {
  if (!(error instanceof Error)) return { message: String(error) };
  const code = 'code' in error ? error.code : undefined;
  return {
    type: error.name,
    code,
    message: mask(error.message),
    cause: error.cause === undefined ? undefined : errorFields(error.cause),
  };
}

/** Credentials inside URLs. */
function mask(text: string): string {
  return text.replace(/([a-z+]+:\/\/[^:@/\s]*):[^@/\s]*@/gi, '$1:***@').slice(0, 2000);
}
