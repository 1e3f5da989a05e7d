/** Changes of policies, read by version. Nothing is remembered but the last version of each feed. */
import type { ApiServices } from '../context';
import { readFilter } from '../model/filter';
import type { PolicyRecord } from '../model/records';
import { policyRecord } from '../read/rows';
import type { PolicyRow } from '../read/rows';
import { feedsInScope } from '../read/walk';
import { policiesSince } from '../statements/feeds';
import type { Viewer } from '../viewer';
import type { HeadNews } from './heads';
import { PullStream } from './pull-stream';

/** Versions read at a time. */
const PAGE_SIZE = 100;

export interface PolicyChanged {
  readonly policy: PolicyRecord;
}

export class PolicyStream extends PullStream<PolicyChanged> {
  /** By name of the feed. */
  private readonly versions = new Map<string, number>();

  private constructor(
    services: ApiServices,
    private readonly viewer: Viewer,
    /** null: all that the viewer may see, also those to come. */
    private readonly feed: string | null,
  ) {
    super(services);
  }

  /** Stands at the versions in force. @throws ApiError BAD_USER_INPUT, NOT_FOUND */
  static async open(services: ApiServices, viewer: Viewer, feed: string | null): Promise<PolicyStream> {
    const stream = new PolicyStream(services, viewer, feed);
    for (const { name, policyVersion } of await stream.feeds()) stream.versions.set(name, policyVersion);
    return stream;
  }

  protected async read(): Promise<boolean> {
    const feeds = await this.feeds();
    // A feed that came into being since: its first version is news.
    const places = feeds.map(({ id, name }) => ({ feedId: id, version: this.versions.get(name) ?? 0 }));
    const rows = await this.services.prisma.$queryRaw<PolicyRow[]>(policiesSince(places, PAGE_SIZE));
    if (this.ended) return true;
    const names = new Map(feeds.map(({ id, name }) => [id, name]));
    for (const policy of rows.map(policyRecord)) {
      this.versions.set(names.get(policy.feedId) ?? '', policy.version);
      this.buffer.push({ policy });
    }
    return rows.length < PAGE_SIZE;
  }

  protected wants({ feed, policyVersion }: HeadNews): boolean {
    if (this.feed !== null && this.feed !== feed) return false;
    return policyVersion !== null && policyVersion > (this.versions.get(feed) ?? 0);
  }

  private async feeds() {
    const scope = await feedsInScope(this.services.prisma, this.viewer, readFilter({ feed: this.feed }));
    return scope.map(({ feed }) => feed);
  }
}
