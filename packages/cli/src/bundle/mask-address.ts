/** An address that can be recognised, and that signs nobody in: without user, password, fragment, and the values of its query. */
export function maskAddress(address: string): string {
  const url = new URL(address);
  const signIn = url.username === "" && url.password === "" ? "" : "***@";
  const query = url.search.replaceAll(/=[^&]*/g, "=***");
  return `${url.protocol}//${signIn}${url.host}${url.pathname}${query}${url.hash === "" ? "" : "#***"}`;
}
