import { Agent, request } from "node:http";
import { expect, onTestFinished, test, vi } from "vitest";
import { hashPassword } from "../src/authentication/index.js";
import { basic, guarded } from "./authentication-lab.js";

/** A third of the usual cost. What is counted is hashes, not time. */
const cost = { ln: 15, r: 8, p: 1 };
const connections = 320;
const users = Array.from({ length: 8 }, (_, index) => ({ username: `user-${index}`, password: `secret ${index}` }));

/** Half of them in networks of their own, as those of many strangers are; half are neighbours of the users. */
function addressOf(index: number): string {
  const block = Math.floor(index / 250);
  return index % 2 === 0 ? `127.${1 + (index % 250)}.${block}.1` : `127.0.${block}.${2 + (index % 250)}`;
}

/** Guesses on one connection, the next as soon as the last is answered, until the test is over. */
function guessOn(url: string, localAddress: string, name: string): () => void {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  let isOver = false;
  let guesses = 0;
  const guess = () => {
    if (isOver) return;
    const authorization = basic(name, `guess ${localAddress} ${guesses++}`);
    const headers = { authorization };
    const asked = request(`${url}/v2/catalog`, { agent, localAddress, headers }, (response) => {
      response.resume();
      response.on("end", guess);
    });
    asked.on("error", () => void setTimeout(guess, 10));
    asked.end();
  };
  guess();
  return () => {
    isOver = true;
    agent.destroy();
  };
}

test("while 320 addresses guess, every right password that is not remembered yet gets in, after a few hashes", async () => {
  const credentials = await Promise.all(
    users.map(async ({ username, password }) => ({ username, passwordHash: await hashPassword(password, cost) })),
  );
  const guard = await guarded({ credentials });
  const hashes = () => guard.events.filter(({ kind }) => kind === "password hashed").length;
  const ends = Array.from({ length: connections }, (_, index) =>
    guessOn(guard.server.url, addressOf(index), index % 3 === 0 ? "nobody" : "user-0"),
  );
  onTestFinished(() => {
    for (const end of ends) end();
  });
  await vi.waitFor(() => expect(hashes()).toBeGreaterThan(20), { timeout: 20_000 });
  const answers: { readonly status: number; readonly hashes: number }[] = [];
  for (const { username, password } of users) {
    const before = hashes();
    const { status } = await guard.ask(basic(username, password));
    answers.push({ status, hashes: hashes() - before });
  }
  expect(answers.map(({ status }) => status)).toEqual(users.map(() => 200));
  // Two processors do seven a second at the usual cost.
  expect(Math.max(...answers.map((answer) => answer.hashes))).toBeLessThanOrEqual(6);
}, 60_000);
