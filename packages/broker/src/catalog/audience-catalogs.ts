import { createHash } from "node:crypto";
import type { ServiceOffering } from "@osbert/protocol";
import { BrokerError } from "@osbert/protocol";
import { Pieces } from "@osbert/server";
import type { BrokerCatalog } from "./catalog.js";
import type { Audience } from "./service-source.js";

/** What GET /v2/catalog is answered with. */
export interface PublishedCatalog {
  /** Changes with the bytes. */
  readonly etag: string;
  /** The body, encoded, in pieces. */
  readonly pieces: Pieces;
  /** When it was last changed; `null`: that is not known. */
  readonly changedAt: number | null;
}

/** Of so many platforms, and so much of it, what they see is kept ready. */
const mostPlatforms = 256;
const mostBytes = 67_108_864;

/** What each platform sees of a catalog: made when it is asked for, once for each catalog and version, and kept for those who asked last. */
export class AudienceCatalogs {
  readonly #audience: Audience;
  /** The one that was asked for longest ago comes first. */
  readonly #made = new Map<string, Made>();
  #bytes = 0;

  constructor(audience: Audience) {
    this.#audience = audience;
  }

  /** Throws a 503 while nobody knows what the platform sees: an empty catalog would be taken for the truth. */
  of(platform: string, catalog: BrokerCatalog): PublishedCatalog {
    const version = this.#audience.version(platform);
    if (version === undefined) {
      const words = "what this platform is offered is not known yet; ask again later";
      throw new BrokerError("unavailable", words, { retryAfterSeconds: 5 });
    }
    const before = this.#made.get(platform);
    const isSame = before !== undefined && before.of === catalog.services && before.version === version;
    const published = isSame ? before.published : this.#publish(platform, catalog);
    this.#keep(platform, { of: catalog.services, version, published });
    return { ...published, changedAt: latest(catalog.changedAt, this.#audience.changedAt?.(platform) ?? null) };
  }

  #publish(platform: string, catalog: BrokerCatalog): Made["published"] {
    const services: ServiceOffering[] = [];
    for (const [id, { offering }] of catalog.services) {
      const plans = offering.plans.filter((plan) => this.#audience.sees(platform, id, plan.id));
      if (plans.length > 0) services.push(plans.length === offering.plans.length ? offering : { ...offering, plans });
    }
    const bytes = new TextEncoder().encode(JSON.stringify({ services }));
    return {
      pieces: new Pieces([bytes]),
      etag: `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 27)}"`,
    };
  }

  #keep(platform: string, made: Made): void {
    this.#drop(platform);
    this.#made.set(platform, made);
    this.#bytes += made.published.pieces.byteLength;
    for (const oldest of this.#made.keys()) {
      if (this.#made.size <= mostPlatforms && this.#bytes <= mostBytes) return;
      this.#drop(oldest);
    }
  }

  #drop(platform: string): void {
    this.#bytes -= this.#made.get(platform)?.published.pieces.byteLength ?? 0;
    this.#made.delete(platform);
  }
}

interface Made {
  readonly of: BrokerCatalog["services"];
  readonly version: string;
  readonly published: Pick<PublishedCatalog, "etag" | "pieces">;
}

/** Of a time that is not known, nobody can say that it is not the later one. */
function latest(one: number | null, other: number | null): number | null {
  return one === null || other === null ? null : Math.max(one, other);
}
