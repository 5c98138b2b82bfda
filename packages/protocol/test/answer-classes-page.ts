import { answerClasses } from "../src/index.js";

/** The reference page of the classes of answers, in Markdown, from the table in the code. */
export function answerClassesPage(): string {
  return [
    "# Classes of answers",
    "",
    "How a platform takes what came back from a broker, and what it does next: `classify(call, received)` of `@osbert/protocol`. The page is",
    "generated from the table in the code; a test compares them.",
    "",
    "| class | what came back | provision, bind | update | deprovision, unbind | what only reads |",
    "|---|---|---|---|---|---|",
    ...Object.entries(answerClasses).map(
      ([name, { meaning, create, update, remove, read }]) =>
        `| ${[`\`${name}\``, meaning, create, update, remove, read].join(" | ")} |`,
    ),
    "",
    "- A broker that says ConcurrencyError after an attempt of the same request was lost is busy with that attempt: the next step is `poll`.",
    "- Answers of last_operation are not in the table, because they mean different things for different operations. Only `succeeded` and `failed`",
    "  end the polling, and 410 where a delete is polled: it is gone. Everything else, 400, 401, 404 and 410 included, is asked again until the time",
    "  is up. So do `waitForInstance` and `waitForBinding` of the client. A platform that polls by itself may send a delete once more when its poll is",
    "  answered with 404, and take the third equal 400 for a failure.",
    "- Errors are told apart by the field `error`, never by their description.",
    "- *Not sent* means that not a byte of the request left the machine. `brokerFetch` of `@osbert/protocol/node` knows it for certain, because",
    "  it gives every change a connection of its own and writes nothing before that stands. The built-in `fetch` knows less; where it leaves a",
    "  doubt, the class is `unknown`.",
    "- Besides the class, `classify` names the orphan that may be left: an instance or binding to delete, unless the platform goes on with it.",
    "",
  ].join("\n");
}
