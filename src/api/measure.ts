/**
 * What an operation may ask for, measured before anything is resolved. Aliases and fragments count as often as they
 * are used, and a page counts with the size that it asks for; so the cost bounds the fields that can be resolved.
 */
import { Kind, getNamedType, isCompositeType, isListType, isNonNullType, isObjectType } from 'graphql';
import type {
  DocumentNode,
  FieldNode,
  FragmentDefinitionNode,
  GraphQLNamedType,
  GraphQLOutputType,
  GraphQLSchema,
  OperationDefinitionNode,
  SelectionSetNode,
} from 'graphql';
import { ApiError } from './errors';
import type { ApiLimits } from './limits';

/** What a field of the root costs beside what it selects: it is a statement or two. */
const ROOT_COST = 100;
/** Likewise a list below another object. */
const CONNECTION_COST = 50;
/** Assumed length of lists without pages. */
const LIST_LENGTH = 10;

export interface Operation {
  readonly schema: GraphQLSchema;
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
  readonly variables: Readonly<Record<string, unknown>>;
}

/** @returns what is too much of it, or null */
export function measure(of: Operation, limits: ApiLimits): ApiError | null {
  const root = of.schema.getRootType(of.operation.operation);
  if (root === undefined || root === null) return null;
  try {
    new Measurement(of, limits).selections(of.operation.selectionSet, root, {
      depth: 1,
      times: 1,
      page: 1,
      isRoot: true,
    });
    return null;
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
}

interface Place {
  readonly depth: number;
  /** How often the selection is resolved. */
  readonly times: number;
  /** Size of the page that the selection belongs to. */
  readonly page: number;
  readonly isRoot: boolean;
}

class Measurement {
  private cost = 0;
  private visited = 0;
  private readonly fragments: ReadonlyMap<string, FragmentDefinitionNode>;

  constructor(
    private readonly of: Operation,
    private readonly limits: ApiLimits,
  ) {
    const definitions = of.document.definitions.filter((node) => node.kind === Kind.FRAGMENT_DEFINITION);
    this.fragments = new Map(definitions.map((node) => [node.name.value, node]));
  }

  selections(set: SelectionSetNode, type: GraphQLNamedType, place: Place): void {
    for (const node of set.selections) {
      // Fragments that hold nothing but fragments cost nothing and can still double at every level.
      this.visited++;
      if (this.visited > this.limits.maxCost) throw this.tooCostly();
      if (node.kind === Kind.FIELD) {
        this.field(node, type, place);
      } else if (node.kind === Kind.INLINE_FRAGMENT) {
        this.selections(node.selectionSet, type, place);
      } else {
        const fragment = this.fragments.get(node.name.value);
        if (fragment !== undefined) this.selections(fragment.selectionSet, type, place);
      }
    }
  }

  private field(node: FieldNode, parent: GraphQLNamedType, place: Place): void {
    // Introspection is bounded by the size of the schema, and off outside development.
    if (node.name.value.startsWith('__') || !isObjectType(parent)) return;
    const { maxDepth, maxCost } = this.limits;
    if (place.depth > maxDepth) {
      throw new ApiError('QUERY_TOO_COMPLEX', `the operation is nested deeper than ${maxDepth} fields`, { maxDepth });
    }
    const definition = parent.getFields()[node.name.value];
    if (definition === undefined) return;
    const type = getNamedType(definition.type);
    const isConnection = type.name.endsWith('Connection');
    this.cost += place.times * (1 + (place.isRoot ? ROOT_COST : isConnection ? CONNECTION_COST : 0));
    if (this.cost > maxCost) throw this.tooCostly();
    if (node.selectionSet === undefined || !isCompositeType(type)) return;
    const times = place.times * (isList(definition.type) ? place.page : 1);
    // Below a connection its lists are as long as its page; any other list has no page.
    const page = isConnection ? this.pageSize(node) : LIST_LENGTH;
    this.selections(node.selectionSet, type, { depth: place.depth + 1, times, page, isRoot: false });
  }

  private pageSize(node: FieldNode): number {
    for (const name of ['first', 'last']) {
      const value = node.arguments?.find((argument) => argument.name.value === name)?.value;
      const size =
        value?.kind === Kind.INT
          ? Number(value.value)
          : value?.kind === Kind.VARIABLE
            ? this.variable(value.name.value)
            : undefined;
      // A size that is refused later costs as much as the largest that is not.
      if (typeof size === 'number') return size > 0 && size < this.limits.maxPageSize ? size : this.limits.maxPageSize;
    }
    return this.limits.defaultPageSize;
  }

  private variable(name: string): unknown {
    const given = this.of.variables[name];
    if (given !== undefined) return given;
    const definition = this.of.operation.variableDefinitions?.find((node) => node.variable.name.value === name);
    return definition?.defaultValue?.kind === Kind.INT ? Number(definition.defaultValue.value) : undefined;
  }

  private tooCostly(): ApiError {
    const { maxCost } = this.limits;
    return new ApiError(
      'QUERY_TOO_COMPLEX',
      `the operation costs more than ${maxCost}: ask for fewer fields, aliases or entries a page`,
      { maxCost },
    );
  }
}

function isList(type: GraphQLOutputType): boolean {
  return isListType(type) || (isNonNullType(type) && isListType(type.ofType));
}
