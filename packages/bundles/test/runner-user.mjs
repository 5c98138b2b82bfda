// A process that starts a job, and is killed meanwhile. Run from dist/, as a broker is.
import { openProcessRunner } from "@osbert/bundles";

const { folder, job, options } = JSON.parse(process.argv[2]);
const runner = await openProcessRunner({ ...options, files: async () => folder });
process.send("ready");
await new Promise((settle) => process.once("message", settle));
await runner.start(job, new AbortController().signal);
process.send("started");
setInterval(() => undefined, 1_000);
