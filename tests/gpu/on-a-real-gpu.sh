#!/bin/sh
# Holds this machine's GPU to the CPU's integers, plants faults that must be noticed, and
# measures the time: a few minutes, through Vulkan. Run it from the repository's root, with
#
#     cargo build --release --features gpu        (here, or on a machine of the same kind)
#     tests/gpu/on-a-real-gpu.sh [PROGRAM]
#
# PROGRAM is the built command line; target/release/logitscope if left out. LOGITSCOPE_GPU is
# `require`, so a machine without an adapter fails rather than skips. Everything printed also
# goes to gpu-check.txt and gpu-bench.txt in the present folder, or in $OUT where that is set.
set -eu
program="${1:-target/release/logitscope}"
folder="${OUT:-.}"
export LOGITSCOPE_GPU=require
if [ -z "${VK_DRIVER_FILES:-}" ]; then
    # Mesa's software driver must not be preferred to the real one.
    for file in /usr/share/vulkan/icd.d/nvidia_icd.json /etc/vulkan/icd.d/nvidia_icd.json; do
        if [ -f "$file" ]; then export VK_DRIVER_FILES="$file"; fi
    done
fi
timeout 240 "$program" gpu check > "$folder/gpu-check.txt" || { cat "$folder/gpu-check.txt"; exit 1; }
cat "$folder/gpu-check.txt"
timeout 120 "$program" gpu bench | tee "$folder/gpu-bench.txt"
