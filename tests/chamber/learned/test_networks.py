"""The networks: how they start, what they compute, and that NumPy plays what torch trained."""

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest
from helpers import ROOT
from rowproof.chamber.learned import policy
from rowproof.seeding import substream

networks = pytest.importorskip("rowproof.chamber.learned.networks", reason="torch (extra training) is not installed")
torch = networks.torch

SIZES = {"state_size": 46, "action_size": 8, "hidden_units": [256, 256]}
PUBLISHED = {**SIZES, "mean_gain": 0.01, "std_ceiling": 0.5, "initial_std_parameter": 1.0}


def actor_of(**changes):
    torch.manual_seed(0)
    return networks.Actor(**{**PUBLISHED, **changes})


def parameters(module):
    return sum(parameter.numel() for parameter in module.parameters())


# ---- initial values --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("layer", "gain"), [("hidden.0", 2**0.5), ("hidden.1", 2**0.5), ("mean", 0.01)])
def test_actor_weights_are_orthogonal(layer, gain):
    weight = actor_of().get_submodule(layer).weight.detach().double().numpy()
    short = weight @ weight.T if weight.shape[0] <= weight.shape[1] else weight.T @ weight
    assert short / gain**2 == pytest.approx(np.eye(len(short)), abs=1e-5)


def test_actor_biases_are_zero_and_norms_neutral():
    tensors = networks.tensors_of(actor_of())
    norms = ("input_norm", "norms.0", "norms.1")
    assert all((tensors[f"{name}.weight"] == 1).all() for name in norms)
    assert not any(tensors[f"{name}.bias"].any() for name in (*norms, "hidden.0", "hidden.1", "mean"))


def test_initial_std():
    assert actor_of().std().detach().numpy() == pytest.approx(np.full(8, 0.3655), abs=5e-5)


def test_std_stays_below_its_ceiling():
    actor = actor_of()
    with torch.no_grad():
        actor.std_parameter.fill_(1e6)
    assert (actor.std() <= 0.5).all()
    with torch.no_grad():
        actor.std_parameter.fill_(-5.0)
    assert (actor.std() > 0).all()


def test_parameter_counts():
    layers = 46 * 256 + 256 + 256 * 256 + 256
    norms = 2 * (46 + 256 + 256)
    assert parameters(actor_of()) == layers + norms + 256 * 8 + 8 + 8 == 81004
    assert parameters(networks.Critic(46, [256, 256])) == layers + 257 == 78081


def test_critic_starts_as_torch_does():
    torch.manual_seed(3)
    critic = networks.Critic(46, [16])
    torch.manual_seed(3)
    first, last = torch.nn.Linear(46, 16), torch.nn.Linear(16, 1)
    assert torch.equal(critic.hidden[0].weight, first.weight) and torch.equal(critic.value.bias, last.bias)
    state = torch.linspace(-1, 1, 46)
    assert torch.equal(critic(state[None]), last(torch.tanh(first(state)))) and critic(state[None]).shape == (1,)


def test_tensors_are_copies():
    actor = actor_of(hidden_units=[4])
    tensors = networks.tensors_of(actor)
    before = tensors["mean.weight"].copy()
    with torch.no_grad():
        actor.mean.weight.add_(1.0)
    assert (tensors["mean.weight"] == before).all()
    assert {tensor.dtype for tensor in tensors.values()} == {np.dtype(np.float32)}


# ---- what they compute -----------------------------------------------------------------------------------------


def test_input_norm_is_over_the_numbers_of_one_state():
    actor = actor_of()
    states = torch.from_numpy(substream("test.states", 0).normal(3, 20, (5, 46)).astype(np.float32))
    normed = actor.input_norm(states).detach().numpy()
    assert normed.mean(axis=1) == pytest.approx(np.zeros(5), abs=1e-5)
    assert normed.std(axis=1) == pytest.approx(np.ones(5), abs=1e-5)
    # Neither the rest of the batch nor what was seen before enters.
    assert torch.equal(actor.input_norm(states[2:3]), actor.input_norm(states)[2:3])


def test_zeros_of_a_masked_state_enter_its_norm(actor_tensors):
    played = policy.LayerNorm(np.ones(46, np.float32), np.zeros(46, np.float32))
    state = np.arange(46.0)
    state[18:43] = 0
    assert played(state).mean() == pytest.approx(0, abs=1e-12)
    assert played(state)[18] == pytest.approx(-state.mean() / state.std(), abs=1e-6)


def test_mean_action_ignores_scale_and_shift_of_the_raw_state(actor_tensors):
    tensors = actor_tensors("scale")
    actor = policy.Actor(tensors)
    state = substream("test.states", 1).normal(0, 30, 46).astype(np.float32)
    assert actor.mean_action(state * 4 + 8) == pytest.approx(actor.mean_action(state), abs=1e-5)


