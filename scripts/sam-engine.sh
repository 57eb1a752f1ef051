#!/usr/bin/env bash
# An engine for `sam local` on a machine that has none and reaches no container registry: Docker from Debian's packages,
# and in it a stand-in for Lambda's base image, made of Debian's minimal system and this machine's own CPython.
#
# The stand-in is NOT AWS's image: Debian's C library, this machine's build of Python, the runtime client and boto3 from
# PyPI. It shows that handlers, layers and SAM's emulator work together, not how Lambda itself behaves.
# It carries the name under which SAM looks for AWS's image, and so it lives only in an engine of its own, apart
# from any other on this machine; whoever has a working engine needs none of this.
#
#   scripts/sam-engine.sh start SAM_PYTHON [VERSION]   start it, make the image if there is none; prints the DOCKER_HOST
#   scripts/sam-engine.sh stop                         stop it, and whatever runs in it
#   scripts/sam-engine.sh status                       does it run? prints its DOCKER_HOST if it does
#   scripts/sam-engine.sh image SAM_PYTHON [VERSION]   what SAM calls AWS's image
#
# SAM_PYTHON is the python that has aws-sam-cli installed, VERSION that of the stand-in's Python, 3.13 unless said.
# After `start`: sam local ... --skip-pull-image
# Needs root on Debian or its kin, and a CPython of that version: PYTHON=/path/to/python3.13 if it is not found by itself.
# The first start takes a minute and 1 GB in SAM_ENGINE_DIR (~/.cache/mcp-functions/sam-engine), the next a few seconds.
set -euo pipefail

RUNTIME_CLIENT=awslambdaric==4.2.2
BOTO3=boto3==1.44.8
LIBRARIES=/var/lang/lib:/lib64:/usr/lib64:/var/runtime:/var/runtime/lib:/var/task:/var/task/lib:/opt/lib
DIR=${SAM_ENGINE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/mcp-functions/sam-engine}
SOCKET=$DIR/docker.sock
export DOCKER_HOST=unix://$SOCKET DEBIAN_FRONTEND=noninteractive

say() { printf 'sam-engine: [%3ss] %s\n' "$SECONDS" "$*" >&2; }
die() { printf 'sam-engine: %s\n' "$*" >&2; exit 2; }
runs() { docker version >/dev/null 2>&1; }

# ---- The engine

install_packages() {
  type dockerd docker debootstrap iptables >/dev/null 2>&1 && return
  command -v apt-get >/dev/null || die "no apt-get: this script knows Debian and its kin only"
  say "Debian's docker.io and debootstrap"
  local policy=/usr/sbin/policy-rc.d ours=
  # Debian's own way to install a service without starting it
  [ -e $policy ] || { printf '#!/bin/sh\nexit 101\n' >$policy && chmod 755 $policy && ours=1; }
  { apt-get update -qq && apt-get install -y -qq --no-install-recommends docker.io iptables debootstrap &&
    { command -v docker || apt-get install -y -qq --no-install-recommends docker-cli; }; } >"$DIR/apt.log" 2>&1 ||
    { tail -5 "$DIR/apt.log" >&2; [ -z $ours ] || rm $policy; die "apt-get could not install them: $DIR/apt.log"; }
  [ -z $ours ] || rm $policy
}

start_engine() {
  runs && return
  say "the engine"
  setsid nohup dockerd --host "$DOCKER_HOST" --data-root "$DIR/data" --exec-root "$DIR/exec" --pidfile "$DIR/docker.pid" \
    >"$DIR/dockerd.log" 2>&1 </dev/null &
  for _ in $(seq 150); do runs && return; sleep .2; done
  tail -5 "$DIR/dockerd.log" >&2
  die "the engine does not start: $DIR/dockerd.log"
}

stop_engine() {
  local pid
  pid=$(cat "$DIR/docker.pid" 2>/dev/null) || return 0
  if runs; then
    docker ps --all --quiet | xargs --no-run-if-empty docker rm --force >/dev/null
    docker image prune --force >/dev/null # SAM builds its image anew for every run, and leaves the one before
  fi
  kill "$pid" 2>/dev/null || return 0
  for _ in $(seq 150); do kill -0 "$pid" 2>/dev/null || return 0; sleep .2; done
  die "the engine does not stop: process $pid"
}

# ---- The stand-in

find_python() { # the first that really runs: an interpreter on the PATH may be only a shim
  local root candidate
  root=$(pyenv root 2>/dev/null || true)
  for candidate in "${PYTHON:-python$1}" "python$1" "$root/versions/$1".*/bin/python"$1"; do
    "$candidate" -c "import sys; sys.exit('%d.%d' % sys.version_info[:2] != '$1')" 2>/dev/null || continue
    "$candidate" -c 'import os, sys; print(os.path.realpath(sys.executable), sys.base_prefix)'
    return
  done
  die "no python$1 here that runs: install one, or name it: PYTHON=/path/to/python$1"
}

# Debian's packages that hold the libraries which this CPython and its modules are linked against
packages_behind() {
  find "$@" -name '*.so*' ! -name '_tkinter*' -print0 | xargs -0 ldd 2>/dev/null |
    awk '$2 == "=>" && $3 ~ /^\// { n = split($3, part, "/"); print "*/" part[n] }' | sort --unique |
    xargs dpkg --search 2>/dev/null | awk -F: '!/^diversion/ { print $1 }' | sort --unique | paste --serial --delimiters ,
}

