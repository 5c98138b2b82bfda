import { randomUUID } from "node:crypto";
import { join } from "node:path";
import type { Store } from "@osbert/journal";
import { sqliteStore } from "@osbert/journal/sqlite";
import { interposedStore } from "@osbert/journal/testing";
import { timeOf } from "../../../../tools/bench/callers.js";
import { inTurn } from "../../../../tools/bench/rounds.js";
import { atMost, count, shareOf } from "../figure.js";
import {
  asking,
  type InstantBroker,
  laneOfBroker,
  openBench,
  parameters,
  space,
  startBroker,
  wanted,
} from "../open-bench.js";
import { measure } from "../program.js";

const inFlight = 64;

const body = JSON.stringify({
  ...{ service_id: "service-3-id", plan_id: "service-3-small-id", organization_guid: space, space_guid: space },
  context: { platform: "osbert", organization_guid: space, space_guid: space, instance_name: randomUUID() },
  parameters: JSON.parse(parameters),
});
const headers = {
  "content-type": "application/json",
  accept: "application/json",
  "X-Broker-API-Version": "2.17",
  authorization: `Basic ${btoa("bench:bench")}`,
};

await measure(async ({ folder, quick }) => {
  const [rounds, creates] = quick ? [2, 1_000] : [4, 10_000];
  const broker = await startBroker();
  const written = { commits: 0 };
  const { platform, until } = await openBench(counting(sqliteStore(join(folder, "play.db")), written), broker);
  const accept = () => platform.instances.create({ space, name: randomUUID() }, { ...wanted, parameters }, asking);

  let commits = 0;
  const play = async () => {
    platform.journal.pauseLanes(new Set([laneOfBroker]));
    await timeOf(inFlight, creates, accept);
    const ended = until(creates);
    const before = written.commits;
    const begun = performance.now();
    platform.journal.pauseLanes(new Set());
    await ended;
    const tookMs = performance.now() - begun;
    commits = (written.commits - before) / creates;
    return (creates * 1_000) / tookMs;
  };
  const results = await inTurn(rounds, {
    fetch: async () => (creates * 1_000) / (await timeOf(inFlight, creates, () => bareFetch(broker))),
    platform: play,
  });
  broker.end();
  const shown = creates.toLocaleString("en");
  return [
    shareOf(
      `playing ${shown} creates, ${inFlight} in flight, against a bare loop of fetch`,
      ...([results.platform, results.fetch, 0.5] as const),
    ),
    atMost("commits for a create that is played: ahead of the call, its answer, and its end", commits, 3, count, ""),
  ];
});

/** What whoever had no platform would write. */
async function bareFetch({ url }: InstantBroker): Promise<void> {
  const path = `/v2/service_instances/${randomUUID()}?accepts_incomplete=true`;
  const answer = await fetch(`${url}${path}`, { method: "PUT", headers, body });
  if (answer.status !== 201) throw new Error(`the broker answered ${answer.status}`);
  await answer.json();
}

/** Counts what is committed of instances; claims of many at once are not of one. */
function counting(store: Store, written: { commits: number }): Store {
  return interposedStore(store, ({ method, args }, go) => {
    if (method === "commit" && (args[0] as { readonly key: string }).key.startsWith("instance/")) written.commits++;
    return go();
  });
}
