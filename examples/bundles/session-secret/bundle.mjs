import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";

// A bundle that keeps nothing in files: what it says as state, Osbert keeps, encrypted if the broker has keys, and gives it to every later
// action. So it needs neither the network nor a disk.

const input = JSON.parse(readFileSync(0, "utf8"));
const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

const actions = {
  // Run a second time, it finds the secret of the first and leaves it as it is.
  provision() {
    if (input.state.secret === undefined) say({ state: { secret: randomBytes(32).toString("base64url") } });
  },
  bind() {
    say({ credentials: { secret: input.state.secret } });
  },
  // The secret goes with the state.
  unbind() {},
  deprovision() {},
};

const act = actions[process.argv.at(-1)];
if (act === undefined) process.exit(8);
act();
