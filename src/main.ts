#!/usr/bin/env node
/**
 * The command line; the only file that touches environment, signals and exit codes. Each command loads what it needs
 * when it is run: all of it together takes longer than most of them do.
 */
import { readFileSync } from 'node:fs';
import { Command, InvalidArgumentError, Option } from 'commander';
import type { Role } from './app';
import { messageOf } from './cli/message';
import { createTokenIn, describeToken } from './cli/token';
import { readConfig } from './config';
import type { Config } from './config';
import { ENTRY_OUTCOMES } from './ledger/entry';
import type { EntryOutcome } from './ledger/entry';
import { createLogger } from './ops/logger';
import { OIDC_PREFIX, isPlainName } from './ops/names';
import { ROLES } from './ops/roles';
import type { Role as AccessRole } from './ops/roles';

function config(): Config {
  return readConfig(process.env, (path) => readFileSync(path, 'utf8'));
}

/** How long a second signal is taken for the first again: npm passes on the Ctrl-C that the terminal sent to us too. */
const SAME_SIGNAL_MS = 1_000;

/** Resolves at the first SIGINT or SIGTERM; a later one ends the process at once. */
function stopSignal(): Promise<string> {
  return new Promise((resolve) => {
    let firstAt: number | null = null;
    const onSignal = (signal: string) => {
      firstAt ??= performance.now();
      if (performance.now() - firstAt > SAME_SIGNAL_MS) process.exit(130);
      resolve(signal);
    };
    process.on('SIGINT', onSignal);
    process.on('SIGTERM', onSignal);
  });
}

