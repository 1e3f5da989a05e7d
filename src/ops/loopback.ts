/** Addresses that nobody reaches but from this machine. */

const LOOPBACK = /^(?:127(?:\.\d{1,3}){3}|::1|localhost)$/;

/** @param host an address or a name; of a URL, with the brackets of IPv6 */
export function isLoopback(host: string): boolean {
  return LOOPBACK.test(host.replace(/^\[|\]$/g, ''));
}

/** Whether nobody can change on its way what is read there. On this machine that takes no TLS. */
export function isSafeUrl({ protocol, hostname }: URL): boolean {
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname));
}
