/** What a person is told when a command fails: one clear message, no stack trace. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code, port } = error as { code?: string; port?: number };
  if (code === 'EADDRINUSE')
    return `port ${port ?? ''} is in use; choose another (PORT, MQTT_PORT; 0 takes a free one)`;
  if (code === 'EACCES' && port !== undefined) return `port ${port ?? ''} may not be opened by this user`;
  return error.message === '' ? error.name : error.message;
}
