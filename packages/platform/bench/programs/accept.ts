import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { openJournal } from "@osbert/journal";
import { sqliteStore } from "@osbert/journal/sqlite";
import { ratePerSecond } from "../../../../tools/bench/callers.js";
import { inTurn } from "../../../../tools/bench/rounds.js";
import { shareOf } from "../figure.js";
import { asking, laneOfBroker, openBench, parameters, space, startBroker, wanted } from "../open-bench.js";
import { measure } from "../program.js";

/** Callers that each ask for the next instance as soon as the last one is accepted. Nothing is played meanwhile, as in the journal's own figure. */
const callers = 64;

/** As the journal's own benchmark has it. */
const input = {
  service: "6f1b9d1e-4f1c-4c41-9d43-5b7c1a0d9f11",
  plan: "0c8b7a52-16b5-4d0e-8b3e-2f1d3c4b5a69",
  context: { platform: "cloudfoundry", organization: "org-guid-here", space: "space-guid-here", name: "orders-db" },
  parameters: { diskGb: 20, version: "16", extensions: ["pg_trgm", "postgis"], backup: { keepDays: 14 } },
};

await measure(async ({ folder, quick }) => {
  const [rounds, ms] = quick ? [3, 300] : [9, 1_000];
  const broker = await startBroker();
  const { platform } = await openBench(sqliteStore(join(folder, "accept.db")), broker);
  platform.journal.pauseLanes(new Set([laneOfBroker]));
  const journal = await openJournal({
    store: sqliteStore(join(folder, "journal.db")),
    kinds: { create: { run: async () => null } },
  });
  await journal.start();
  journal.pauseLanes(new Set([laneOfBroker]));

  const asked = { ...wanted, parameters };
  const create = () => platform.instances.create({ space, name: randomUUID() }, asked, asking);
  const accept = () => {
    const change = { data: input, accept: [{ kind: "create", input, lane: laneOfBroker }] };
    return journal.transact(randomUUID(), () => ({ result: null, change }), { by: asking.by, likelyNew: true });
  };
  const results = await inTurn(rounds, {
    journal: () => ratePerSecond(callers, ms, accept),
    platform: () => ratePerSecond(callers, ms, create),
  });
  broker.end();
  const what = `accepting a create, ${callers} callers, against what the journal alone accepts`;
  return [shareOf(what, results.platform, results.journal, 0.5)];
});
