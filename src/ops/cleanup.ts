/**
 * Releases resources last in, first out (style: whoever opens later is closed earlier).
 */
export class Cleanup {
  private readonly actions: { readonly what: string; readonly action: () => Promise<void> | void }[] = [];
  private running: Promise<void> | null = null;

  constructor(private readonly onFailure: (what: string, error: unknown) => void) {}

  add(what: string, action: () => Promise<void> | void): void {
    this.actions.push({ what, action });
  }

  /** One failure does not keep the rest open. Calling it again waits for the first call. */
  run(): Promise<void> {
    return (this.running ??= this.runAll());
  }

  private async runAll(): Promise<void> {
    for (let next = this.actions.pop(); next !== undefined; next = this.actions.pop()) {
      try {
        await next.action();
      } catch (error) {
        this.onFailure(next.what, error);
      }
    }
  }
}
