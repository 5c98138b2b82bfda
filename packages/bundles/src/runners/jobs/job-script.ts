/**
 * Shell: whether a process is there, by its number and its start time. What a killed script has left asks before it sends it a signal: the
 * number may be another's by then.
 */
export const livesFunction = `lives() {
  read -r stat <"/proc/$1/stat" || return
  since=$2
  set -- @{stat##*) }
  [ "@{20}" = "$since" ]
} 2>/dev/null`.replaceAll("@{", "${");

/**
 * What stands between the broker and a bundle's program: a POSIX shell, because it has to outlive the broker, to be there in a millisecond,
 * and to need nothing but coreutils and util-linux.
 *
 *   sh run.sh BOOT TIMEOUT_SECONDS GRACE_SECONDS OUTPUT_BYTES INPUT_FILE PROGRAM ARGUMENT…
 *
 * It runs in the job's folder, as leader of a session of its own, with an environment that has nothing of the broker's. File descriptor 3
 * is a pipe to whoever started it: it ends as soon as it is settled who runs the job. Nothing is ever written to it, since its other end
 * may be dead.
 *
 * In this order:
 *
 * 1. It claims the job: a file with its process id, its start time and BOOT (start of the machine, and process namespace) gets the name
 *    `claim` by a hard link, which succeeds for one of all who try. From here on the job counts as started, by exactly this process. Killed
 *    before: nothing ran, and the next start runs it. Killed after: `claim` names a process that is no more, and the job is lost.
 * 2. Only now it runs the program, in a session of its own, so that all of its group can be ended while this shell lives on;
 *    and `beside.sh`, if there is one, as long as the program runs.
 * 3. The program has ended: what is left of its group is killed, and of what `finish.sh` knows of; that may also find another cause,
 *    or that something may be left: then the end is not written, and whoever looks ends it before it calls the job lost. What is left in the
 *    pipes is written to `out` and `err`, for two seconds and the grace: where there is no sandbox, a process that nobody finds may hold them
 *    for ever. The operator's secrets go: `kept.json`, the input without them, takes the place of `input.json`, and the folder `secrets` is removed.
 * 4. `exit` is overwritten, in place and in one write: its bytes are there since the job was placed, so that a disk that is full meanwhile
 *    cannot take the end of the job away. Killed before: lost. After: ended.
 *
 * Signals: TERM stops the job (the broker), ALRM is its time (the watch, a process of this script, so that time also ends for a job without a
 * broker), USR1 too much output, USR2 a full disk. The first one is the cause. The program's group gets TERM, and KILL after the grace. Where there is
 * `stop.sh`, that brings TERM to what the program stands for; what it cannot reach is left to the group.
 */
export const jobScript = `boot=$1 timeout=$2 grace=$3 bytes=$4 input=$5
shift 5
lives='${livesFunction}'
# Whoever sees the claim may send signals: they are heard before there is one.
cause=exit program= killer= beside= left=
end() {
  [ "$cause" = exit ] || return
  cause=$1
  [ -n "$program" ] || return
  setsid sh -c 'sleep "$1"; kill -s KILL -- "-$2"' - "$grace" "$program" &
  killer=$!
  if [ -e stop.sh ] && sh ./stop.sh; then return; fi
  kill -s TERM -- "-$program" || kill -s TERM "$program"
} 2>/dev/null
trap 'end stopped' TERM
trap 'end timeout' ALRM
trap 'end output' USR1
trap 'end disk' USR2

read -r stat </proc/$$/stat
start_time() { start=@{20}; }
start_time @{stat##*) }
echo "$$ $start $boot" >"claim.$$" && ln "claim.$$" claim 2>/dev/null || exit 1
exec 3>&-

# Output is kept as it comes, from a file descriptor. The limit is on the file of this one process (153: SIGXFSZ), not on those that the
# program writes. Until the cause is told, this shell has the pipe open, too: the program must not end by it first. TERM ends it with what it has.
keep() {
  trap 'kill "$reader" 2>/dev/null; exit 0' TERM
  prlimit --core=0 --fsize="$bytes" cat <&"$2" >"$1" 2>/dev/null & reader=$!
  wait "$reader"
  case $? in 0) ;; 153) kill -s USR1 $$ ;; *) kill -s USR2 $$ ;; esac
}
mkfifo out.pipe err.pipe || { echo "1 disk" 1<>exit; exit 1; }
# Both ends of each pipe are opened here, which waits for nobody: a program that is killed before it opened its end would leave a reader
# that waits for ever.
exec 4<>out.pipe 5<out.pipe 6>out.pipe
exec 4<>err.pipe 7<err.pipe 8>err.pipe
exec 4>&-
(exec 6>&- 7<&- 8>&-; keep out 5) & out=$!
(exec 5<&- 6>&- 8>&-; keep err 7) & err=$!
OSBERT_INPUT=$input setsid "$@" <input.json >&6 2>&8 5<&- 6>&- 7<&- 8>&- & program=$!
exec 5<&- 6>&- 7<&- 8>&-
setsid sh -c "$lives"'
sleep "$1"; if lives "$2" "$3"; then kill -s ALRM "$2"; fi' - "$timeout" $$ "$start" & watch=$!
if [ -e beside.sh ]; then setsid sh ./beside.sh $$ "$start" & beside=$!; fi
# A signal that came before there was a program.
if [ "$cause" != exit ]; then early=$cause cause=exit; end "$early"; fi

# A signal ends a wait early, with a code above 128, and so does a program that a signal ended: whether it is there tells them apart.
await() {
  while wait "$1"; code=$?; [ "$code" -gt 128 ] && kill -0 "$1" 2>/dev/null; do :; done
}
await "$program"
program_code=$code
kill -s KILL -- "-$program" 2>/dev/null
[ ! -e finish.sh ] || . ./finish.sh
[ ! -e kept.json ] || mv -f kept.json input.json
[ ! -e secrets ] || rm -rf secrets
setsid sh -c "$lives"'
sleep 2; sleep "$1"; if lives "$2" "$3"; then kill "$4" "$5"; fi' - "$grace" $$ "$start" "$out" "$err" 2>/dev/null & holding=$!
await "$out"
await "$err"
kill -s KILL -- "-$holding" 2>/dev/null
[ -n "$left" ] || echo "$program_code $cause" 1<>exit
kill -s KILL -- "-$watch" @{killer:+"-$killer"} @{beside:+"-$beside"} 2>/dev/null
rm -f out.pipe err.pipe claim.*
`.replaceAll("@{", "${");
