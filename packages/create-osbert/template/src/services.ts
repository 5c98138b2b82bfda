import { defineService } from "@osbert/broker";

const greeter = defineService({
  id: "a1f3a6de-6c6b-4f0f-9d0c-2f1b6e1f7a10",
  name: "greeter",
  description: "Says hello in the language you choose",
  plans: {
    polite: {
      id: "a1f3a6de-6c6b-4f0f-9d0c-2f1b6e1f7a11",
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
    // A recorded step is never run again, not even after a crash.
    const greeting = await operation.step("choose words", () =>
      parameters.language === "de" ? "Guten Tag" : "Good day",
    );
    return { state: { greeting } };
  },

  async bind(_operation, { state, binding }) {
    return { credentials: { words: `${state.greeting}, ${binding.id}` } };
  },
});

export const services = [greeter];
