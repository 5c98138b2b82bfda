/** The variable that overrides a setting: `listen.port` is OSBERT_LISTEN_PORT. */
export function variableOf(key: string, prefix = "OSBERT"): string {
  return `${prefix}_${key.replaceAll(".", "_").replaceAll(/[A-Z]/g, (letter) => `_${letter}`)}`.toUpperCase();
}

/** For secrets, a file can be named instead, as container platforms mount them. */
export function fileVariableOf(variable: string): string {
  return `${variable}_FILE`;
}
