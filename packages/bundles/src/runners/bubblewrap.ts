/** What a program may see and do in a sandbox. All paths are absolute. */
export interface Sandbox {
  /** The bundle's files: read-only, and where the program starts. */
  readonly bundle: string;
  readonly input: string;
  /** A folder with a `passwd` and a `group`: programs look up who they are, and where their home is. */
  readonly accounts: string;
  readonly network: boolean;
  /**
   * `own`: who makes the sandbox runs in it, under another number there. `nobody`: for root, who makes it and then is nobody, also
   * outside: whatever leaves the sandbox is not root.
   */
  readonly as: "own" | "nobody";
  /** Of /tmp, and of /dev/shm: both are in memory. */
  readonly tmpBytes: number;
  readonly env: Readonly<Record<string, string>>;
}

/** The accounts in a sandbox: one, which has its home in /tmp. */
export const sandboxAccounts = {
  passwd: "bundle:x:65534:65534:bundle:/tmp:/bin/sh\n",
  group: "bundle:x:65534:\n",
} as const;

/** Where a program finds its input in the sandbox. */
export const sandboxInput = "/run/osbert/input.json";

/**
 * The command line of `bwrap`, up to the program. The file system is the machine's programs and the bundle, read-only, and a /tmp of its
 * own: no home, nothing of the broker, no other job. All namespaces are its own, so that the program sees no other process and ends with all
 * that it started, sessions or not.
 *
 * `--die-with-parent` is set, and the job outlives the broker all the same: the parent is the job's script, not the broker, and a
 * sandbox whose script was killed must not go on, because nobody would record how it ended.
 *
 * TERM is ignored by bwrap itself and given back to the program: it is sent to all of the group, and a bwrap that died of it would take the
 * program along without its time to clear up.
 */
export function bubblewrap({ bundle, input, accounts, network, as, tmpBytes, env }: Sandbox): readonly string[] {
  return [
    ...["env", "--ignore-signal=TERM", "bwrap"],
    ...(as === "own" ? ["--unshare-user", "--uid", "65534", "--gid", "65534"] : []),
    ...["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"],
    ...(network ? [] : ["--unshare-net"]),
    ...["--die-with-parent", "--hostname", "bundle", "--cap-drop", "ALL"],
    ...(as === "own" ? [] : ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]),
    // Folders that bwrap makes on the way to a file are closed to all but who made them.
    ...madeFolders.flatMap((path) => ["--perms", "0755", "--dir", path]),
    ...["--ro-bind", "/usr", "/usr"],
    ...systemPaths.flatMap((path) => ["--ro-bind-try", path, path]),
    ...["passwd", "group"].flatMap((name) => ["--ro-bind", `${accounts}/${name}`, `/etc/${name}`]),
    ...(network ? networkFiles.flatMap((file) => ["--ro-bind-try", file, file]) : []),
    ...["--proc", "/proc", "--dev", "/dev"],
    // In memory and bounded, where a program may write; the rest of what bwrap makes is in memory, too, and not bounded: it is closed.
    ...["--perms", "1777", "--size", String(tmpBytes), "--tmpfs", "/dev/shm", "--remount-ro", "/dev"],
    ...["--perms", "1777", "--size", String(tmpBytes), "--tmpfs", "/tmp"],
    ...["--ro-bind", bundle, "/bundle", "--ro-bind", input, sandboxInput, "--chdir", "/bundle"],
    ...["--remount-ro", "/"],
    "--clearenv",
    ...Object.entries(env).flatMap(([name, value]) => ["--setenv", name, value]),
    "--",
    // With the user go all capabilities, and bwrap has seen to it that none comes back.
    ...(as === "own" ? [] : ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]),
    ...["env", "--default-signal=TERM"],
  ];
}

/**
 * What programs need of the machine. On merged systems the first ones are links into /usr, and are bound as what they lead to. Of /etc only
 * what anyone may know: private keys lie beside the certificates, and a broker that runs as root could read them.
 */
const systemPaths = [
  ...["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"],
  ...["/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/pki/tls/certs", "/etc/pki/ca-trust", "/etc/ca-certificates"],
  ...["/etc/ansible/ansible.cfg", "/etc/alternatives", "/etc/ld.so.cache", "/etc/nsswitch.conf", "/etc/localtime"],
];

const madeFolders = ["/etc", "/etc/ssl", "/etc/pki", "/etc/pki/tls", "/etc/ansible", "/run", "/run/osbert"];

const networkFiles = ["/etc/resolv.conf", "/etc/hosts", "/etc/services"];
