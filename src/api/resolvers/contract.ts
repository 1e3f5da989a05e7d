import { Arg, Ctx, Mutation, Resolver } from 'type-graphql';
import type { FieldChange, FeedStatus } from '../../contract/plan';
import { applyContract, recordContractRefusal } from '../../ledger/apply-contract';
import type { ContractToApply } from '../../ledger/apply-contract';
import type { ApiContext } from '../context';
import { ApiError, badInput } from '../errors';
import type { FeedRecord } from '../model/records';
import { ApplyFeedContractInput, ApplyFeedContractPayload } from '../types/contract';
import { requirePermission } from '../viewer';
import { findFeed } from './decision';

/** `ApplyFeedContractPayload` before it is shaped. */
interface Applied {
  readonly feed: FeedRecord | null;
  readonly status: FeedStatus;
  readonly changes: readonly FieldChange[];
  readonly drift: readonly FieldChange[];
}

/** Without a folder, which would say where it lies on somebody's machine, and on one line. */
const FILE_NAME = /^[^/\\\p{Cc}]{1,200}$/u;
const COMMIT = /^[0-9a-f]{7,64}$/;

@Resolver(() => ApplyFeedContractPayload)
export class ContractResolver {
  @Mutation(() => ApplyFeedContractPayload, {
    description:
      'Puts a contract in force, with the checks of a start; one that is in force already changes nothing. Needs the ' +
      'role policy-admin or admin. Attempts are in `adminLog`.',
  })
  async applyFeedContract(
    @Arg('input', () => ApplyFeedContractInput, { description: 'The contract.' }) input: ApplyFeedContractInput,
    @Ctx() context: ApiContext,
  ): Promise<Applied> {
    const { services, viewer } = context;
    const wanted = wantedOf(input, viewer.name);
    await requireRight(context, wanted);
    const applied = await applyContract(services.prisma, wanted);
    if (applied.result === 'refused') {
      const errors = applied.errors.map(({ line, column, path, message }) => ({ line, column, path, message }));
      throw new ApiError('BAD_USER_INPUT', applied.message, { errors });
    }
    const { status, changes, drift } = applied.plan;
    return { feed: await findFeed(context, applied.feed), status, changes, drift };
  }
}

function wantedOf({ text, file, commit, dryRun }: ApplyFeedContractInput, actor: string): ContractToApply {
  const name = file ?? 'contract.yaml';
  if (!FILE_NAME.test(name)) throw badInput('file must be a name of 1 to 200 characters without a folder');
  if (commit !== null && commit !== undefined && !COMMIT.test(commit)) {
    throw badInput('commit must be 7 to 64 lower-case hexadecimal digits');
  }
  return { text, file: name, actor, commit: commit ?? null, dryRun };
}

async function requireRight({ services, viewer }: ApiContext, wanted: ContractToApply): Promise<void> {
  try {
    requirePermission(viewer, 'applyContract');
  } catch (error) {
    if (error instanceof ApiError) await recordContractRefusal(services.prisma, wanted, error.message);
    throw error;
  }
}
