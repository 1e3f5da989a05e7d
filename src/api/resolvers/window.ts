import { Arg, Ctx, FieldResolver, Resolver, Root } from 'type-graphql';
import type { ApiContext } from '../context';
import { adviseEntries, adviseSeconds, warnOfCount } from '../model/advice';
import type { ReplayLags } from '../model/advice';
import { readFilter } from '../model/filter';
import { nowMicros, spanSince } from '../read/preview';
import { feedsInScope } from '../read/walk';
import { DateTimeScalar } from '../scalars';
import { peakEntries, pushedOut, replayLags } from '../statements/preview';
import { WindowAdvice } from '../types/advice';
import { WindowFacts } from '../types/feed';

const WEEK_MICROS = 604_800_000_000n;
const MICROS_PER_SECOND = 1_000_000;

/** `WindowFacts`, with the name of its feed. */
export interface FeedWindow extends WindowFacts {
  readonly feed: string;
}

interface LagRow extends Omit<ReplayLags, 'replays'> {
  readonly replays: string;
}

@Resolver(() => WindowFacts)
export class WindowResolver {
  @FieldResolver(() => WindowAdvice, {
    nullable: true,
    description: 'How large it should be. Null for readers of some agencies: it is measured of the others too.',
  })
  async advice(
    @Root() window: FeedWindow,
    @Arg('since', () => DateTimeScalar, { nullable: true, description: 'From when; left out: the last 7 days.' })
    asked: bigint | null,
    @Ctx() { services, viewer }: ApiContext,
  ): Promise<WindowAdvice | null> {
    if (viewer.agencies !== null) return null;
    const { prisma } = services;
    const since = asked ?? nowMicros() - WEEK_MICROS;
    const [scope] = await feedsInScope(prisma, viewer, readFilter({ feed: window.feed, from: since }));
    if (scope === undefined) throw new Error(`feed ${window.feed} was found and is not there`);
    const from = { feedId: scope.feed.id, from: scope.from };

    const [row] = await prisma.$queryRaw<LagRow[]>(replayLags(from));
    const { p50 = null, p99 = null, max = null } = row ?? {};
    const replays = BigInt(row?.replays ?? 0);
    const seconds = adviseSeconds({ replays: Number(replays), p50, p99, max }, window.replayHorizonSeconds);
    const peakWithin = async (length: number): Promise<{ entries: number; peak: number }> => {
      const [found] = await prisma.$queryRaw<{ entries: string; peak: string }[]>(peakEntries(from, length));
      return { entries: Number(found?.entries ?? 0), peak: Number(found?.peak ?? 0) };
    };
    const advised = await peakWithin(seconds.value);
    const { peak } = await peakWithin(window.windowSeconds);
    const entries = adviseEntries(seconds.value, advised.peak);
    const [gone] = await prisma.$queryRaw<{ count: string }[]>(pushedOut(from, window));
    const spanSeconds = Math.max(1, Number(spanSince(scope.feed, since)) / MICROS_PER_SECOND);
    return {
      ...{ since, replays, lagP50Seconds: p50, lagP99Seconds: p99, lagMaxSeconds: max },
      entriesPerSecond: advised.entries / spanSeconds,
      ...{ windowSeconds: seconds.value, maxEntries: entries.value, reasons: [seconds.reason, entries.reason] },
      warning: warnOfCount({ ...window, peak, pushedOut: Number(gone?.count ?? 0) }),
    };
  }
}
