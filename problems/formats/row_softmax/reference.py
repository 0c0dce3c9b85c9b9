import torch
from task import input_t, output_t

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def generate_input(rows: int, columns: int, seed: int) -> input_t:
    generator = torch.Generator(device=DEVICE).manual_seed(seed)
    x = torch.randn(rows, columns, device=DEVICE, generator=generator)
    return x, torch.empty_like(x)


def ref_kernel(data: input_t) -> output_t:
    x, output = data
    output[...] = torch.softmax(x, dim=1)
    return output


def check_implementation(data: input_t, output: output_t) -> tuple[bool, str]:
    return torch.allclose(output, ref_kernel(data)), "differs"
