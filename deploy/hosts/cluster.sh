#!/usr/bin/env bash
# Scheduler and workers on plain hosts, with TLS, kept running until they are stopped.
#
#   cluster.sh scheduler            on the first host
#   cluster.sh workers ADDRESS N    on every host: N worker processes
#   cluster.sh status               what runs on this host
#   cluster.sh stop                 end what runs on this host
#
# DSEL_HOST          address of this host that the others reach (default 127.0.0.1)
# DSEL_PORT          port of the scheduler (default 8786)
# DSEL_CERTIFICATES  folder with ca.pem, cert.pem and key.pem (default certificates)
# DSEL_RUN           folder for logs and process ids (default dsel-run)
# DSEL_MEMORY        limit of one worker process, such as 4GiB (default auto)
set -euo pipefail

host=${DSEL_HOST:-127.0.0.1}
port=${DSEL_PORT:-8786}
certificates=${DSEL_CERTIFICATES:-certificates}
run=${DSEL_RUN:-dsel-run}
memory=${DSEL_MEMORY:-auto}
tls=(--tls-ca-file "$certificates/ca.pem" --tls-cert "$certificates/cert.pem"
    --tls-key "$certificates/key.pem")

# One thread per process; freed memory is kept for the next chunk of a pool; and without the
# last line tasks would wait for ever once the last worker is gone.
export OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=1
export MALLOC_TRIM_THRESHOLD_=33554432 MALLOC_MMAP_THRESHOLD_=33554432
export DASK_DISTRIBUTED__WORKER__MEMORY__PAUSE=False
export DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION=true
export DASK_DISTRIBUTED__SCHEDULER__NO_WORKERS_TIMEOUT=120s

fail() {
    echo "error: $*" >&2
    exit 1
}

usage() {
    sed -n '2,14s/^# \{0,1\}//p' "$0"
    exit 2
}

again="ended and is started again"
loop="while true; do \"\$@\"; echo \"\$0 $again\"; sleep 1; done"

# Whether the loop NAME runs; after a restart its number may be another process's.
runs() {
    local pid
    pid=$(cat "$run/$1.pid" 2>/dev/null) && ps -o args= -p "$pid" | grep -qF "$again"
}

# Keep NAME COMMAND...: run the command again whenever it ends. Workers exit when they
# lose the scheduler, and a scheduler that comes back needs them again.
keep() {
    local name=$1 file
    shift
    for file in ca.pem cert.pem key.pem; do
        [ -r "$certificates/$file" ] ||
            fail "no $certificates/$file here; make it as the page says, or name its" \
                "folder in DSEL_CERTIFICATES."
    done
    command -v dask >/dev/null ||
        fail "there is no command dask; activate the environment that has dsel."
    ! runs "$name" || fail "$name runs already; stop it first."
    mkdir -p "$run"
    [ ! -e "$run/$name.log" ] || mv -f "$run/$name.log" "$run/$name.log.before"
    # A session of its own, so that `stop` reaches the loop and all that it started.
    setsid bash -c "$loop" "$name" "$@" >>"$run/$name.log" 2>&1 </dev/null &
    echo $! >"$run/$name.pid"
    echo "started $name, log in $run/$name.log"
}

case "${1:-}" in
scheduler)
    [ $# = 1 ] || usage
    keep scheduler dask scheduler --host "tls://$host" --port "$port" \
        --dashboard-address 127.0.0.1:0 "${tls[@]}"
    echo "workers and clients reach it at tls://$host:$port"
    ;;
workers)
    [ $# = 3 ] || usage
    keep workers dask worker "$2" --host "$host" --nworkers "$3" --nthreads 1 \
        --memory-limit "$memory" --dashboard-address 127.0.0.1:0 "${tls[@]}"
    ;;
status)
    for file in "$run"/*.pid; do
        [ -e "$file" ] || { echo "nothing was started here"; exit 1; }
        name=$(basename "$file" .pid)
        times=$(grep -cF "$name $again" "$run/$name.log" || true)
        if ! runs "$name"; then
            echo "$name has ended, see $run/$name.log"
        elif [ "$times" = 0 ]; then
            echo "$name runs"
        else
            echo "$name runs; ended and started again $times times, see $run/$name.log"
        fi
    done
    ;;
stop)
    for file in "$run"/*.pid; do
        [ -e "$file" ] || exit 0
        name=$(basename "$file" .pid)
        if runs "$name"; then
            group=$(cat "$file")
            kill -TERM -- "-$group"
            for ((waited = 0; waited < 100; waited++)); do
                kill -0 -- "-$group" 2>/dev/null || break
                sleep 0.1
            done
            kill -KILL -- "-$group" 2>/dev/null || true
        fi
        rm -f "$file"
    done
    ;;
*) usage ;;
esac
