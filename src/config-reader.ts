/** How config.ts reads one variable after the other: by kind, and without stopping at what is wrong. */

/** Variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Collects what is wrong and goes on with the default. Values of secrets are never in a message. */
export class Reader {
  readonly problems: string[] = [];

  constructor(
    private readonly env: Environment,
    private readonly readFile: (path: string) => string,
  ) {}

  /** An empty variable counts as unset, as compose files leave them. */
  text(name: string): string | null {
    const value = this.env[name];
    return value === undefined || value === '' ? null : value;
  }

  isSet(name: string): boolean {
    return this.text(name) !== null;
  }

  secret(name: string): string | null {
    const value = this.text(name);
    const file = this.text(`${name}_FILE`);
    if (file === null) return value;
    if (value !== null) {
      this.problems.push(`${name}: is set together with ${name}_FILE; set one of them`);
      return value;
    }
    // The newline that editors and secret stores leave at the end is not part of the secret.
    return this.contents(`${name}_FILE`, file)?.replace(/\r?\n$/, '') ?? null;
  }

  /** Text of the file that a variable names. `isGood` may throw, which counts as no. */
  file(name: string, expected: string, isGood: (text: string) => boolean): string | null {
    const path = this.text(name);
    const text = path === null ? null : this.contents(name, path);
    if (text === null) return null;
    try {
      if (isGood(text)) return text;
    } catch {
      // The library's reason may quote the file, which may be a secret.
    }
    this.problems.push(`${name}: ${path} does not hold ${expected}`);
    return null;
  }

  private contents(name: string, path: string): string | null {
    try {
      return this.readFile(path);
    } catch (error) {
      const code = (error as { code?: string }).code ?? 'unreadable';
      this.problems.push(`${name}: ${path} cannot be read (${code})`);
      return null;
    }
  }

  url(name: string, schemes: readonly string[]): string | null {
    const value = this.secret(name);
    if (value !== null) this.checkUrl(name, value, schemes);
    return value;
  }

  urls(name: string, schemes: readonly string[]): readonly string[] | null {
    const value = this.secret(name);
    if (value === null) return null;
    const urls = value.split(',').map((url) => url.trim());
    for (const url of urls) this.checkUrl(name, url, schemes);
    return urls;
  }

  integer(name: string, fallback: number, min: number, max: number): number {
    const value = this.text(name);
    if (value === null) return fallback;
    const number = Number(value);
    if (/^\d{1,10}$/.test(value) && number >= min && number <= max) return number;
    this.problems.push(`${name}: must be a whole number from ${min} to ${max}, is ${JSON.stringify(value)}`);
    return fallback;
  }

  oneOf<const T extends string>(name: string, fallback: NoInfer<T>, values: readonly T[]): T {
    const value = this.text(name) ?? fallback;
    const known = values.find((candidate) => candidate === value);
    if (known !== undefined) return known;
    this.problems.push(`${name}: must be one of ${values.join(', ')}, is ${JSON.stringify(value)}`);
    return fallback;
  }

  matching(name: string, fallback: string, pattern: RegExp, expected: string): string {
    const value = this.text(name) ?? fallback;
    if (pattern.test(value)) return value;
    this.problems.push(`${name}: must be ${expected}, is ${JSON.stringify(value)}`);
    return fallback;
  }

  private checkUrl(name: string, value: string, schemes: readonly string[]): void {
    const known = schemes.map((scheme) => `${scheme}//`).join(', ');
    if (!URL.canParse(value) || !schemes.includes(new URL(value).protocol)) {
      this.problems.push(`${name}: must be a URL beginning with ${known}`);
    }
  }
}
