/** Putting a contract in force through the API (design sections 7 and 8). */
import { Field, InputType, ObjectType, registerEnumType } from 'type-graphql';
import type { FeedStatus, Grade } from '../../contract/plan';
import { Feed } from './feed';

/** As GraphQL shows the grades of contract/plan.ts. */
export const ContractGrade: Readonly<Record<string, Grade>> = {
  SAFE: 'safe',
  WEAKENS_PROTECTION: 'weakens_protection',
  CHANGES_IDENTITY: 'changes_identity',
};

/** A contract that is applied has a file, so `without_file` is not here. */
export const ContractStatus: Readonly<Record<string, FeedStatus>> = {
  NEW: 'new',
  CHANGED: 'changed',
  UNCHANGED: 'unchanged',
};

export function registerContractEnums(): void {
  registerEnumType(ContractGrade, {
    name: 'ContractGrade',
    description: 'What a change of a contract does to the protection of its feed.',
    valuesConfig: {
      SAFE: { description: 'Nothing can be lost, counted twice or let through.' },
      WEAKENS_PROTECTION: { description: 'Less is remembered, held, consumed or applied than before.' },
      CHANGES_IDENTITY: { description: 'The same event gets another key or payload digest.' },
    },
  });
  registerEnumType(ContractStatus, {
    name: 'ContractStatus',
    description: 'What applying a contract does to its feed.',
    valuesConfig: {
      NEW: { description: 'The feed is new.' },
      CHANGED: { description: 'At least one field has another value.' },
      UNCHANGED: { description: 'Every field has the value that is in force; comments and spelling may differ.' },
    },
  });
}

@InputType({ description: 'A feed contract to put in force.' })
export class ApplyFeedContractInput {
  @Field(() => String, {
    description: 'The YAML text, as it would be in a file. Errors are in `extensions.errors`, with line and column.',
  })
  text!: string;

  @Field(() => String, {
    nullable: true,
    description:
      'Name of the file, for the history and for messages: up to 200 characters, without a folder. By default ' +
      '`contract.yaml`.',
  })
  file?: string | null;

  @Field(() => String, { nullable: true, description: 'Commit that it is of: 7 to 64 lower-case hexadecimal digits.' })
  commit?: string | null;

  @Field(() => Boolean, { defaultValue: false, description: 'Only answer what would change.' })
  dryRun!: boolean;
}

@ObjectType({ description: 'One field that a contract changes.' })
export class ContractFieldChange {
  @Field(() => String, { description: 'Path in the contract, e.g. `dedup.windowSeconds`.' })
  field!: string;

  @Field(() => String, { nullable: true, description: 'What is in force, as JSON text; null: it is not there.' })
  before!: string | null;

  @Field(() => String, { nullable: true, description: 'What the contract says, as JSON text; null: it is not there.' })
  after!: string | null;

  @Field(() => ContractGrade, { description: 'What the change does to the protection of the feed.' })
  grade!: Grade;

  @Field(() => String, { description: 'What it does, in words.' })
  effect!: string;
}

@ObjectType({ description: 'What applying a contract changed, or would change.' })
export class ApplyFeedContractPayload {
  @Field(() => Feed, { nullable: true, description: 'The feed, as it is now; null where it does not exist.' })
  feed!: Feed | null;

  @Field(() => ContractStatus, { description: 'What it did to the feed.' })
  status!: FeedStatus;

  @Field(() => [ContractFieldChange], { description: 'Field by field. Empty for a new feed.' })
  changes!: readonly ContractFieldChange[];

  @Field(() => [ContractFieldChange], {
    description: 'Fields of the policy that were changed through the API and stay: `before` is in force.',
  })
  drift!: readonly ContractFieldChange[];
}
