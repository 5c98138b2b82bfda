import { parentPort, workerData } from "node:worker_threads";
import { Checkpoints } from "./checkpoints.js";
import { confirmOwnership } from "./confirm-ownership.js";
import { type Connection, openForWriting } from "./connection.js";
import { failureOf } from "./failure.js";
import type { FromWriter, ToWriter, WriterSettings } from "./protocol.js";
import { migrate } from "./schema.js";
import { Writer } from "./writer.js";

/** The writer thread: holds the only connection that writes, so that no durable write ever holds up the event loop. */
if (parentPort === null) throw new Error("this file is the writer thread of a sqliteStore; it is not run by itself");
const port = parentPort;
const settings = workerData as WriterSettings;

try {
  serve();
} catch (error) {
  // Nothing listens: the thread ends by itself.
  tell({ kind: "not ready", failure: failureOf(error, settings.path) });
}

function serve(): void {
  const database = openForWriting(settings);
  confirmOwnership(database, settings, migrate);
  const checkpoints = new Checkpoints(database, settings.path);
  const writer = new Writer(database, settings, (pages) => checkpoints.appended(pages));
  tell({ kind: "ready", clockMark: writer.clockMark() });
  port.on("message", (message: ToWriter) => {
    if (message.kind === "batch") tell(writer.run(message));
    else void close(database, checkpoints);
  });
}

async function close(database: Connection, checkpoints: Checkpoints): Promise<void> {
  await checkpoints.close();
  try {
    // Leaves one file with everything in it.
    database.pragma("wal_checkpoint(truncate)");
  } catch {
    // No room, or a disk that fails: the log stays beside the file, nothing is lost, and the next start reads it.
  }
  database.close();
  port.close();
}

function tell(message: FromWriter): void {
  port.postMessage(message);
}
