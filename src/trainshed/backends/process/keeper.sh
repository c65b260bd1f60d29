# The keeper without a compiler: the same arguments, files and promises as keeper.c, in POSIX sh.
#
#     sh -c THIS keeper RUN WORK GROUP PROGRAM [ARG...]
#
# It may assume what keeper.c assumes, and that it was made a child subreaper before this shell began:
# what double-forks away comes back here. A shell cannot tell exit 137 from a death by signal 9, but it
# says "Killed" on its own stderr after the latter. That stderr is the record itself, so the words stand
# between the lines `program` and `status CODE`, and whoever reads the record can tell.
# Times are missing from its lines: the file's own times stand in for them. GROUP is not used: a process that
# joins a cgroup waits some 10 ms for the kernel, and only C can ask for one that is born there.

run=$1 work=$2
shift 3

# Caught, not ignored: a caught signal has its default action again in the program.
trap : HUP INT QUIT TERM USR1 USR2 ALRM

mv "$run/ready" "$run/record" 2>/dev/null || exit 0
exec 3>&1 4>&2 1>/dev/null
exec 9<>"$run/record" 2>&9
cd / || exit 0

# Field 22 of a stat line; the command in parentheses may hold anything, so count from behind it.
start() {
    set -f
    # shellcheck disable=SC2086
    set -- ${1##*) }
    shift 19
    printf %s "$1"
}

read -r boot </proc/sys/kernel/random/boot_id || boot=-
read -r stat </proc/$$/stat
printf 'keeper %d %s %s\n' $$ "$(start "$stat")" "$boot" >&9

if command -v setsid >/dev/null 2>&1; then leader=setsid; else leader=; fi

# In the foreground: a background command of a shell has SIGINT and SIGQUIT ignored.
(
    trap - HUP INT QUIT TERM USR1 USR2 ALRM
    read -r stat </proc/self/stat
    printf 'program %d %s\n' "${stat%% *}" "$(start "$stat")" >&9
    exec 1>&3 2>&4 3>&- 4>&- 9>&-
    cd "$work" || exit 126
    exec $leader "$@"
)
status=$?

# Descendants whose parent dies become children of this shell: no children means nothing is left.
children() {
    if [ -r /proc/$$/task/$$/children ]; then
        kids=
        read -r kids </proc/$$/task/$$/children
        return
    fi
    kids=
    for stat in /proc/[0-9]*/stat; do
        read -r line <"$stat" || continue
        parent=${line##*) ? }
        if [ "${parent%% *}" = $$ ]; then kids="$kids ${line%% *}"; fi
    done
}

{
    while children; [ -n "$kids" ]; do
        # shellcheck disable=SC2086
        kill -9 $kids
        sleep 0.02 || sleep 1
    done
} 2>/dev/null

printf 'status %d\n' "$status" >&9
