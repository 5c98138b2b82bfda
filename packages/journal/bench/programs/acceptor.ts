import { timeOf } from "../../../../tools/bench/callers.js";
import { acceptNew, openBench } from "../operations.js";
import { connect, type Place } from "../places.js";
import { order, tell } from "../program.js";

/** Accepts operations, runs none of them, and waits for its end. */
const { place, operations } = await order<{ readonly place: Place; readonly operations: number }>();
const { journal } = await openBench(connect(place).store);
await timeOf(64, operations, () => acceptNew(journal, "one step"));
tell({ accepted: operations });
