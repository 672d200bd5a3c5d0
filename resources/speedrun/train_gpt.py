"""Train a small byte-level GPT on served tokens and leave its weights in final.npz."""

import os
import time
from dataclasses import dataclass

import numpy as np
import tokens
import torch
import torch.nn.functional as F
from torch import nn

# -----------------------------------------------------------------------------
# Hyper-parameters


@dataclass
class Hyperparameters:
    """All constants of a run."""

    # Optimisation.
    num_iterations = 900
    batch_size = 16
    learning_rate = 2e-3
    beta1 = 0.9
    beta2 = 0.95
    weight_decay = 0.1
    # Model.
    vocab_size = 288
    sequence_length = 128
    num_layers = 3
    num_heads = 4
    model_dim = 64
    # Reports.
    log_every = 50


args = Hyperparameters()

# -----------------------------------------------------------------------------
# Model


class CausalSelfAttention(nn.Module):
    """Attention of every position to itself and to earlier ones."""

    def __init__(self, dim, num_heads):
        """Build the projections."""
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = dim // num_heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.proj = nn.Linear(dim, dim, bias=False)

    def forward(self, x, mask):
        """Map [B, T, D] to [B, T, D]; ``mask`` is [T, T], minus infinity where attention is forbidden."""
        batch, length, dim = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.num_heads, self.head_dim).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) * self.head_dim**-0.5 + mask
        y = torch.softmax(scores, dim=-1) @ v
        return self.proj(y.transpose(1, 2).reshape(batch, length, dim))


class MLP(nn.Module):
    """Two linear maps with a non-linearity between them."""

    def __init__(self, dim):
        """Build the linear maps."""
        super().__init__()
        self.fc = nn.Linear(dim, 4 * dim, bias=False)
        self.proj = nn.Linear(4 * dim, dim, bias=False)

    def forward(self, x):
        """Map [B, T, D] to [B, T, D]."""
        return self.proj(F.gelu(self.fc(x)))


class Block(nn.Module):
    """Attention and MLP, each on a normalised copy and added to the residual stream."""

    def __init__(self, dim, num_heads):
        """Build both halves."""
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.attn = CausalSelfAttention(dim, num_heads)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = MLP(dim)

    def forward(self, x, mask):
        """Map [B, T, D] to [B, T, D]."""
        x = x + self.attn(self.norm1(x), mask)
        x = x + self.mlp(self.norm2(x))
        return x


class GPT(nn.Module):
    """A decoder-only transformer with a head that shares the weights of the embedding."""

    def __init__(self):
        """Build the model and draw its weights."""
        super().__init__()
        self.embed = nn.Embedding(args.vocab_size, args.model_dim)
        self.positions = nn.Embedding(args.sequence_length, args.model_dim)
        self.blocks = nn.ModuleList(Block(args.model_dim, args.num_heads) for _ in range(args.num_layers))
        self.norm = nn.LayerNorm(args.model_dim)
        mask = torch.full((args.sequence_length, args.sequence_length), float("-inf")).triu(1)
        self.register_buffer("mask", mask, persistent=False)
        self.init_weights()

    def init_weights(self):
        """Draw every matrix from a normal distribution; residual projections get a smaller one."""
        for name, parameter in self.named_parameters():
            if parameter.ndim < 2:
                continue
            std = 0.02
            if name.endswith("proj.weight"):
                std /= (2 * args.num_layers) ** 0.5
            nn.init.normal_(parameter, std=std)

    def forward(self, idx):
        """Map token numbers [B, T] to logits [B, T, V]."""
        length = idx.shape[1]
        x = self.embed(idx) + self.positions.weight[:length]
        mask = self.mask[:length, :length]
        for block in self.blocks:
            x = block(x, mask)
        return F.linear(self.norm(x), self.embed.weight)


# -----------------------------------------------------------------------------
# Optimiser and schedule


def build_optimizers(model):
    """The optimisers of a run; matrices decay, vectors do not."""
    matrices = [parameter for parameter in model.parameters() if parameter.ndim >= 2]
    vectors = [parameter for parameter in model.parameters() if parameter.ndim < 2]
    groups = [
        {"params": matrices, "weight_decay": args.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return [torch.optim.AdamW(groups, lr=args.learning_rate, betas=(args.beta1, args.beta2), foreach=True)]


def learning_rate_scale(step):
    """Factor on the learning rates at ``step`` (from 0)."""
    return 1.0


def batch_size_at(step):
    """Sequences in the batch of ``step`` (from 0)."""
    return args.batch_size


# -----------------------------------------------------------------------------
# Data


class DataReader:
    """Read the training stream from its start, batch after batch, without repetition."""

    def __init__(self):
        """Begin at the first token."""
        self.offset = 0

    def next_batch(self, batch_size):
        """Inputs and targets, both int64 of shape [B, T]."""
        count = batch_size * args.sequence_length
        window = torch.from_numpy(tokens.read(self.offset, count + 1))
        self.offset += count
        inputs = window[:-1].view(batch_size, args.sequence_length)
        targets = window[1:].view(batch_size, args.sequence_length)
        return inputs, targets


# -----------------------------------------------------------------------------
# Checkpoint


def save_model(model, path):
    """Write all weights as named float32 arrays."""
    arrays = {name: value.detach().numpy().astype(np.float32) for name, value in model.state_dict().items()}
    np.savez(path, **arrays)


def load_model(path):
    """Return a function from integer tokens [B, T] to float32 logits [B, T, V] for the weights in ``path``."""
    model = GPT()
    with np.load(path, allow_pickle=False) as arrays:
        model.load_state_dict({name: torch.from_numpy(arrays[name]) for name in arrays.files})
    model.eval()

    def logits(windows):
        with torch.no_grad():
            return model(torch.from_numpy(windows)).float().numpy()

    return logits


# -----------------------------------------------------------------------------
# Training


def train():
    """Train for the fixed number of steps and save the weights."""
    torch.manual_seed(int(os.environ["SPEEDRUN_SEED"]))
    model = GPT()
    optimizers = build_optimizers(model)
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["initial_lr"] = group["lr"]
    reader = DataReader()

    started_s = time.perf_counter()
    for step in range(args.num_iterations):
        inputs, targets = reader.next_batch(batch_size_at(step))
        logits = model(inputs)
        loss = F.cross_entropy(logits.view(-1, args.vocab_size), targets.reshape(-1))
        loss.backward()
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = group["initial_lr"] * learning_rate_scale(step)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        done = step + 1
        if done % args.log_every == 0 or done == args.num_iterations:
            train_time_ms = 1000 * (time.perf_counter() - started_s)
            print(
                f"step:{done}/{args.num_iterations} train_loss:{loss.item():.4f} "
                f"train_time:{train_time_ms:.0f}ms step_avg:{train_time_ms / done:.2f}ms",
                flush=True,
            )

    save_model(model, "final.npz")


if __name__ == "__main__":
    train()
