/** Which contract files are wrong or wait, as the watcher of this process sees them: for the API, metrics and `/readyz`. */

export interface ContractError {
  /** null: the file is of no feed that is known. */
  readonly feed: string | null;
  /** With file, line and column, without folders. */
  readonly message: string;
}

export interface WaitingContract {
  readonly feed: string;
  /** Why it waits for `contract apply`. */
  readonly reason: string;
}

export class ContractStatus {
  private current: { readonly errors: readonly ContractError[]; readonly waiting: readonly WaitingContract[] } = {
    errors: [],
    waiting: [],
  };

  set(errors: readonly ContractError[], waiting: readonly WaitingContract[]): void {
    this.current = { errors, waiting };
  }

  get errors(): readonly ContractError[] {
    return this.current.errors;
  }

  /** All that is wrong with the file of a feed, one line an error; null: nothing. */
  errorOf(feed: string): string | null {
    const messages = this.errors.filter((error) => error.feed === feed).map(({ message }) => message);
    return messages.length === 0 ? null : messages.join('\n');
  }

  /** For `/readyz`; null where there is nothing to say. */
  details(): object | null {
    const { errors, waiting } = this.current;
    return errors.length + waiting.length === 0 ? null : { errors, waiting };
  }
}
