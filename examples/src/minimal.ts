import { createBroker, defineService } from "@osbert/broker";
import { serve } from "@osbert/broker/http";
import { sqliteStore } from "@osbert/journal/sqlite";

const greeter = defineService({
  id: "5b1e7a0c-8d54-4a5e-9a0e-0d6e2a6a4f10",
  name: "greeter",
  description: "Says hello in the language you choose",
  plans: {
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
  },
  state: { type: "object", properties: { greeting: { type: "string" } }, required: ["greeting"] },

  async provision(operation, { parameters }) {
    const greeting = await operation.step("choose words", () =>
      parameters.language === "de" ? "Guten Tag" : "Good day",
    );
    return { state: { greeting } };
  },
  async bind(_operation, { state, binding }) {
    return { credentials: { words: `${state.greeting}, ${binding.id}` } };
  },
});

const { url, credential } = await serve(createBroker({ services: [greeter], store: sqliteStore("broker.db") }), {
  port: Number(process.env.PORT ?? 8080),
});
console.log(url, credential);