def played_and_trained(tensors, hidden_units):
    """Mean actions of 200 states by NumPy, by torch in single and by torch in double precision."""
    trained = actor_of(hidden_units=hidden_units)
    trained.load_state_dict({name: torch.from_numpy(tensor) for name, tensor in tensors.items()})
    states = substream("test.states", 2).normal(0, 1, (200, 46)).astype(np.float32)
    states[100:] *= 40
    states[150:, 18:43] = 0
    actor = policy.Actor(tensors)
    played = np.array([actor.mean_action(state) for state in states])
    assert played.dtype == np.float32 and played.shape == (200, 8) and np.abs(played).max() > 0.3
    with torch.no_grad():
        single = trained(torch.from_numpy(states)).numpy()
        return played, single, trained.double()(torch.from_numpy(states).double()).numpy()


@pytest.mark.parametrize("hidden_units", [[256, 256], [16], [1], [32, 8, 64], [5, 6, 7, 8, 9]])
def test_numpy_plays_what_torch_trained(actor_tensors, hidden_units):
    played, _, double = played_and_trained(actor_tensors("agree", hidden_units=hidden_units), hidden_units)
    assert np.abs(played - double).max() < 1e-6


@pytest.mark.parametrize("hidden_units", [[256, 256], [64], [128, 64, 96]])
def test_numpy_plays_what_torch_trained_in_single_precision(actor_tensors, hidden_units):
    # Layers of a few units are left out: their norms amplify what torch itself rounds in single precision.
    played, single, _ = played_and_trained(actor_tensors("agree", hidden_units=hidden_units), hidden_units)
    assert np.abs(played - single).max() < 1e-6


def test_initial_actor_is_played_to_the_millionth():
    trained = actor_of()
    actor = policy.Actor(networks.tensors_of(trained))
    states = substream("test.states", 4).normal(0, 2, (300, 46)).astype(np.float32)
    with torch.no_grad():
        expected = trained(torch.from_numpy(states)).numpy()
    played = np.array([actor.mean_action(state) for state in states])
    assert np.abs(played).max() > 0.01 and np.abs(played - expected).max() < 1e-6


def test_policy_reads_its_sizes_from_the_tensors(actor_tensors):
    actor = policy.Actor(actor_tensors("sizes", state_size=7, hidden_units=[3], action_size=2))
    assert (actor.state_size, actor.action_size) == (7, 2)


# ---- processes -------------------------------------------------------------------------------------------------

PLAY = """
import hashlib, sys
import numpy as np
from rowproof.chamber.learned.policy import Actor
from rowproof.chamber.learned.tensors import decode
from rowproof.checkpoints import uri_of
data = open(sys.argv[1], "rb").read()
actor = Actor(decode(data, uri_of(data), ("ego",))["ego"])
played = b"".join(actor.mean_action(state).tobytes() for state in np.load(sys.argv[2]))
print(hashlib.sha256(played).hexdigest(), "torch" in sys.modules)
"""


def test_actions_are_the_same_in_every_process_and_need_no_torch(actor_tensors, tmp_path):
    from rowproof.chamber.learned.tensors import encode

    tensors = actor_tensors("processes", hidden_units=(256, 256))
    states = substream("test.states", 3).normal(0, 5, (50, 46)).astype(np.float32)
    (tmp_path / "actor").write_bytes(encode({f"ego.{name}": tensor for name, tensor in tensors.items()}))
    np.save(tmp_path / "states.npy", states)
    actor = policy.Actor(tensors)
    here = hashlib.sha256(b"".join(actor.mean_action(state).tobytes() for state in states)).hexdigest()
    for extra in ({"OMP_NUM_THREADS": "1"}, {"OMP_NUM_THREADS": "2", "NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3"}):
        done = subprocess.run(
            [sys.executable, "-c", PLAY, "actor", "states.npy"],
            env={**os.environ, "PYTHONPATH": str(ROOT / "workflow"), **extra},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.split() == [here, "False"]


def test_torch_that_was_loaded_with_other_kernels_is_refused():
    code = (
        "import sys, types; sys.modules['torch'] = types.ModuleType('torch')\n"
        "from rowproof.errors import RowproofError\n"
        "try:\n    import rowproof.chamber.learned.networks\n"
        "except RowproofError as error:\n    print(error)\n"
    )
    environment = {name: value for name, value in os.environ.items() if name not in networks.PINNED_KERNELS}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**environment, "PYTHONPATH": str(ROOT / "workflow")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("torch must be loaded with {'ATEN_CPU_CAPABILITY': 'default'")
