import { connect, type Socket } from "node:net";
import { TLSSocket, connect as tlsConnect } from "node:tls";
import { generate } from "selfsigned";
import { beforeAll, describe, expect, test } from "vitest";
import { parseAlternativeName, readAlternativeNames } from "../src/authentication/alternative-names.js";
import { isSameSubject, parseSubject } from "../src/authentication/certificate-subject.js";
import type { Credential } from "../src/authentication/index.js";
import type { TlsOptions } from "../src/fastify/index.js";
import { basic, guarded } from "./authentication-lab.js";

interface Certificate {
  readonly cert: string;
  readonly key: string;
}

const authority = async (commonName: string): Promise<Certificate> => {
  const made = await generate([{ name: "commonName", value: commonName }], {
    algorithm: "sha256",
    keyType: "ec",
    extensions: [
      { name: "basicConstraints", cA: true, critical: true },
      { name: "keyUsage", keyCertSign: true, cRLSign: true, digitalSignature: true, critical: true },
    ],
  });
  return { cert: made.cert, key: made.private };
};

async function certificate(
  names: readonly (readonly [shortName: string, value: string])[],
  ca: Certificate | undefined,
  { uri, end }: { readonly uri?: string; readonly end?: Date } = {},
): Promise<Certificate> {
  const made = await generate(
    // The library prints a name and reads it again, but escapes nothing.
    names.map(([shortName, value]) => ({ shortName, value: value.replace(/[,+"\\<>;=]/g, "\\$&") })),
    {
      algorithm: "sha256",
      keyType: "ec",
      ...(ca !== undefined && { ca }),
      ...(end !== undefined && { notBeforeDate: new Date(end.getTime() - 86_400_000), notAfterDate: end }),
      ...(uri !== undefined && {
        extensions: [{ name: "subjectAltName", altNames: [{ type: 6, value: uri }] }],
      }),
    },
  );
  return { cert: made.cert, key: made.private };
}

let ca: Certificate;
let otherCa: Certificate;
let server: Certificate;
let platform: Certificate;

beforeAll(async () => {
  [ca, otherCa] = await Promise.all([authority("Authority"), authority("Authority")]);
  server = await certificate([["CN", "localhost"]], ca);
  platform = await certificate(
    [
      ["CN", "platform"],
      ["O", "Example, Inc."],
    ],
    ca,
  );
});

const credentials: readonly Credential[] = [
  { certificate: { subject: "CN=platform,O=Example\\, Inc." } },
  { username: "platform", password: "secret" },
];

const tls = (clientCertificates?: "request" | "require"): TlsOptions => ({
  cert: server.cert,
  key: server.key,
  ca: ca.cert,
  ...(clientCertificates !== undefined && { clientCertificates }),
});

const showing = (client?: Certificate) => ({ ca: ca.cert, servername: "localhost", ...client });

/** On a socket whose session is kept for the next one. */
function askOn(
  url: string,
  client: Certificate,
  session?: Buffer,
): Promise<{ readonly status: string; readonly isResumed: boolean; readonly session: Buffer | undefined }> {
  return new Promise((resolve, reject) => {
    let text = "";
    let kept: Buffer | undefined;
    const { port, hostname } = new URL(url);
    const socket = tlsConnect(
      { port: Number(port), host: hostname, ...showing(client), ...(session !== undefined && { session }) },
      () => {
        const isResumed = socket.isSessionReused();
        socket.write("GET /v2/catalog HTTP/1.1\r\nhost: a\r\nx-broker-api-version: 2.17\r\nconnection: close\r\n\r\n");
        socket.on("close", () => resolve({ status: text.slice(9, 12), isResumed, session: kept }));
      },
    );
    socket.on("session", (made: Buffer) => {
      kept = made;
    });
    socket.setEncoding("utf8");
    socket.on("data", (chunk: string) => {
      text += chunk;
    });
    socket.on("error", reject);
  });
}

describe("TLS", () => {
  test("AUTH-06: with a certificate the server speaks TLS, and basic credentials work in it", async () => {
    const guard = await guarded({ tls: tls(), credentials: [{ username: "platform", password: "secret" }] });
    expect(guard.server.url).toMatch(/^https:/);
    expect((await guard.ask(basic("platform", "secret"), showing())).status).toBe(200);
    expect((await guard.ask(basic("platform", "wrong"), showing())).status).toBe(401);
    expect((await guard.ask(undefined, { ...showing(), path: "/healthz" })).status).toBe(200);
    await expect(guard.ask(basic("platform", "secret"), { servername: "localhost" })).rejects.toThrow(/certificate/);
  });

  test("what is no TLS is hung up on, and the server goes on", async () => {
    const guard = await guarded({ tls: tls(), credentials: [{ username: "platform", password: "secret" }] });
    const { port } = new URL(guard.server.url);
    const ended = await new Promise<string>((resolve, reject) => {
      const socket = connect(Number(port), "127.0.0.1", () => socket.write("GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n"));
      let text = "";
      socket.setEncoding("latin1");
      socket.on("data", (chunk: string) => {
        text += chunk;
      });
      socket.on("close", () => resolve(text));
      socket.on("error", reject);
    });
    expect(ended).not.toContain("200 OK");
    expect((await guard.ask(undefined, { ...showing(), path: "/healthz" })).status).toBe(200);
  }, 20_000);

  test("a handshake that does not come to its end is hung up on, not answered", async () => {
    const guard = await guarded({ tls: tls(), credentials: [{ username: "platform", password: "secret" }] });
    const { port } = new URL(guard.server.url);
    const idle = connect(Number(port), "127.0.0.1");
    const accepted = await new Promise<Socket>((resolve) => guard.server.app.server.once("connection", resolve));
    // What Node does after handshakeTimeout, for which the test does not wait.
    const unheard = new TLSSocket(accepted, { isServer: true });
    const late = Object.assign(new Error("too late"), { code: "ERR_TLS_HANDSHAKE_TIMEOUT" });
    guard.server.app.server.emit("tlsClientError", late, unheard);
    expect(unheard.destroyed).toBe(true);
    idle.destroy();
  });

  test("bytes in TLS that are no HTTP are refused in the words of a broker", async () => {
    const guard = await guarded({ tls: tls(), credentials: [{ username: "platform", password: "secret" }] });
    const { port } = new URL(guard.server.url);
    const text = await new Promise<string>((resolve, reject) => {
      const socket = tlsConnect({ port: Number(port), host: "127.0.0.1", ...showing() }, () =>
        socket.write("nonsense\r\n\r\n"),
      );
      let all = "";
      socket.setEncoding("utf8");
      socket.on("data", (chunk: string) => {
        all += chunk;
      });
      socket.on("close", () => resolve(all));
      socket.on("error", reject);
    });
    expect(text).toMatch(/^HTTP\/1.1 400 /);
  });
});

describe("client certificates", () => {
  test("requested: the platform's certificate is enough, and it is who asked", async () => {
    const names: string[] = [];
    const { ask } = await guarded({
      tls: tls("request"),
      credentials,
      admitted: (credential) => void names.push(credential),
    });
    expect((await ask(undefined, showing(platform))).status).toBe(200);
    expect((await ask(basic("platform", "secret"), showing())).status).toBe(200);
    expect(names).toEqual(["CN=platform,O=Example\\, Inc.", "platform"]);
  });

  test("requested: none, another subject, another authority, self-signed and expired are a 401", async () => {
    const { ask } = await guarded({ tls: tls("request"), credentials });
    const subject = [
      ["CN", "platform"],
      ["O", "Example, Inc."],
    ] as const;
    const wrong = {
      none: undefined,
      "another name": await certificate([["CN", "other"], subject[1]], ca),
      "a part of the subject": await certificate([subject[0]], ca),
      "more than the subject": await certificate([...subject, ["OU", "Unit"]], ca),
      "one value that looks like two": await certificate([["CN", "platform,O=Example, Inc."]], ca),
      "another authority of the same name": await certificate(subject, otherCa),
      "self-signed": await certificate(subject, undefined),
      expired: await certificate(subject, ca, { end: new Date(Date.now() - 60_000) }),
    };
    for (const [what, client] of Object.entries(wrong)) {
      const { status, headers } = await ask(undefined, showing(client));
      expect([what, status]).toEqual([what, 401]);
      expect(headers["www-authenticate"]).toContain("Certificate realm=");
      expect([what, (await ask(undefined, { ...showing(client), path: "/healthz" })).status]).toEqual([what, 200]);
    }
  });

  test("a wrong password is wrong, whatever the certificate", async () => {
    const { ask } = await guarded({ tls: tls("request"), credentials });
    expect((await ask(basic("platform", "wrong"), showing(platform))).status).toBe(401);
  });

  test("required: without a certificate of the authority there is no connection", async () => {
    const { ask } = await guarded({ tls: tls("require"), credentials });
    const stranger = await certificate([["CN", "platform"]], otherCa);
    await expect(ask(undefined, { ...showing(), path: "/healthz" })).rejects.toThrow();
    await expect(ask(undefined, showing(stranger))).rejects.toThrow();
    expect((await ask(undefined, showing(platform))).status).toBe(200);
    const another = await certificate([["CN", "another"]], ca);
    expect((await ask(undefined, showing(another))).status).toBe(401);
  });

  test("a connection that resumes an earlier one is judged like that one", async () => {
    const guard = await guarded({ tls: tls("request"), credentials });
    const stranger = await certificate(
      [
        ["CN", "platform"],
        ["O", "Example, Inc."],
      ],
      otherCa,
    );
    for (const [client, status] of [
      [platform, "200"],
      [stranger, "401"],
    ] as const) {
      const first = await askOn(guard.server.url, client);
      const second = await askOn(guard.server.url, client, first.session);
      expect([first.status, first.isResumed, second.status, second.isResumed]).toEqual([status, false, status, true]);
    }
  });

  test("a certificate is good for its own platform alone", async () => {
    const { ask } = await guarded({
      tls: tls("request"),
      credentials: [{ certificate: { subject: "O=Example\\, Inc., CN=platform" }, platform: "east" }],
    });
    expect((await ask(undefined, { ...showing(platform), path: "/east/v2/catalog" })).status).toBe(200);
    expect((await ask(undefined, { ...showing(platform), path: "/west/v2/catalog" })).status).toBe(401);
  });

  test("an alternative name tells a caller, too", async () => {
    const uri = "spiffe://example/platform";
    const { ask } = await guarded({
      tls: tls("request"),
      credentials: [{ certificate: { alternativeName: `URI:${uri}` }, name: "mesh" }],
    });
    const subject = [["CN", "any"]] as const;
    expect((await ask(undefined, showing(await certificate(subject, ca, { uri })))).status).toBe(200);
    expect((await ask(undefined, showing(await certificate(subject, ca, { uri: `${uri}2` })))).status).toBe(401);
    const smuggled = await certificate(subject, ca, { uri: `spiffe://x, URI:${uri}` });
    expect((await ask(undefined, showing(smuggled))).status).toBe(401);
    expect((await ask(undefined, showing(platform))).status).toBe(401);
  });

  test("without TLS, or where no certificate is asked for, a header cannot stand for one", async () => {
    const { ask } = await guarded({ credentials: [{ username: "platform", password: "secret" }] });
    for (const name of ["x-client-cert", "x-forwarded-client-cert", "x-ssl-client-s-dn"]) {
      expect((await ask(undefined, { headers: { [name]: "CN=platform" } })).status).toBe(401);
    }
  });

  test("settings that let nobody in, or anyone, are refused at the start", async () => {
    await expect(guarded({ credentials })).rejects.toThrow("tls.clientCertificates");
    await expect(guarded({ credentials, tls: tls() })).rejects.toThrow("tls.clientCertificates");
    const { ca: _ca, ...withoutCa } = tls("request");
    await expect(guarded({ credentials, tls: withoutCa })).rejects.toThrow("needs tls.ca");
    await expect(guarded({ credentials, tls: { ...tls("request"), ca: [] } })).rejects.toThrow("needs tls.ca");
    const odd = [{ certificate: { subject: "platform" } }];
    await expect(guarded({ credentials: odd, tls: tls("request") })).rejects.toThrow("must look like CN=");
    const noName = [{ certificate: { alternativeName: "platform" } }];
    await expect(guarded({ credentials: noName, tls: tls("request") })).rejects.toThrow("must look like DNS:");
  });
});

describe("names in certificates", () => {
  const same = (one: string, other: string) => {
    const [a, b] = [parseSubject(one), parseSubject(other)];
    return a !== undefined && b !== undefined && isSameSubject(a, b);
  };

  test.each([
    ["CN=a,O=b", "CN=a\nO=b"],
    ["CN=a,O=b", "O=b\nCN=a"],
    ["cn = a , o = b", "CN=a\nO=b"],
    ["CN=a\\,b", "CN=a\\, b".replace(" ", "")],
    ['CN="a,b"', "CN=a\\,b"],
    ["CN=\\C3\\A4", "CN=ä"],
    ["CN=a+OU=b,O=c", "OU=b + CN=a\nO=c"],
    ["E=a@b.c", "emailAddress=a@b.c"],
    ["CN=a\\ ", "CN=a\\20"],
    ["CN=a=b", "CN=a=b"],
  ])("%s is %s", (one, other) => {
    expect(same(one, other)).toBe(true);
  });

  test.each([
    ["CN=a", "CN=A"],
    ["CN=a", "CN=a\nO=b"],
    ["CN=a\\,O=b", "CN=a\nO=b"],
    ["CN=a\\+O=b", "CN=a+O=b"],
    ["CN=a\\0AO=b", "CN=a\nO=b"],
    ["OU=a,OU=b,CN=c", "OU=b\nOU=a\nCN=c"],
    ["CN=a\\ ", "CN=a"],
    ["CN=a,O=b", "CN=a+O=b"],
  ])("%s is not %s", (one, other) => {
    expect(same(one, other)).toBe(false);
  });

  test.each(["", "a", "=a", "CN=", "CN=a,", "CN=a\\", "CN=\\FF", "C N=a", "CN=a,,O=b"])("%s is no subject", (text) => {
    expect(parseSubject(text)).toBeUndefined();
  });

  test("alternative names are read as Node prints them", () => {
    expect(readAlternativeNames('DNS:A.example, URI:"x, URI:spiffe://b", email:a@b, IP Address:127.0.0.1')).toEqual([
      "DNS:a.example",
      "URI:x, URI:spiffe://b",
      "email:a@b",
      "IP Address:127.0.0.1",
    ]);
    expect(readAlternativeNames(undefined)).toEqual([]);
    expect(parseAlternativeName("dns:A.Example")).toBe("DNS:a.example");
    expect(parseAlternativeName("othername:x")).toBeUndefined();
    expect(parseAlternativeName("DNS:")).toBeUndefined();
  });
});
