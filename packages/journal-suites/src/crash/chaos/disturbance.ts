import type { Chance } from "../chance.js";
import { type Cut, cut, drawCut } from "./cut.js";
import { type Delay, delay, drawDelay } from "./delay.js";
import { drawEndSessions, type EndSessions, endSessions } from "./end-sessions.js";
import { drawFreeze, type Freeze, freeze } from "./freeze.js";
import { drawHalfClose, type HalfClose, halfClose } from "./half-close.js";
import { drawHalfOpen, type HalfOpen, halfOpen } from "./half-open.js";
import { drawKill, type Kill, kill } from "./kill.js";
import { drawLoseAnswer, type LoseAnswer, loseAnswer } from "./lose-answer.js";
import { drawRefuseEntries, type RefuseEntries, refuseEntries } from "./refuse-entries.js";
import { drawRestart, type Restart, restart } from "./restart.js";
import { drawRival, type Rival, rival } from "./rival.js";
import type { Scene } from "./scene.js";
import { drawSilence, type Silence, silence } from "./silence.js";
import type { Need, Terms } from "./terms.js";

/** Something that goes wrong, as data: the same seed draws the same. */
export type Disturbance =
  | Kill
  | Freeze
  | Cut
  | Delay
  | Silence
  | HalfOpen
  | HalfClose
  | LoseAnswer
  | EndSessions
  | RefuseEntries
  | Restart
  | Rival;

interface Drawn {
  readonly needs: Need | null;
  /** How often it comes, beside the others. */
  readonly weight: number;
  readonly draw: (chance: Chance, terms: Terms) => Disturbance;
}

/** Everything that can go wrong. */
const kinds: readonly Drawn[] = [
  { needs: null, weight: 3, draw: drawKill },
  { needs: "frozen processes", weight: 3, draw: drawFreeze },
  { needs: "a wire", weight: 3, draw: drawCut },
  { needs: "a wire", weight: 2, draw: drawDelay },
  { needs: "a wire", weight: 1, draw: drawSilence },
  { needs: "a wire", weight: 2, draw: drawHalfOpen },
  { needs: "a wire", weight: 1, draw: drawHalfClose },
  { needs: "a wire", weight: 6, draw: drawLoseAnswer },
  { needs: "sessions to end", weight: 3, draw: drawEndSessions },
  { needs: "entries to refuse", weight: 2, draw: drawRefuseEntries },
  { needs: "a server to restart", weight: 1, draw: drawRestart },
  { needs: "a file", weight: 3, draw: drawRival },
];

export function drawDisturbance(chance: Chance, terms: Terms): Disturbance {
  const possible = kinds.filter(({ needs }) => needs === null || terms.has.has(needs));
  const tickets = possible.flatMap(({ weight, draw }) => Array.from({ length: weight }, () => draw));
  return chance.pick(tickets)(chance, terms);
}

/** Makes it happen. Resolves when it is over, with how many processes, connections, sessions or files it hit. */
export function disturb(scene: Scene, what: Disturbance): Promise<number> {
  switch (what.kind) {
    case "kill":
      return kill(scene, what);
    case "freeze":
      return freeze(scene, what);
    case "cut":
      return cut(scene, what);
    case "delay":
      return delay(scene, what);
    case "silence":
      return silence(scene, what);
    case "half-open":
      return halfOpen(scene, what);
    case "half-close":
      return halfClose(scene, what);
    case "lose answer":
      return loseAnswer(scene, what);
    case "end sessions":
      return endSessions(scene, what);
    case "refuse entries":
      return refuseEntries(scene, what);
    case "restart":
      return restart(scene);
    case "rival":
      return rival(scene, what);
  }
}
