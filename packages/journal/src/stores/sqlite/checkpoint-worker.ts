import { parentPort, workerData } from "node:worker_threads";
import { openForCheckpoints } from "./connection.js";

/** The thread that copies the log into the database file; see checkpoints.ts. */
if (parentPort === null) throw new Error("this file is a thread of a sqliteStore; it is not run by itself");
const port = parentPort;
const database = openForCheckpoints(workerData as string);
const copy = database.prepare("pragma wal_checkpoint(passive)");

port.on("message", (message: "copy" | "close") => {
  if (message === "close") {
    database.close();
    port.close();
    return;
  }
  try {
    copy.get();
  } catch {
    // No room, or a disk that fails: the log keeps what it holds, the writer will meet the same and say so.
  }
  port.postMessage("copied");
});
