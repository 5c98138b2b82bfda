import {
  type BindInput,
  createBroker,
  type FromSchema,
  type ProvisionInput,
  type ServiceDefinition,
  type Work,
} from "@osbert/broker";
import { serve } from "@osbert/broker/http";
import { sqliteStore } from "@osbert/journal/sqlite";

// The greeter of minimal.ts as a class, for those who hand a service what it needs through a constructor. `as const` keeps the schemas
// exact, so that parameters and state get their types from them.

const plans = {
  polite: {
    id: "5b1e7a0c-8d54-4a5e-9a0e-0d6e2a6a4f11",
    description: "With a title",
    provision: {
      type: "object",
      properties: { language: { enum: ["en", "de"] } },
      required: ["language"],
      additionalProperties: false,
    },
  },
} as const;
const state = { type: "object", properties: { greeting: { type: "string" } }, required: ["greeting"] } as const;

type Plans = typeof plans;
type State = typeof state;
type Words = Readonly<Record<"en" | "de", string>>;

class Greeter implements ServiceDefinition<Plans, State, undefined> {
  readonly id = "5b1e7a0c-8d54-4a5e-9a0e-0d6e2a6a4f10";
  readonly name = "greeter";
  readonly description = "Says hello in the language you choose";
  readonly plans = plans;
  readonly state = state;
  readonly #words: Words;

  constructor(words: Words) {
    this.#words = words;
  }

  async provision(operation: Work<FromSchema<State>>, { parameters }: ProvisionInput<Plans, State>) {
    const greeting = await operation.step("choose words", () => this.#words[parameters.language]);
    return { state: { greeting } };
  }

  async bind(_operation: Work, { state: { greeting }, binding }: BindInput<Plans, State, undefined>) {
    return { credentials: { words: `${greeting}, ${binding.id}` } };
  }
}

const greeter = new Greeter({ en: "Good day", de: "Guten Tag" });
const { url, credential } = await serve(createBroker({ services: [greeter], store: sqliteStore("broker.db") }), {
  port: Number(process.env.PORT ?? 8080),
});
console.log(url, credential);
