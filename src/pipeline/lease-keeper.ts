/**
 * Which feeds this instance consumes (design section 9): takes free leases, keeps them, shares them out evenly.
 *
 * A name is: free → ours (`onAcquired` ran) → free again, because another took it after it expired (`onLost`), because
 * this instance has more than its share, or because it stops. Every instance holds a lease on its own name as well, so
 * the number of instances alive is known from the same table.
 *
 * While the database is away nothing changes: nobody else can take a lease either.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Leases } from '../ledger/port';
import type { Logger } from '../ops/port';

export interface LeaseKeeperOptions {
  /** Instances that share the same names count each other: `consumer`, `relay`. */
  readonly group: string;
  readonly instanceId: string;
  /**
   * What is shared out, e.g. `feed/county-fire-cad/default`. Asked at every turn: names may come, and one of ours that
   * is not among them any more is given back. A rejection ends the turn, after our leases were renewed.
   */
  readonly names: () => Promise<readonly string[]>;
  readonly leases: Leases;
  /** Leases last this long from their last renewal; they are renewed three times as often. */
  readonly ttlMs: number;
  readonly onAcquired: (name: string) => Promise<void>;
  /** Resolves when nothing is consumed under the name any more. */
  readonly onLost: (name: string) => Promise<void>;
  readonly log: Logger;
}

export class LeaseKeeper {
  private readonly ours = new Set<string>();
  /** Ours still, while what was taken is landed. Runs beside the turns: the other leases must be renewed meanwhile. */
  private readonly leaving = new Map<string, Promise<void>>();
  private readonly stopped = new AbortController();
  private running: Promise<void> | null = null;

  private readonly instanceLease: string;

  constructor(private readonly options: LeaseKeeperOptions) {
    this.instanceLease = `instance/${options.group}/${options.instanceId}`;
  }

  start(): void {
    this.running ??= this.run();
  }

  /** Names that are ours now. */
  get held(): readonly string[] {
    return [...this.ours];
  }

  /** Gives everything back, so that others need not wait for the expiry. */
  async stop(): Promise<void> {
    this.stopped.abort();
    await this.running;
    await Promise.all([...this.ours].map((name) => this.leave(name)));
    await Promise.all(this.leaving.values());
    await this.options.leases.release(this.instanceLease).catch(() => {
      // The database is away: the lease ends by itself.
    });
  }

  private async run(): Promise<void> {
    const { signal } = this.stopped;
    while (!signal.aborted) {
      try {
        await this.turn();
      } catch (error) {
        this.options.log.warn({ err: error }, 'leases could not be renewed');
      }
      // An abort ends the sleep; that is how stopping works, not an error.
      await sleep(this.options.ttlMs / 3, undefined, { signal }).catch(() => undefined);
    }
  }

  private async turn(): Promise<void> {
    const { leases, group } = this.options;
    await leases.acquire(this.instanceLease);
    await this.renew();
    const names = await this.options.names();
    for (const name of this.staying()) if (!names.includes(name)) void this.leave(name);
    const held = await leases.held();
    const instances = held.filter(({ name }) => name.startsWith(`instance/${group}/`)).length;
    const share = Math.ceil(names.length / Math.max(1, instances));
    for (const name of this.staying().slice(share)) void this.leave(name);
    const taken = new Set(held.map(({ name }) => name));
    for (const name of names) {
      if (this.stopped.signal.aborted || this.staying().length >= share) return;
      if (!this.ours.has(name) && !this.leaving.has(name) && !taken.has(name) && (await leases.acquire(name)))
        await this.begin(name);
    }
  }

  private staying(): string[] {
    return [...this.ours].filter((name) => !this.leaving.has(name));
  }

  private async renew(): Promise<void> {
    for (const name of [...this.ours]) {
      // Not acquired: one that was given back meanwhile would be ours again, with nobody consuming under it.
      if (!this.ours.has(name) || (await this.options.leases.renew(name)) || !this.ours.has(name)) continue;
      this.options.log.warn({ lease: name }, 'another instance took over');
      this.ours.delete(name);
      void this.leave(name);
    }
  }

  private async begin(name: string): Promise<void> {
    this.ours.add(name);
    this.options.log.info({ lease: name }, 'lease acquired');
    try {
      await this.options.onAcquired(name);
    } catch (error) {
      // Kept, it would be renewed for ever with nobody consuming under it.
      this.options.log.warn({ lease: name, err: error }, 'nothing could be started under a lease; it is given back');
      void this.leave(name);
    }
  }

  /** Ends consuming under the name, then frees the lease, if it is ours still. Never rejects. */
  private leave(name: string): Promise<void> {
    const leaving = this.leaving.get(name) ?? this.endAndRelease(name).finally(() => this.leaving.delete(name));
    this.leaving.set(name, leaving);
    return leaving;
  }

  private async endAndRelease(name: string): Promise<void> {
    try {
      await this.options.onLost(name);
      if (this.ours.delete(name)) await this.options.leases.release(name);
      this.options.log.info({ lease: name }, 'lease released');
    } catch (error) {
      this.options.log.warn({ lease: name, err: error }, 'a lease could not be released; it will expire');
    }
  }
}
