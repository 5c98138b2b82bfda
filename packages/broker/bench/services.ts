import { defineService } from "@osbert/broker";

/** As large as a real one: ten services of three plans with schemas. */
export const services = Array.from({ length: 10 }, (_, index) =>
  defineService({
    id: `service-${index}`,
    name: `service-${index}`,
    description: "A service like those that people offer, with a description of some length",
    tags: ["sql", "managed"],
    plans: Object.fromEntries(
      ["small", "medium", "large"].map((size) => [
        size,
        {
          id: `service-${index}-${size}`,
          description: `The ${size} one`,
          provision: {
            type: "object",
            properties: {
              name: { type: "string", pattern: "^[a-z]{1,40}$" },
              size: { type: "integer", minimum: 1, maximum: 100 },
            },
            additionalProperties: false,
          },
        },
      ]),
    ),
    async provision() {
      return {};
    },
    async bind() {
      return { credentials: { password: "secret" } };
    },
  }),
);
