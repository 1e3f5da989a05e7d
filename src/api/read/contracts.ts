/** Contracts as stored, read again: they say where the items of a delivery are, and what the brokers may do. */
import { loadContract } from '../../contract/load';
import type { FeedContract } from '../../contract/types';
import type { ContractRecord } from '../model/records';

/** Contracts are immutable, so what one text means is kept; far more than any installation has feeds. */
const MAX_KEPT = 500;

export class ContractTexts {
  private readonly kept = new Map<string, FeedContract | null>();

  /** null: this program cannot read the text, as with one that a newer program stored. */
  read(record: ContractRecord): FeedContract | null {
    const known = this.kept.get(record.digest);
    if (known !== undefined) return known;
    const result = loadContract(record.file, Buffer.from(record.text, 'utf8'));
    const contract = result.ok ? result.loaded.contract : null;
    const oldest = this.kept.keys().next();
    if (this.kept.size >= MAX_KEPT && oldest.done !== true) this.kept.delete(oldest.value);
    this.kept.set(record.digest, contract);
    return contract;
  }
}
