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
    "- A broker that says ConcurrencyError after an attempt of the same request was lost may be busy with that attempt: the next step is `poll`. It may be busy with something else, whose end polls tell then: a delete or an update is sent once more after it, and the answer to that counts.",
    "- Answers of last_operation are not in the table, because they mean different things for different operations. `waitForInstance` and",
    "  `waitForBinding` of the client know them by `change`, and ask again for everything that is not in the table below, 401 included.",
    "- Errors are told apart by the field `error`, never by their description.",
    "- *Not sent* means that not a byte of the request left the machine. `brokerFetch` of `@osbert/protocol/node` knows it for certain, because",
    "  it writes nothing before a connection stands. One that is kept is used for a change only if it was in use until just now, and not at all if the broker closes",
    "  such ones unasked; what breaks after the first byte is not sent again, and its class is `unknown`. The built-in `fetch` knows less, and where it leaves a doubt,",
    "  the class is `unknown`, too.",
    "- Besides the class, `classify` names the orphan that may be left: an instance or binding to delete, unless the platform goes on with it.",
    "",
    "## Answers to polling",
    "",
    "| what came back of last_operation | create | update | delete |",
    "|---|---|---|---|",
    "| `succeeded` or `failed` | it has ended | it has ended | it has ended |",
    "| 410 | asked again | asked again | it is gone |",
    "| 404 | asked again; after more than ten minutes of nothing else `operation lost`: the class is `unknown` | asked again | one more DELETE: 200 and 410 say that it is gone, after 202 its own operation is polled, any other 4xx that is not `busy` is a failure |",
    "| the third 400 in a row with the same `error` | failed | failed | failed |",
    "| anything else, or nothing | asked again | asked again | asked again |",
    "",
    "The first poll comes after a second; each pause is longer by 1.7 than the one before, up to a minute and after an hour up to five, and varies by a",
    "fifth. `Retry-After` goes before, from a second to an hour. It ends with the plan's `maximum_polling_duration`, or after a week.",
    "",
  ].join("\n");
}
