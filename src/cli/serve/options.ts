/** The flags of `serve` that are about connections, and about who may use it. */
import { type Command, Option } from "commander";
import { connectionsMaxDefault, pingMsDefault } from "../../limits.ts";
import { wholeNumber } from "../values.ts";
import { hostsValue, keyFileValue, keyValue, originsValue } from "./access-values.ts";

const daySeconds = 86_400;
/** Beyond what a process may have open anyway. */
const connectionsMost = 1_000_000;

/** Where it listens, and what it does with connections. */
export interface ListenFlags {
  readonly host: string;
  readonly port: number;
  readonly maxConnections: number;
  readonly pingSeconds: number;
  readonly drainDelaySeconds: number;
  readonly drainSeconds: number;
}

/** Who may use it. */
export interface AccessFlags {
  readonly apiKey?: readonly string[];
  /** Whether that is the variable's key. */
  readonly apiKeyInVariable?: boolean;
  readonly apiKeyFile?: string;
  readonly allowNoKey?: boolean;
  readonly metricsOpen?: boolean;
  readonly allowHost?: readonly string[];
  readonly corsOrigin?: readonly string[];
}

/** What it says of itself while it serves. */
export interface ReportFlags {
  /** Absent: text on a terminal, unless it is to be quiet. */
  readonly log?: "off" | "json" | "text";
  readonly live: boolean;
}

/** Adds the flags of `ListenFlags`. */
export function addListenOptions(command: Command): Command {
  return command
    .option("--host <host>", "the address to listen at", "127.0.0.1")
    .addOption(
      new Option("--port <n>", "the port; 0 picks one that is free")
        .argParser(wholeNumber(0, 65_535))
        .default(8080),
    )
    .addOption(
      new Option("--max-connections <n>", "connections at once; more are told to come again")
        .argParser(wholeNumber(1, connectionsMost))
        .default(connectionsMaxDefault),
    )
    .addOption(
      new Option("--ping-seconds <n>", "silence of an event stream that a comment ends; 0 never")
        .argParser(wholeNumber(0, daySeconds))
        .default(pingMsDefault / 1000),
    )
    .addOption(
      new Option(
        "--drain-delay-seconds <n>",
        "for balancers to see after SIGTERM that it isn't ready, before it refuses requests",
      )
        .argParser(wholeNumber(0, daySeconds))
        .default(0),
    )
    .addOption(
      new Option("--drain-seconds <n>", "for replies to end in once requests are refused")
        .argParser(wholeNumber(0, daySeconds))
        .default(30),
    );
}

/** Adds the flags of `AccessFlags`. */
export function addAccessOptions(command: Command): Command {
  return command
    .addOption(
      new Option(
        "--api-key <key>",
        "let in who has this key; may be repeated. Other users may see flags, but no variables",
      ).argParser(keyValue),
    )
    .addOption(
      new Option(
        "--api-key-file <file>",
        "keys, one a line, or LABEL: KEY; read again when it changes, and at SIGHUP",
      ).argParser(keyFileValue),
    )
    .option("--allow-no-key", "let other machines in without one")
    .option("--metrics-open", "let /metrics be read without a key")
    .addOption(
      new Option(
        "--allow-host <name>",
        "a name by which clients call this server; may be repeated. At an address of this machine " +
          "alone, only its own names are taken else",
      ).argParser(hostsValue),
    )
    .addOption(
      new Option(
        "--cors-origin <origin>",
        "let pages of this origin in, or of any by *; may be repeated",
      ).argParser(originsValue),
    );
}

/** Adds the flags of `ReportFlags`. */
export function addReportOptions(command: Command): Command {
  return command
    .addOption(
      new Option(
        "--log <form>",
        "a line a request, without what it says; unless given, text on a terminal",
      ).choices(["off", "json", "text"]),
    )
    .option("--no-live", "no line of speed and memory on a terminal");
}