function httpUrl(text: string): string {
  if (URL.canParse(text) && /^https?:\/\//.test(text)) return text;
  throw new InvalidArgumentError('it begins with http:// or https://');
}

function wholeDays(text: string): number {
  if (/^[1-9]\d{0,3}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('a whole number of days, 1 to 9999');
}

const program = new Command('replay-ledger')
  .description('Lands every incident update of an at-least-once MQTT feed exactly once, and records every decision.')
  .showHelpAfterError();

program
  .command('serve')
  .description('consume the feeds and answer queries; without any configuration on embedded parts')
  .addOption(
    new Option('--role <role>', 'run one part in this process')
      .choices(['all', 'consumer', 'api', 'relay'])
      .default('all'),
  )
  .action(async ({ role }: { role: Role }) => {
    const { serve } = await import('./cli/serve.js');
    const settings = config();
    const log = createLogger(settings.logLevel);
    const stopping = stopSignal();
    // A start that is told to stop has taken nothing yet, so it need not be finished first.
    const served = await Promise.race([serve(settings, log, role), stopping]);
    if (typeof served === 'string') return log.info({ signal: served }, 'stopped before it had started');
    const signal = await stopping;
    log.info({ signal }, 'stopping');
    await served.close();
    log.info({}, 'stopped');
  });

program
  .command('demo')
  .description('the night of the hurricane: a broker dies, its standby delivers again, and nothing is counted twice')
  .option('--once', 'end after the story instead of keeping the API open')
  .option('--json', 'print one JSON object instead of the story')
  .action(async (options: { once?: boolean; json?: boolean }) => {
    const { runDemo } = await import('./cli/demo.js');
    const once = options.once === true || process.stdout.isTTY !== true;
    await runDemo({ once, json: options.json === true, stop: stopSignal() });
  });

program
  .command('migrate')
  .description('bring the database to this version, as MIGRATE_DATABASE_URL or DATABASE_URL')
  .action(async () => {
    const { runMigrate } = await import('./cli/migrate.js');
    await runMigrate(config());
  });

interface TailFlags {
  readonly url: string;
  readonly tokenFile?: string;
  readonly feed?: string;
  readonly incident?: string;
  readonly agency?: string;
  readonly source?: string;
  readonly outcome?: readonly EntryOutcome[];
  readonly held?: true;
  readonly after?: string;
  readonly json?: true;
}

program
  .command('tail')
  .description('show decisions of a running service as they are made; end it by Ctrl-C')
  .option('--url <url>', 'GraphQL address of the service', httpUrl, 'http://127.0.0.1:4000/graphql')
  .option('--token-file <file>', 'file that holds the token to read with; read again at each connection')
  .option('--feed <name>', 'of this feed')
  .option('--incident <id>', 'about this incident')
  .option('--agency <name>', 'of this agency')
  .option('--source <id>', 'of this source')
  .addOption(new Option('--outcome <outcomes...>', 'with one of these outcomes').choices(ENTRY_OUTCOMES))
  .option('--held', 'held ones alone')
  .option('--after <cursor>', 'go on after this cursor, as --json shows it')
  .option('--json', 'one JSON object a line')
  .action(async (flags: TailFlags) => {
    const { tail, tokenOfFile } = await import('./cli/tail.js');
    const stop = new AbortController();
    void stopSignal().then(() => stop.abort());
    // The reader of a pipe went away, as `head` does.
    process.stdout.on('error', () => process.exit(0));
    const { feed, incident, agency, source, outcome, held } = flags;
    await tail({
      url: flags.url,
      token: flags.tokenFile === undefined ? () => null : tokenOfFile(flags.tokenFile),
      filter: { feed, incidentId: incident, agency, sourceId: source, outcome, held },
      after: flags.after ?? null,
      json: flags.json === true,
      colour: process.stdout.isTTY === true && (process.env.NO_COLOR ?? '') === '',
      signal: stop.signal,
      write: (line) => process.stdout.write(`${line}\n`),
      note: (line) => process.stderr.write(`${line}\n`),
    });
  });

interface TokenFlags {
  readonly role: AccessRole;
  readonly name: string;
  readonly agency?: readonly string[];
  readonly expiresInDays?: number;
  readonly file?: string;
}

program
  .command('token')
  .description('tokens for the API')
  .command('create')
  .description('make a token and show it once; the file that API_TOKENS_FILE names keeps its hash alone')
  .addOption(new Option('--role <role>', 'what its bearer may do').choices(ROLES).makeOptionMandatory())
  .requiredOption('--name <name>', 'whom it is for, as the audit trail names them')
  .option('--agency <names...>', 'limit it to what these agencies sent')
  .option('--expires-in-days <days>', 'refuse it after this time', wholeDays)
  .option('--file <file>', 'append it to this file; otherwise its line is shown')
  .action((flags: TokenFlags) => {
    const options = {
      role: flags.role,
      name: flags.name,
      agencies: flags.agency ?? [],
      expiresInDays: flags.expiresInDays ?? null,
      file: flags.file ?? null,
    };
    const created = createTokenIn(options, Date.now());
    console.error(describeToken(created, options));
    console.log(created.token);
  });

const contract = program
  .command('contract')
  .description('feed contracts as code: check, plan and apply the files of CONTRACTS_DIR');

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function actorName(text: string): string {
  if (text.toLowerCase().startsWith(OIDC_PREFIX)) {
    throw new InvalidArgumentError(`names that begin with ${OIDC_PREFIX} are those of an OpenID provider`);
  }
  if (isPlainName(text) && text.length <= 200) return text;
  throw new InvalidArgumentError('a name of 1 to 200 characters on one line, without blanks at its ends');
}

function commitHash(text: string): string {
  if (/^[0-9a-f]{7,64}$/.test(text)) return text;
  throw new InvalidArgumentError('a commit id: 7 to 64 hexadecimal digits');
}

contract
  .command('lint')
  .description('check contracts without a server; ends with 1 where something is wrong')
  .argument('[paths...]', 'files or folders; otherwise CONTRACTS_DIR')
  .action(async (paths: string[]) => {
    const { lintContracts } = await import('./cli/contract/lint.js');
    process.exitCode = await lintContracts(paths.length > 0 ? paths : [config().contractsDir], print);
  });

contract
  .command('plan')
  .description('show what applying would change; ends with 0 for nothing, 2 for changes, 1 for an error')
  .option('--json', 'one JSON object')
  .action(async ({ json }: { json?: boolean }) => {
    const { planCommand } = await import('./cli/contract.js');
    process.exitCode = await planCommand(config(), json === true, print);
  });

contract
  .command('apply')
  .description('put the files in force, all of them or none; doing it again changes nothing')
  .option(
    '--actor <name>',
    'who does it, as the history names them; otherwise the user of the operating system',
    actorName,
  )
  .option('--commit <id>', 'commit that the files are of; otherwise the one that is checked out', commitHash)
  .action(async (flags: { actor?: string; commit?: string }) => {
    const { applyCommand } = await import('./cli/contract.js');
    await applyCommand(config(), { actor: flags.actor ?? null, commit: flags.commit ?? null }, print);
  });

contract
  .command('export')
  .description('write the policies in force into the files, where they were changed through the API')
  .action(async () => {
    const { exportCommand } = await import('./cli/contract.js');
    await exportCommand(config(), print);
  });

program
  .command('schemas')
  .description('write schema/: the GraphQL schema and the JSON Schema of feed contracts')
  .argument('[dir]', 'folder to write to', 'schema')
  .action(async (dir: string) => {
    const { writeSchemas } = await import('./cli/schemas.js');
    await writeSchemas(dir);
  });

program.parseAsync(process.argv).then(
  // Handles that a library leaves open must not keep a command that has ended.
  () => process.exit(process.exitCode ?? 0),
  (error: unknown) => {
    console.error(`replay-ledger: ${messageOf(error)}`);
    process.exit(1);
  },
);
