#!/usr/bin/env bash
# Checks a build of PyTorch every night. workflow.yml runs these steps as jobs; without a step, all of them run on this machine.
#
#   nightly.sh                  all steps, one after the other
#   nightly.sh reader RELEASE   build the environment of a release, read the corpus with it, and judge
#   nightly.sh earlier          download the trees of the last 14 days (GitHub Actions only; needs gh)
#   nightly.sh candidate K/N    write and read part K of N with the build, and compare it with the newest release
#   nightly.sh judge            judge the corpus and the trees of all parts together
#
# BUILD      the build: python:PATH, wheel:FILE or nightly:DATE; today's nightly unless set
# RELEASES   the releases of the step "reader" if no step is given, separated by spaces; none unless set
# TREES      the directory of the build's trees; "trees" unless set
# EARLIER    the directory of the trees of earlier nights; "earlier" unless set
# RESULTS    the directory of the reports; "results" unless set
#
# The exit status is that of torch-compat: 0 nothing is broken; 1 a promise is broken; 2 wrong usage; 3 internal error; 4 incomplete.
set -euo pipefail

today=$(date -u +%F)
days=14 # how long a tree counts as evidence
build=${BUILD:-nightly:$today}
trees=${TREES:-trees}
earlier=${EARLIER:-earlier}
results=${RESULTS:-results}
mkdir -p "$trees" "$earlier" "$results"

reader() { # reader RELEASE
  torch-compat readers build "$1"
  torch-compat replay --reader "$1" --require "$1" --as-of "$today" --output "json=$results/reader-$1.json"
}

earlier() {
  local since run
  since=$(date -u -d "$days days ago" +%F)
  gh run list --workflow "$GITHUB_WORKFLOW" --created ">=$since" --status completed --json databaseId --jq '.[].databaseId' |
    while read -r run; do
      # a run that failed before it had trees has none; that is no reason to stop
      gh run download "$run" --pattern 'trees-*' --dir "$earlier/$run" </dev/null || echo "run $run: no trees" >&2
    done
}

candidate() { # candidate K/N
  local found arguments=()
  while IFS= read -r found; do arguments+=(--earlier "$found"); done < <(
    find "$earlier" -name build.json | while IFS= read -r found; do dirname "$(dirname "$found")"; done | sort -u
  )
  torch-compat candidate "$build" --all --shard "$1" --into "$trees" --keep "$days" ${arguments[@]+"${arguments[@]}"} --full |
    tee "$results/candidate-${1/\//-of-}.txt"
}

judge() {
  torch-compat judge --with "$trees" --as-of "$today" --output "json=$results/judged.json" \
    --output "summary=${GITHUB_STEP_SUMMARY:-$results/summary.md}"
}

all() {
  local release worst=0
  local -a releases=()
  read -r -a releases <<<"${RELEASES:-}"
  for release in ${releases[@]+"${releases[@]}"}; do step reader "$release"; done
  step candidate 1/1
  step judge
  return "$worst"
}

step() { # step NAME [ARGUMENT]: run it in a separate process, and keep the most severe exit status in "worst"
  local status=0
  printf '\n==> %s\n' "$*"
  bash "$0" "$@" || status=$?
  worst=$(worse "$worst" "$status")
}

worse() { # the more severe of two exit statuses; any status that torch-compat does not define counts as an internal error
  local one
  for one in 3 2 1 4 0; do
    case " $1 $2 " in *" $one "*) break ;; esac
  done
  case "$1$2" in [0-4][0-4]) echo "$one" ;; *) echo 3 ;; esac
}

case ${1:-all} in
  reader | candidate) [ $# = 2 ] || { sed -n '2,9p' "$0" >&2; exit 2; } ;;
  earlier | judge | all) [ $# -le 1 ] || { sed -n '2,9p' "$0" >&2; exit 2; } ;;
  *) sed -n '2,9p' "$0" >&2; exit 2 ;;
esac
"${@:-all}"
