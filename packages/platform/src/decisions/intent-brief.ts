import type { HoldReason, IntentBrief } from "../records/instance-record.js";
import { hasMoreBytes } from "./byte-length.js";
import { shortened } from "./revision.js";

/** The journal keeps 1,024 bytes. */
const mostBytes = 1_000;

/** What an intent says of itself in a word. What does not fit is left out in a way that makes it wait rather than run too early. */
export function intentBrief(brief: IntentBrief): IntentBrief {
  const short = isShort(brief, 60) ? brief : shortTexts(brief, 60);
  if (fits(short)) return short;
  const bare: IntentBrief = { ...short, paths: brief.paths.length === 0 ? [] : ["*"] };
  return fits(bare) ? bare : shortTexts(bare, 20);
}

/** Most are: those are not copied. */
function isShort({ summary, by, plan, heldFor }: IntentBrief, most: number): boolean {
  return summary.length <= most + 20 && by.length <= most && (plan?.length ?? 0) <= most && heldFor === undefined;
}

function shortTexts(brief: IntentBrief, most: number): IntentBrief {
  return {
    ...brief,
    summary: shortened(brief.summary, most + 20),
    by: shortened(brief.by, most),
    ...(brief.plan !== undefined && { plan: shortened(brief.plan, most) }),
    ...(brief.heldFor !== undefined && { heldFor: shortReason(brief.heldFor, most) }),
  };
}

function shortReason(reason: HoldReason, most: number): HoldReason {
  return reason.kind === "delete" ? reason : { ...reason, message: shortened(reason.message, most) };
}

function fits(brief: IntentBrief): boolean {
  return isTiny(brief) || !hasMoreBytes(JSON.stringify(brief), mostBytes);
}

/** Most are, and need not be written down to be counted: a character has at most six bytes in JSON, and all that is around them fits into the rest. */
function isTiny({ op, summary, by, asked, plan, binding, cascade, paths, heldFor, after }: IntentBrief): boolean {
  if (
    paths.length > 1 ||
    binding !== undefined ||
    cascade !== undefined ||
    heldFor !== undefined ||
    after !== undefined
  )
    return false;
  const texts = op.length + summary.length + by.length + asked.length + (plan?.length ?? 0);
  return 6 * (texts + (paths[0]?.length ?? 0)) + 200 <= mostBytes;
}
