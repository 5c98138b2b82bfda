import { JournalError, type JournalErrorCode, journalErrors } from "@osbert/journal";
import { brokerErrors, classify } from "@osbert/protocol";
import { asBrokerError } from "../src/endpoints/as-broker-error.js";

/** The reference page of all errors, in Markdown, from the tables in the code. */
export function errorsPage(): string {
  return [
    "# Errors",
    "",
    "Every error that a broker answers with, and every error that the journal below it knows. The page is generated from the tables in the code;",
    "a test compares them. What to throw when is in [the guide](../guides/errors.md).",
    "",
    "## What a platform is answered",
    "",
    "The body is JSON: `error` as below, and a `description` for a person. The codes in bold are the specification's own: platforms tell them",
    "apart. *Code* is what `new BrokerError(code, description)` takes. The last two columns are how a platform takes the answer when it is that",
    "to a provision ([the classes](answer-classes.md)), and what it deletes afterwards unless it goes on with it.",
    "",
    "| status | `error` | code | meaning | platform: takes it as | platform: deletes afterwards |",
    "|---|---|---|---|---|---|",
    ...Object.entries(brokerErrors).map(([code, { status, error, reserved, meaning }]) => {
      const retryAfterMs = code === "unavailable" ? 1_000 : undefined;
      const answer = { kind: "answer", status, wellFormed: true, error, retryAfterMs } as const;
      const { class: taken, orphan } = classify("provision", answer);
      const name = reserved ? `**\`${error}\`**` : `\`${error}\``;
      return `| ${status} | ${name} | \`${code}\` | ${meaning} | ${taken} | ${orphan === null ? "nothing" : `the ${orphan}`} |`;
    }),
    "",
    "A bind is taken alike, with the binding in place of the instance. To a delete, 410 counts as success.",
    "",
    "## What the journal says",
    "",
    "`JournalError` has a `code`. Who uses `@osbert/journal` alone meets them all; behind a broker, a platform is answered as the last column says.",
    "",
    "| code | meaning | answered with |",
    "|---|---|---|",
    ...Object.entries(journalErrors).map(([code, meaning]) => {
      const { status, code: told } = asBrokerError(new JournalError(code as JournalErrorCode));
      return `| \`${code}\` | ${meaning} | ${status} \`${brokerErrors[told].error}\` |`;
    }),
    "",
  ].join("\n");
}
