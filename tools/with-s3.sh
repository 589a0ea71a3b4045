#!/usr/bin/env bash
# Runs a command with a real S3 server, and always stops the server afterwards:
#   tools/with-s3.sh versitygw|ceph COMMAND [ARGUMENT...]
# The command gets an empty bucket at $VELLUM_TEST_S3_URL, one with Object Lock (and so with versions) at
# $VELLUM_TEST_S3_LOCK_URL, and its credentials in the environment. The exit status is that of the command; 77: the
# server is not installed here.
#   versitygw  $VERSITYGW, or the program on the PATH, or in $(go env GOPATH)/bin:
#              go install github.com/versity/versitygw/cmd/versitygw@latest
#   ceph       one monitor, manager, OSD in memory, and gateway, from Debian's packages:
#              apt-get install ceph-mon ceph-mgr ceph-osd radosgw
# All listen on 127.0.0.1 only. When a server does not start, its output is shown.
set -euo pipefail

server=${1-}
if (($# < 2)) || [[ $server != versitygw && $server != ceph ]]; then
  sed -n '2,4s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
shift

missing() {
  echo "with-s3.sh: $server is not installed here: $1" >&2
  exit 77
}

# An unused port.
free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

directory=$(mktemp -d "${TMPDIR:-/tmp}/vellum-s3.XXXXXX")
servers=()
stop() {
  local status=$?
  trap - EXIT
  # The gateway first, which waits for the others.
  for ((i = ${#servers[@]} - 1; i >= 0; --i)); do kill "${servers[i]}" 2>/dev/null || true; done
  for _ in {1..50}; do
    local left=0
    for one in "${servers[@]}"; do ! kill -0 "$one" 2>/dev/null || left=1; done
    ((left)) || break
    sleep 0.1
  done
  for one in "${servers[@]}"; do kill -9 "$one" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$directory"
  exit "$status"
}
trap stop EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# begin NAME COMMAND...: in the background; its output goes to a file of that name.
begin() {
  local name=$1
  shift
  "$@" >"$directory/$name.log" 2>&1 </dev/null &
  servers+=($!)
}

failed() {
  echo "with-s3.sh: $1" >&2
  tail -n 20 "$directory"/*.log >&2 || true
  exit 1
}

# until_it_works SECONDS WHAT COMMAND...
until_it_works() {
  local deadline=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >>"$directory/wait.log" 2>&1; do
    ((SECONDS < deadline)) || failed "$what"
    for one in "${servers[@]}"; do kill -0 "$one" 2>/dev/null || failed "a server has ended"; done
    sleep 0.2
  done
}

export AWS_ACCESS_KEY_ID=vellum AWS_SECRET_ACCESS_KEY=vellum-secret AWS_REGION=us-east-1
unset AWS_PROFILE AWS_SESSION_TOKEN
port=$(free_port)
endpoint=http://127.0.0.1:$port

start_versitygw() {
  local program=${VERSITYGW-}
  [[ -n $program ]] || program=$(command -v versitygw || true)
  [[ -n $program ]] || program=$(go env GOPATH 2>/dev/null || true)/bin/versitygw
  [[ -x $program ]] || missing "go install github.com/versity/versitygw/cmd/versitygw@latest"
  mkdir "$directory/objects" "$directory/sidecar" "$directory/versions"
  # Without --keep-alive it closes the connection after each reply.
  ROOT_ACCESS_KEY=$AWS_ACCESS_KEY_ID ROOT_SECRET_KEY=$AWS_SECRET_ACCESS_KEY begin versitygw \
    "$program" --port "127.0.0.1:$port" --region "$AWS_REGION" --keep-alive \
    posix --sidecar "$directory/sidecar" --versioning-dir "$directory/versions" "$directory/objects"
}

start_ceph() {
  local program monitor_port identity
  for program in ceph-mon ceph-mgr ceph-osd radosgw radosgw-admin ceph monmaptool; do
    command -v "$program" >/dev/null || missing "no $program; ceph-mon ceph-mgr ceph-osd radosgw"
  done
  monitor_port=$(free_port)
  export CEPH_CONF=$directory/ceph.conf
  cat >"$CEPH_CONF" <<END
[global]
fsid = $(cat /proc/sys/kernel/random/uuid)
mon_host = v2:127.0.0.1:$monitor_port
public_network = 127.0.0.0/8
ms_bind_ipv4 = true
ms_bind_msgr1 = false
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
ms_mon_client_mode = crc
run_dir = $directory/run
log_file =
log_to_stderr = true
mon_cluster_log_file =
mon_data = $directory/mon
mgr_data = $directory/mgr
osd_data = $directory/osd
osd_objectstore = memstore
memstore_device_bytes = ${VELLUM_TEST_CEPH_BYTES-8589934592}
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_num = 8
osd_pool_default_pgp_num = 8
osd_pool_default_pg_autoscale_mode = off
osd_crush_chooseleaf_type = 0
mon_allow_pool_size_one = true
mon_max_pg_per_osd = 1000
rgw_data = $directory/rgw
rgw_frontends = beast endpoint=127.0.0.1:$port
END
  mkdir "$directory"/{run,mon,mgr,osd,rgw}
  monmaptool --create --addv a "[v2:127.0.0.1:$monitor_port]" --fsid "$(sed -n 's/^fsid = //p' "$CEPH_CONF")" \
    "$directory/monmap" >"$directory/monmap.log" 2>&1 || failed "monmaptool"
  ceph-mon --mkfs -i a --monmap "$directory/monmap" >"$directory/mkfs.log" 2>&1 || failed "ceph-mon --mkfs"
  begin mon ceph-mon -f -i a
  until_it_works 180 "the monitor does not answer" timeout 10 ceph -s
  begin mgr ceph-mgr -f -i a
  identity=$(cat /proc/sys/kernel/random/uuid)
  timeout 20 ceph osd new "$identity" >"$directory/new.log" 2>&1 || failed "ceph osd new"
  ceph-osd -i 0 --mkfs --osd-uuid "$identity" >"$directory/osd-mkfs.log" 2>&1 || failed "ceph-osd --mkfs"
  begin osd ceph-osd -f -i 0
  until_it_works 180 "the OSD does not come up" bash -c 'timeout 10 ceph osd stat | grep "1 up" >/dev/null'
  timeout 120 radosgw-admin user create --uid=vellum --display-name=vellum --access-key="$AWS_ACCESS_KEY_ID" \
    --secret-key="$AWS_SECRET_ACCESS_KEY" >"$directory/user.log" 2>&1 || failed "radosgw-admin user create"
  begin rgw radosgw -f -n client.rgw.a
}

# make_bucket NAME [HEADER...]
make_bucket() {
  local nothing=e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  # the hash of an empty body
  local name=$1 header headers=()
  shift
  for header; do headers+=(-H "$header"); done
  curl -sS -f -X PUT -H "x-amz-content-sha256: $nothing" "${headers[@]}" --aws-sigv4 "aws:amz:$AWS_REGION:s3" \
    --user "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" "$endpoint/$name"
}

"start_$server"
until_it_works 90 "$server does not make a bucket" make_bucket vellum
make_bucket vellum-locked "x-amz-bucket-object-lock-enabled: true" >"$directory/locked.log" 2>&1 ||
  failed "$server does not make a bucket with Object Lock"
export VELLUM_TEST_S3_URL="s3://vellum/test?endpoint=$endpoint&region=$AWS_REGION"
export VELLUM_TEST_S3_LOCK_URL="s3://vellum-locked/test?endpoint=$endpoint&region=$AWS_REGION"
# In the background: a signal to this script then ends it immediately.
"$@" &
command=$!
servers+=("$command")
status=0
wait "$command" || status=$?
exit "$status"
