/**
 * The state that effects change: the fields of incidents (design sections 5 and 6). Pure.
 */

/** Who wrote a field last, and the place of that message in its source. Ranks and sequences are decimal digits. */
export interface Writer {
  readonly feedId: number;
  readonly agency: string;
  readonly sourceId: string;
  readonly epoch: string | null;
  readonly rank: string | null;
  readonly sequence: string | null;
}

export interface FieldState {
  /** Canonical JSON text, or null where the field is a set: its members are not needed to decide. */
  readonly value: string | null;
  readonly writer: Writer;
}

/** A field after a batch. */
export interface FieldChange {
  readonly incidentId: string;
  readonly field: string;
  readonly value: string | null;
  readonly writer: Writer;
  /** Of the entry that wrote it last. */
  readonly position: number;
}

/** A member that a batch adds to a set; adding it again changes nothing. */
export interface MemberAdded {
  readonly incidentId: string;
  readonly field: string;
  /** Canonical JSON text. */
  readonly value: string;
  readonly position: number;
}
