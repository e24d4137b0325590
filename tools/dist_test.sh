#!/usr/bin/env bash
# Evaluates a checkpoint in GPUS processes on this machine, by gloo where there is no GPU.
# On several machines, run it on each with NNODES, NODE_RANK, MASTER_ADDR and PORT set.
set -euo pipefail

if [[ $# -lt 3 || ! $3 =~ ^[1-9][0-9]*$ ]]; then
    echo "usage: $0 CONFIG CHECKPOINT GPUS [arguments of test.py]" >&2
    exit 2
fi
config=$1
checkpoint=$2
gpus=$3
shift 3

where=(--standalone)
if [[ ${NNODES:-1} != 1 || -n ${PORT:-} ]]; then
    where=(
        --nnodes="${NNODES:-1}" --node_rank="${NODE_RANK:-0}"
        --master_addr="${MASTER_ADDR:-127.0.0.1}" --master_port="${PORT:-29500}"
    )
fi
exec "${PYTHON:-python}" -m torch.distributed.run "${where[@]}" --nproc_per_node="$gpus" \
    "$(dirname "${BASH_SOURCE[0]}")/test.py" "$config" "$checkpoint" --launcher pytorch "$@"
