import { get as getPlain } from "node:http";
import { get as getSecure } from "node:https";
import { connect } from "node:net";

/** Whether a GET is answered with 200. */
export function answers(url: string, headers: Readonly<Record<string, string>> = {}): Promise<boolean> {
  return new Promise((resolve, reject) => {
    // Whose certificate it is does not matter: nothing is sent but to a port of this machine that was just taken.
    const options = { headers, agent: false, timeout: 5_000, rejectUnauthorized: false } as const;
    const request = (url.startsWith("https:") ? getSecure : getPlain)(url, options, (response) => {
      response.resume();
      response.once("end", () => resolve(response.statusCode === 200));
      response.once("error", reject);
    });
    request.once("timeout", () => request.destroy(new Error("no answer in time")));
    request.once("error", reject);
  });
}

/** Whether somebody listens on a port of the loopback interface. */
export function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const connection = connect(port, "127.0.0.1");
    connection.once("connect", () => {
      connection.destroy();
      resolve(true);
    });
    connection.once("error", () => resolve(false));
  });
}
