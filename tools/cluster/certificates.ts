import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Files of keys and certificates, `NAME.key` and `NAME.crt`, for a few days. */
export interface Certificates {
  readonly file: (name: "ca" | "apiserver" | "kubelet-client" | "service-accounts", kind: "key" | "crt") => string;
}

export async function makeCertificates(directory: string): Promise<Certificates> {
  mkdirSync(directory, { mode: 0o700 });
  const file: Certificates["file"] = (name, kind) => join(directory, `${name}.${kind}`);
  const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30"];
  const make = async (
    name: "ca" | "apiserver" | "kubelet-client",
    subject: string,
    ...extensions: readonly string[]
  ) => {
    const signed = name === "ca" ? [] : ["-CA", file("ca", "crt"), "-CAkey", file("ca", "key")];
    const added = extensions.flatMap((extension) => ["-addext", extension]);
    const files = ["-keyout", file(name, "key"), "-out", file(name, "crt")];
    await run("openssl", ["req", "-x509", ...newKey, "-subj", subject, ...files, ...signed, ...added]);
  };
  await make("ca", "/CN=osbert-test-ca", "keyUsage=critical,keyCertSign,cRLSign,digitalSignature");
  const end = "basicConstraints=critical,CA:FALSE";
  await Promise.all([
    make("apiserver", "/CN=kube-apiserver", end, `subjectAltName=${names.join(",")}`, "extendedKeyUsage=serverAuth"),
    make("kubelet-client", "/O=system:masters/CN=kube-apiserver", end, "extendedKeyUsage=clientAuth"),
    serviceAccountKeys(file("service-accounts", "key"), file("service-accounts", "crt")),
  ]);
  return { file };
}

const names = ["", ".default", ".default.svc", ".default.svc.cluster.local"]
  .map((rest) => `DNS:kubernetes${rest}`)
  .concat("DNS:localhost", "IP:127.0.0.1", "IP:10.0.0.1");

/** What their tokens are signed and checked with. */
async function serviceAccountKeys(key: string, publicKey: string): Promise<void> {
  await run("openssl", ["genrsa", "-out", key, "2048"]);
  const { stdout } = await run("openssl", ["rsa", "-in", key, "-pubout"]);
  writeFileSync(publicKey, stdout);
}
