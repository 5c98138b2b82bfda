import { metricsTable } from "@osbert/server/metrics";
import {
  type ApiRouteDescription,
  apiDescriptions,
  apiRoutes,
  platformMetricDefinitions,
} from "../../src/api/index.js";
import { platformErrors } from "../../src/errors.js";

/** The reference page of the API, in Markdown, from its table of routes. */
export function apiPage(): string {
  return [
    "# The platform's API",
    "",
    "<!-- Made from packages/platform/src/api/ by a test; change it there. -->",
    "",
    "What a platform answers under `/api/v1`, with JSON. `GET /api/v1/openapi.json` has the same as an OpenAPI 3.1 document, with the form of every body; a test",
    "compares all answers with it. [Settings of a platform](platform-settings.md) say who may ask, and what.",
    "",
    "- **Roles**: `see` looks, `change` changes what is in its spaces and reads credentials, `operate` does everything in all spaces. A space that",
    "  someone does not have is answered with 404, as one that is not there.",
    "- **Wanted changes** (⧗) are kept and answered with 202, and done later. They take the header `If-Match` with the entity tag (`ETag`) that the caller has seen,",
    "  `Idempotency-Key`, so that a request that is sent twice is kept once, and `dry_run=true`, which changes nothing and tells what would be.",
    '- **Entity tags** are the revision of an instance, `"12"`, and `"12-open"` while something is open: that moves on without a new revision, and is never answered with 304.',
    "  `If-Match` takes both.",
    "- **Bodies** are JSON objects of at most 1 MiB, with `Content-Type: application/json`, and at least `{}` with every POST. A name that is not known is refused.",
    "  Numbers in parameters and credentials are as they were written, also beyond 2^53.",
    "- **Lists** come in pages: `limit` is how many, `after` what the page before gave as `next`.",
    "- **Journals** can be followed: with `Accept: text/event-stream` each line comes as a server-sent event, from `Last-Event-ID` on. A stream ends after an hour; ask anew.",
    "",
    "## Requests",
    "",
    "| request | role | query | does |",
    "|---|---|---|---|",
    ...apiRoutes.map(([method, path, name]) => row(method, path, apiDescriptions[name])),
    "",
    "## Errors",
    "",
    "Refusals are problem details (RFC 9457, `application/problem+json`) with `type`, `title`, `status`, `detail`, and `code`, `request_id` and `details` beside them.",
    "Those of a server that does not know the request yet have the codes of [a broker's errors](errors.md), such as `unauthorized` and `too-large`.",
    "",
    "| code | status | meaning |",
    "|---|---|---|",
    ...Object.entries(platformErrors).map(([code, { status, title }]) => `| \`${code}\` | ${status} | ${title} |`),
    "| `failed` | 500 | the platform is at fault; its log says more |",
    "",
    "## Metrics",
    "",
    "What `/metrics` tells, in the text format of Prometheus, beside those of the process.",
    "",
    ...metricsTable(platformMetricDefinitions),
    "",
  ].join("\n");
}

function row(method: string, path: string, { role, query = [], summary, intent }: ApiRouteDescription): string {
  const at = path.replaceAll(/:(\w+)/g, "{$1}");
  const names = query.map((name) => `\`${name}\``).join(", ");
  return `| \`${method} ${at}\` | ${role} | ${names} | ${summary}${intent ? " ⧗" : ""} |`;
}
