/**
 * What stands between a bundle's program and the cluster, in the pod: three shell scripts for busybox, which the first container brings along,
 * so that the bundle's image needs neither a shell nor anything else. They are the same for all jobs and hold nothing of an input.
 *
 *   prepare (init container)   puts busybox, three pipes and the files of the bundle into folders that the other two share
 *   bundle                     runs the program: standard input from the file, both outputs into pipes; tells it to end
 *   keeper                     writes what comes out of the pipes to files that only it can reach, bounds them, holds the time, and
 *                              stays until somebody has read them
 *
 * The container's own log stays empty: what a program prints may be credentials, and logs of pods are read and shipped by others.
 *
 * The keeper is another container than the bundle's, so that a kill for memory there does not take what was printed, and the bundle can
 * neither write more than it may nor change what it has said. What it decides (time, output, stop) it writes down first, by a file that only
 * the first one can make, and then tells through a pipe. A bundle that takes that word away from its own first process is ended by the
 * deadline of the Job, or by whoever looks at it.
 */
export const podPlaces = {
  /** Busybox and the pipes; the bundle cannot change it. */
  tools: "/osbert",
  busybox: "/osbert/busybox",
  /** The keeper's alone. */
  kept: "/kept",
  bundle: "/bundle",
  files: "/files/files.tar.gz",
  inputFolder: "/run/osbert",
  input: "/run/osbert/input.json",
} as const;

/** `prepare HAS_FILES`. Its image needs a busybox that needs no library, in its PATH. */
export const prepareScript = `set -e
umask 0
found=
IFS=:
for folder in $PATH; do if [ -z "$found" ] && [ -x "$folder/busybox" ]; then found=$folder/busybox; fi; done
unset IFS
[ -n "$found" ] || { echo "the helper image has no busybox" >&2; exit 1; }
cp "$found" /osbert/busybox
chmod 755 /osbert/busybox
/osbert/busybox mkfifo -m 666 /osbert/out /osbert/err /osbert/word
[ "$1" = no ] || /osbert/busybox tar -xzf /files/files.tar.gz -C /bundle
`;

/**
 * `bundle GRACE_SECONDS CPU_SECONDS HIDE PROGRAM ARGUMENT…`. It is the first process of its container: when it ends, all do, and no other
 * process there can kill it. The pipes are opened before all else, which waits for the keeper: what is written into a pipe that nobody reads is
 * gone with its writer. They stay open until the end, so that the keeper sees no end before all has ended.
 */
export const bundleScript = `b=/osbert/busybox grace=$1 cpu=$2 hide=$3
shift 3
exec 6>/osbert/out 7>/osbert/err
program= ending=
end() {
  [ -z "$ending" ] || return
  ending=yes
  [ -n "$program" ] || return
  kill -s TERM -- "-$program" || kill -s TERM "$program"
  ("$b" sleep "$grace"; kill -s KILL -- "-$program") &
} 2>/dev/null
trap end TERM USR1
(read -r word </osbert/word; kill -s USR1 1) 6>&- 7>&- &
# The cluster puts its own address into every environment. Who has no business with it does not get it.
if [ "$hide" = yes ]; then
  for name in $("$b" env | "$b" sed -n 's/^\\(KUBERNETES_[A-Z0-9_]*\\)=.*/\\1/p'); do unset "$name"; done
fi
# Found here, because some builds of busybox run their own programs where a name alone is given.
case $1 in
  */*) found=$1 ;;
  *) found=
    IFS=:
    for folder in $PATH; do
      if [ -z "$found" ] && [ -f "$folder/$1" ] && [ -x "$folder/$1" ]; then found=$folder/$1; fi
    done
    unset IFS ;;
esac
if [ -z "$found" ]; then echo "$1: there is no such program in the image" >&7; exit 127; fi
shift
(unset ending; ulimit -c 0; ulimit -t "$cpu"; exec "$b" setsid "$found" "$@") <"$OSBERT_INPUT" >&6 2>&7 6>&- 7>&- & program=$!
# A word that came before there was a program.
if [ -n "$ending" ]; then ending=; end; fi
while wait "$program"; code=$?; [ "$code" -gt 128 ] && kill -0 "$program" 2>/dev/null; do :; done
exit "$code"
`;

/** `keeper OUTPUT_BYTES TIMEOUT_SECONDS STAY_SECONDS`. `ulimit -f` counts blocks of 512 bytes; 153 is SIGXFSZ. */
export const keeperScript = `b=/osbert/busybox bytes=$1 seconds=$2 stay=$3
cd /kept || exit 1
exec 3<>/osbert/word
leaving=
trap '[ ! -e done ] || exit 0; leaving=yes' TERM
trap 'exit 0' USR1
tell() {
  [ ! -e done ] && (set -C; echo "$1" >cause) 2>/dev/null && echo "$1" >&3
}
keep() {
  (ulimit -c 0; ulimit -f $((bytes / 512 + 1)); exec "$b" cat <"/osbert/$1" >"$1" 2>/dev/null)
  case $? in 0) ;; 153) tell output ;; *) tell disk ;; esac
  [ "$("$b" wc -c <"$1")" -le "$bytes" ] || tell output
}
await() {
  while wait "$1"; code=$?; [ "$code" -gt 128 ] && kill -0 "$1" 2>/dev/null; do :; done
}
keep out 2>/dev/null & out=$!
keep err 2>/dev/null & err=$!
("$b" sleep "$seconds"; tell timeout) & watch=$!
# Whatever happens, it does not stay for ever.
("$b" sleep $((seconds + stay)); kill -s USR1 1) & last=$!
await "$out"
await "$err"
kill "$watch" 2>/dev/null
: >done
[ -z "$leaving" ] || exit 0
"$b" sleep "$stay" & wait $!
`;

const inKept = "b=/osbert/busybox; cd /kept || exit 1; ";

/** What is run in the keeper's container from outside. */
export const keeperCommands = {
  /** Tells whether all has been kept, why it was ended, and how long both outputs are. */
  look: () =>
    command(
      'if [ -e done ]; then echo done; else echo open; fi; if [ -e cause ]; then "$b" cat cause; else echo exit; fi; for each in out err; do if [ -e "$each" ]; then "$b" wc -c <"$each"; else echo 0; fi; done',
    ),
  stop: () =>
    command("[ -e done ] || { (set -C; echo stopped >cause) 2>/dev/null && echo stopped 1<>/osbert/word; } || :"),
  /** Bytes of `out` or `err` from one on. */
  read: (name: "out" | "err", from: number, most: number) =>
    command('[ ! -e "$1" ] || "$b" tail -c "+$2" "$1" | "$b" head -c "$3"', name, String(from + 1), String(most)),
} as const;

function command(script: string, ...args: readonly string[]): readonly string[] {
  return [podPlaces.busybox, "sh", "-c", `${inKept}${script}`, "osbert", ...args];
}
