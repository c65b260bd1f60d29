/* The service `stats` of pod_init.c: what all processes of the pod use.
 *
 *     TOKEN stats [gpus]
 *
 * For each line that the server sends it gets these, of which some may be missing:
 *
 *     at NANOSECONDS                     of a clock that never runs backwards
 *     cpu NANOSECONDS
 *     memory BYTES                       without the file cache that the kernel frees when memory is short
 *     disk READ WRITTEN                  bytes, of processes that are alive and children they waited for
 *     network RECEIVED SENT              bytes, without loopback
 *     processes COUNT THREADS
 *     gpu INDEX, PERCENT, USED, SIZE     MiB
 *     end
 *
 * The kernel's count for the container's control group comes first, in version 2 or 1; else processes are summed up.
 * GPUs are told by one nvidia-smi that runs as long as the connection, where the container has it.
 */
#ifndef CGROUP /* tests have others */
#define CGROUP "/sys/fs/cgroup"
#endif
#define MOST_GPUS 64

struct use {
    unsigned long long ticks, own, shared, read, written;
    int count, threads;
};

/* The number after a word at the beginning of a line; -1 where there is none. */
static long long number_after(const char *content, const char *word) {
    size_t length = strlen(word);
    for (const char *place = content; place && *place; place = (place = strchr(place, '\n')) ? place + 1 : NULL)
        if (strncmp(place, word, length) == 0) return atoll(place + length);
    return -1;
}

/* CPU time of all that ever ran in the container, in nanoseconds; -1 where the kernel does not count it. */
static long long cpu_of_group(void) {
    char content[8192];
    if (access(CGROUP "/cgroup.events", F_OK) == 0 && slurp(CGROUP "/cpu.stat", content, sizeof content) > 0) {
        long long used = number_after(content, "usage_usec ");
        if (used >= 0) return used * 1000;
    }
    return slurp(CGROUP "/cpuacct/cpuacct.usage", content, sizeof content) > 0 ? atoll(content) : -1;
}

static long long memory_of_group(void) {
    char content[16384];
    int is_new = slurp(CGROUP "/memory.current", content, sizeof content) > 0;
    if (!is_new && slurp(CGROUP "/memory/memory.usage_in_bytes", content, sizeof content) <= 0) return -1;
    long long used = atoll(content), idle = 0;
    if (slurp(is_new ? CGROUP "/memory.stat" : CGROUP "/memory/memory.stat", content, sizeof content) > 0)
        idle = number_after(content, is_new ? "inactive_file " : "total_inactive_file ");
    return used > idle && idle > 0 ? used - idle : used;
}

static struct use use_of_processes(void) {
    struct use use = {0};
    struct process process;
    DIR *folder = opendir("/proc");
    unsigned long long page = (unsigned long long)sysconf(_SC_PAGESIZE), all, some;
    while (next_process(folder, &process)) {
        char content[1024];
        use.count++;
        use.threads += process.threads;
        use.ticks += process.ticks;
        if (slurp_of(process.pid, "statm", content, sizeof content) > 0 &&
            sscanf(content, "%*u %llu %llu", &all, &some) == 2) {
            use.own += (all - some) * page;
            if (some * page > use.shared) use.shared = some * page;
        }
        if (slurp_of(process.pid, "io", content, sizeof content) > 0) {
            long long read = number_after(content, "read_bytes: "), written = number_after(content, "write_bytes: ");
            if (read > 0) use.read += (unsigned long long)read;
            if (written > 0) use.written += (unsigned long long)written;
        }
    }
    if (folder) closedir(folder);
    return use;
}

static void name_network(FILE *answer) {
    unsigned long long received = 0, sent_bytes = 0, in, out;
    char row[512], name[64];
    FILE *file = fopen("/proc/net/dev", "re");
    while (file && fgets(row, sizeof row, file))
        if (sscanf(row, " %63[^:]: %llu %*u %*u %*u %*u %*u %*u %*u %llu", name, &in, &out) == 3 && strcmp(name, "lo"))
            received += in, sent_bytes += out;
    if (!file) return;
    fclose(file);
    fprintf(answer, "network %llu %llu\n", received, sent_bytes);
}

/* GPUs: lines of nvidia-smi, the last one of each */

static int start_gpus(void) {
    static char *const question[] = {"nvidia-smi", "--query-gpu=index,utilization.gpu,memory.used,memory.total",
                                     "--format=csv,noheader,nounits", "--loop-ms=1900", NULL};
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0) return -1;
    if (fork() == 0) {
        int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(nothing, 0), dup2(ends[1], 1), dup2(nothing, 2);
        become((char **)question, tell_nobody);
    }
    close(ends[1]);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    return ends[0];
}

static void name_gpus(FILE *answer, int source) {
    static char rows[MOST_GPUS][128], row[128];
    static size_t length;
    char piece[4096];
    ssize_t got;
    while (source >= 0 && (got = read(source, piece, sizeof piece)) > 0)
        for (ssize_t i = 0; i < got; i++) {
            if (piece[i] != '\n') {
                if (length < sizeof row - 1) row[length++] = piece[i];
                continue;
            }
            row[length] = 0, length = 0;
            int number = atoi(row);
            if (row[0] >= '0' && row[0] <= '9' && number < MOST_GPUS) memcpy(rows[number], row, sizeof row);
        }
    for (int number = 0; number < MOST_GPUS; number++)
        if (rows[number][0]) fprintf(answer, "gpu %s\n", rows[number]);
}

static void name_use(FILE *answer) {
    struct use use = use_of_processes();
    long long cpu = cpu_of_group(), memory = memory_of_group();
    if (cpu < 0) cpu = (long long)(use.ticks * (1000000000ULL / (unsigned long long)sysconf(_SC_CLK_TCK)));
    if (memory < 0) memory = (long long)(use.own + use.shared);
    fprintf(answer, "at %lld\ncpu %lld\nmemory %lld\ndisk %llu %llu\nprocesses %d %d\n",
            steady_now(), cpu, memory, use.read, use.written, use.count, use.threads);
}

static void serve_stats(int connection, const char *rest) {
    int gpus = strcmp(rest, "gpus") == 0 && is_on_path("nvidia-smi") ? start_gpus() : -1;
    FILE *answer = fdopen(connection, "w");
    char byte;
    while (answer && recv(connection, &byte, 1, 0) == 1) {
        if (byte != '\n') continue;
        name_use(answer);
        name_network(answer);
        name_gpus(answer, gpus);
        fprintf(answer, "end\n");
        if (fflush(answer) != 0) return;
    }
}
