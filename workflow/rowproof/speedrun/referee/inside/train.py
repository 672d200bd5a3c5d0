"""Trusted start of a training run: it imports and waits before any line of the patched script is read.

Arguments: the script, the descriptor to the harness, and 1 to count FLOPs. The script seeds itself, by its contract;
one that forgets it gives the same weights for every seed, which the referee notices.
"""

import gc
import json
import os
import runpy
import sys
import time

import torch
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count


def _attention_flops(query, key, value, *args, out_val=None, **kwargs):
    return sdpa_flop_count(query, key, value)


def _attention_backward_flops(grad_out, query, key, value, *args, out_val=None, **kwargs):
    return sdpa_backward_flop_count(grad_out, query, key, value)


def _counter() -> FlopCounterMode:
    # PyTorch counts the attention kernels of GPUs, and not yet that of CPUs.
    aten = torch.ops.aten
    return FlopCounterMode(
        display=False,
        custom_mapping={
            aten._scaled_dot_product_flash_attention_for_cpu: _attention_flops,
            aten._scaled_dot_product_flash_attention_for_cpu_backward: _attention_backward_flops,
        },
    )


def _warm_up() -> None:
    """Load what every script needs and PyTorch loads late: kernels, and half a compiler with the first optimiser."""
    weight = torch.ones(8, 8, requires_grad=True)
    torch.nn.functional.linear(torch.ones(8, 8), weight).sum().backward()
    torch.optim.AdamW([weight]).step()


def main() -> None:
    """Report READY, wait for GO, run the script as the main program."""
    script, descriptor, count_flops = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "1"
    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    torch.use_deterministic_algorithms(True)
    _warm_up()
    counter = _counter() if count_flops else None
    sys.argv = [script]
    # At the end the interpreter takes apart what is tracked here: half a second of PyTorch in every run.
    gc.collect()
    gc.freeze()

    os.write(descriptor, json.dumps({"ready_cpu_s": time.process_time()}).encode() + b"\n")
    if os.read(descriptor, 1) != b"G":
        sys.exit("the harness must say GO, found its connection closed")
    if counter is None:
        os.close(descriptor)
        runpy.run_path(script, run_name="__main__")
        return
    with counter:
        runpy.run_path(script, run_name="__main__")
    os.write(descriptor, json.dumps({"flops": counter.get_total_flops()}).encode() + b"\n")
    os.close(descriptor)


main()