make_root() { # VERSION, and the CPython's executable and prefix
  local root=$DIR/root prefix=$3 mirror
  rm -rf "$root" && mkdir -p "$root"
  say "Debian's minimal system"
  mirror=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' "Created-By: Packages" | awk -v suite="$SUITE" '$2 == suite { print $1; exit }')
  debootstrap --variant=minbase --include="ca-certificates,$(packages_behind "$2" "$prefix/lib/python$1/lib-dynload")" \
    "$SUITE" "$root" "$mirror" >"$DIR/debootstrap.log" 2>&1 || die "debootstrap failed: $DIR/debootstrap.log"
  rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,man,locale}/*

  say "/var/lang: $("$2" --version) of this machine"
  mkdir -p "$root"/var/lang/{bin,lib} "$root"/var/{runtime,task,rapid} "$root/opt"
  cp "$2" "$root/var/lang/bin/python$1"
  find "$prefix/lib" -maxdepth 1 -name "libpython$1.so*" -exec cp --no-dereference {} "$root/var/lang/lib/" \;
  tar --create --directory "$prefix/lib" --exclude=__pycache__ --exclude='config-*' --exclude=idlelib --exclude=tkinter \
    --exclude='_tkinter*' --exclude="python$1/test" --exclude='*-packages/*' "python$1" |
    tar --extract --directory "$root/var/lang/lib"

  say "/var/runtime: $RUNTIME_CLIENT, $BOTO3"
  "$SAM_PYTHON" -m pip install --disable-pip-version-check --no-compile --root-user-action=ignore \
    --only-binary=:all: --python-version "$1" --platform "manylinux2014_$(uname -m)" --platform "manylinux_2_28_$(uname -m)" \
    --target "$root/var/runtime" "$RUNTIME_CLIENT" "$BOTO3" >"$DIR/pip.log" 2>&1 || die "pip failed: $DIR/pip.log"
  write_bootstrap "$1" "$root"
}

write_bootstrap() { # VERSION and root: what the base image has at /var/runtime/bootstrap, as far as SAM's emulator needs it
  cat >"$2/var/runtime/bootstrap" <<SH
#!/bin/sh
export AWS_EXECUTION_ENV=AWS_Lambda_python$1
exec \$AWS_LAMBDA_EXEC_WRAPPER /var/lang/bin/python$1 /var/runtime/bootstrap.py
SH
  cat >"$2/var/runtime/bootstrap.py" <<'PY'
import os
import sys

version = "python%d.%d" % sys.version_info[:2]
layers = ["/opt/python/lib/%s/site-packages" % version, "/opt/python"]
sys.path[:1] = [os.environ.get("LAMBDA_TASK_ROOT", "/var/task"), *layers, "/var/runtime"]

from awslambdaric.__main__ import main

main([sys.argv[0], os.environ["_HANDLER"]])
PY
  chmod 755 "$2/var/runtime/bootstrap"
}

make_image() { # VERSION and tag
  local python prefix made
  made=$(cat "$0" /etc/os-release | sha256sum | cut -c -16)
  [ "$(docker image inspect --format '{{index .Config.Labels "mcp-functions.made"}}' "$2" 2>/dev/null)" = "$made" ] && return
  read -r python prefix < <(find_python "$1")
  [ -n "${prefix:-}" ] || exit 2
  make_root "$1" "$python" "$prefix"
  say "the stand-in image, which is not AWS's"
  tar --create --directory "$DIR/root" --exclude='./dev/*' --exclude='./proc/*' --exclude='./sys/*' . |
    docker import --message "a stand-in made of Debian and a CPython of this machine, not AWS's image" \
      --change "LABEL mcp-functions.made=$made" --change 'WORKDIR /var/task' \
      --change "ENV LANG=C.UTF-8 TZ=:/etc/localtime PATH=/var/lang/bin:/usr/local/bin:/usr/bin:/bin:/opt/bin LD_LIBRARY_PATH=$LIBRARIES LAMBDA_TASK_ROOT=/var/task LAMBDA_RUNTIME_DIR=/var/runtime" \
      - "$2" >/dev/null
  docker run --rm --network none --entrypoint "/var/lang/bin/python$1" "$2" -c 'import ctypes, sqlite3, ssl' ||
    die "this CPython does not run in the stand-in"
  rm -rf "$DIR/root"
}

image_name() { # SAM_PYTHON and version
  "$1" -c '
import platform, sys
from samcli.local.docker.lambda_image import LambdaImage, Runtime
machine = {"aarch64": "arm64"}.get(platform.machine(), platform.machine())
print(f"{LambdaImage._INVOKE_REPO_PREFIX}/{Runtime.get_image_name_tag(sys.argv[1], machine)}")' "python$2"
}

USAGE="usage: sam-engine.sh start SAM_PYTHON [VERSION] | stop | status | image SAM_PYTHON [VERSION]"
case "${1:-}" in
  start)
    SAM_PYTHON=${2:?$USAGE} VERSION=${3:-3.13}
    SUITE=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
    [ "$(id -u)" = 0 ] || die "an engine needs root"
    mkdir -p "$DIR"
    install_packages
    start_engine
    make_image "$VERSION" "$(image_name "$SAM_PYTHON" "$VERSION")"
    say "ready"
    echo "$DOCKER_HOST"
    ;;
  stop) stop_engine ;;
  status) runs && echo "$DOCKER_HOST" ;;
  image) image_name "${2:?$USAGE}" "${3:-3.13}" ;;
  *) die "$USAGE" ;;
esac
