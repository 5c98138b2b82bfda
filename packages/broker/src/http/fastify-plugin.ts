import { BrokerError } from "@osbert/protocol";
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { errorAnswer } from "../answers/answer.js";
import { asBrokerError } from "../answers/failure.js";
import type { Broker } from "../broker.js";
import { tellOfRefusal } from "../observe/seen-request.js";
import { SocketPeer } from "./authentication/socket-peer.js";
import { createHandler, type HandlerOptions, largestBody } from "./handler.js";
import type { WireResponse } from "./wire.js";

/** What `brokerPlugin` takes: a broker, and who may ask. */
export interface FastifyPluginOptions extends HandlerOptions {
  /** Started by you, before requests come. */
  readonly broker: Broker;
}

const empty = new Uint8Array();

/**
 * The broker as a Fastify plugin: `app.register(brokerPlugin, { broker, credentials })`, under a prefix if wanted. What the app itself
 * refuses before a route is reached stays the app's business (`frameworkErrors`, `setNotFoundHandler`; see broker-server.ts).
 */
export async function brokerPlugin(app: FastifyInstance, options: FastifyPluginOptions): Promise<void> {
  const handle = createHandler(options.broker, options);
  // Bodies are read as they are: what is JSON and what is not is for the handler to say, with the field's name in it.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "buffer", bodyLimit: largestBody }, (_request, body, done) =>
    done(null, body),
  );
  app.setErrorHandler((error: FastifyError, request, reply) => {
    const told = errorOf(error);
    if (options.broker.watch !== undefined)
      tellOfRefusal(options.broker.watch, request.method, told, reply.elapsedTime);
    return sendRefusal(reply, told);
  });
  app.route({
    method: ["GET", "HEAD", "PUT", "PATCH", "DELETE", "POST", "OPTIONS"],
    url: "/*",
    handler: (request: FastifyRequest, reply: FastifyReply) => {
      const { headers } = request.raw;
      const header = (name: string) => {
        const value = headers[name];
        return typeof value === "string" ? value : value?.[0];
      };
      const url = request.url.slice(app.prefix.length);
      const body = request.body instanceof Uint8Array ? request.body : empty;
      const answer = handle({ method: request.method, url, header, body, peer: new SocketPeer(request) });
      return answer instanceof Promise ? answer.then((given) => send(reply, given)) : send(reply, answer);
    },
  });
}

function send(reply: FastifyReply, { status, headers, body }: WireResponse): FastifyReply {
  return reply.code(status).headers(headers).send(body);
}

export function sendRefusal(reply: FastifyReply, error: BrokerError): FastifyReply {
  const { status, body } = errorAnswer(error);
  const text = reply.request.method === "HEAD" ? "" : JSON.stringify(body);
  return send(reply, { status, headers: { "content-type": "application/json" }, body: text });
}

/** What Fastify refuses by itself, in the words of a broker. */
function errorOf(error: FastifyError): BrokerError {
  const { statusCode = 500 } = error;
  if (statusCode === 413) return new BrokerError("too-large", `the body has more than ${largestBody} bytes`);
  if (statusCode < 500) return new BrokerError("bad-request", "the request cannot be read");
  return asBrokerError(error);
}
