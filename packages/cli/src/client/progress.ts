import { formatElapsedMs } from "../duration.js";
import { fitting, plainText } from "./plain-text.js";
import type { Surroundings } from "./surroundings.js";

/** What a person sees while waiting. */
export interface Progress {
  /** What the broker says now; `undefined`: it did not answer this time. */
  tell(description: string | undefined): void;
  /** Nothing of it is left on a terminal afterwards. */
  stop(): void;
}

/** On a terminal one line that lives; elsewhere a line for every news. Always on the standard error. */
export function startProgress(what: string, surroundings: Surroundings): Progress {
  const { stderr, env } = surroundings;
  return stderr.isTTY && env.TERM !== "dumb" ? liveLine(what, surroundings) : newsLines(what, surroundings);
}

const frameMs = 100;
const clearLine = "\r\u001b[2K";
/** What is told while nothing is heard. */
export const noAnswer = "the broker does not answer; asking again";

function liveLine(what: string, { stderr, env, now }: Surroundings): Progress {
  const frames = /utf-?8/i.test(env.LC_ALL || env.LC_CTYPE || env.LANG || "") ? "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏" : "|/-\\";
  const started = now();
  let news = "";
  let frame = 0;
  const draw = (): void => {
    const mark = frames[frame++ % frames.length];
    const line = `${mark} ${what} (${formatElapsedMs(now() - started)})${news === "" ? "" : `: ${news}`}`;
    // One column stays free: a full line makes some terminals go to the next.
    stderr.write(clearLine + fitting(line, Math.max(20, stderr.columns ?? 80) - 1));
  };
  draw();
  const timer = setInterval(draw, frameMs);
  return {
    tell(description) {
      news = plainText(description ?? noAnswer, 500);
    },
    stop() {
      clearInterval(timer);
      stderr.write(clearLine);
    },
  };
}

function newsLines(what: string, { stderr }: Surroundings): Progress {
  let last: string | undefined;
  stderr.write(`${what}\n`);
  return {
    tell(description) {
      const news = plainText(description ?? noAnswer, 500);
      if (news !== last && news !== "") stderr.write(`${what}: ${news}\n`);
      last = news;
    },
    stop() {},
  };
}
