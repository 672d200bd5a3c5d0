import numpy as np
import pytest
from rowproof.seeding import spawn_key, substream

SPAWN_KEYS = {
    "env.cocarry": (11599390049092955099, 15238649985707958149),
    "env.handover_place": (4771653131866249452, 16006512137323114280),
    "partner.handover_presenter.mismatched": (12121107508608831941, 7735029817957394348),
    "partner.handover_presenter.matched": (1609878549524047906, 8804178160596923583),
    "training.ego_ppo.torch": (3550139180638298569, 15371094120528868866),
    "training.joint_mappo.torch": (3819669419239578451, 1632908126110161790),
    "env.mpe_cooperative_push.episode.0": (789720931457044357, 76467948738770600),
    "evaluation.bundle_bootstrap": (14242569796102993934, 11154339483185974052),
    "evaluation.leaderboard_bootstrap": (4596861581345402941, 1729918315485428212),
    "evaluation.admission.a3_paired_bootstrap": (4638055615550391262, 18163598631469359728),
    "benchmarks.cocarry_eval.ego_random.0": (18263471079795887375, 17626533388673557500),
    "benchmarks.handover_eval.ego_random.0": (4317956419193339325, 1915321417904283884),
    "benchmarks.bundle_runner.ego_random.0.0": (16923900504205112328, 14704532125875055330),
}


@pytest.mark.parametrize("label", SPAWN_KEYS)
def test_spawn_key(label):
    assert spawn_key(label) == SPAWN_KEYS[label]


# Label, root seed, first raw 64-bit output, five integers in [0, 5) and then six in [0, 50).
STREAMS = [
    ("evaluation.bundle_bootstrap", 0, 0x357C08692169531B, [0, 1, 3, 1, 0], [4, 16, 37, 9, 36, 16]),
    ("evaluation.bundle_bootstrap", 7, 0x5F887823216688A2, [0, 1, 4, 3, 4], [3, 31, 0, 31, 45, 21]),
    ("evaluation.leaderboard_bootstrap", 0, 0x60E7B7475C27569D, [1, 1, 1, 4, 3], [38, 32, 28, 18, 42, 15]),
    ("evaluation.admission.a3_paired_bootstrap", 0, 0x0040E487A5627FFC, [3, 0, 4, 1, 1], [36, 14, 45, 4, 6, 23]),
    ("benchmarks.cocarry_eval.ego_random.0", 0, 0x204FC9A5EF2EE723, [4, 0, 1, 1, 2], [18, 4, 26, 9, 10, 32]),
    ("benchmarks.handover_eval.ego_random.0", 0, 0xFE0465DE0E08CFCB, [0, 4, 0, 0, 4], [26, 48, 46, 34, 30, 40]),
    ("benchmarks.bundle_runner.ego_random.0.0", 0, 0x80595291A0563255, [3, 2, 1, 0, 1], [5, 27, 26, 41, 27, 18]),
]


@pytest.mark.parametrize(("label", "root_seed", "raw", "fives", "fifties"), STREAMS)
def test_stream_outputs(label, root_seed, raw, fives, fifties):
    assert substream(label, root_seed).bit_generator.random_raw() == raw
    rng = substream(label, root_seed)
    assert rng.integers(0, 5, size=5).tolist() == fives
    assert rng.integers(0, 50, size=6).tolist() == fifties


COCARRY_ACTIONS = {
    0: [-0.747565, -0.246206, -0.247198, 0.048884, -0.595129, -0.291742, 0.890193, -0.051099],
    1: [0.746381, 0.298352, 0.925658, 0.837187, -0.816338, -0.461684, 0.245007, 0.376010],
}


@pytest.mark.parametrize("initial_state_seed", COCARRY_ACTIONS)
def test_random_cocarry_actions(initial_state_seed):
    rng = substream(f"benchmarks.cocarry_eval.ego_random.{initial_state_seed}", 0)
    assert np.round(rng.uniform(-1, 1, 8), 6).tolist() == COCARRY_ACTIONS[initial_state_seed]


def test_first_goal_jitter():
    rng = substream("env.cocarry", 0)
    assert np.round(rng.uniform(-0.02, 0.02, 3), 8).tolist() == [-0.00200966, 0.01385366, -0.00457551]


COCARRY_GOALS_M = {
    0: [-0.014575, 0.132441, 0.285898],
    1: [-0.016388, 0.112861, 0.268025],
    2: [-0.002606, 0.137029, 0.261097],
    3: [0.004721, 0.129220, 0.287848],
    4: [0.015048, 0.125831, 0.274410],
    49: [0.004922, 0.116016, 0.268877],
    1000: [0.001959, 0.133598, 0.270031],
    2000: [-0.011345, 0.103145, 0.267525],
    3000: [0.016505, 0.115333, 0.295315],
    4000: [0.003334, 0.113373, 0.261080],
    4049: [-0.008469, 0.137128, 0.299544],
    7000000: [0.011816, 0.130371, 0.287371],
    9000000: [0.014983, 0.128572, 0.267918],
    90000000: [0.017352, 0.124979, 0.278569],
}


@pytest.mark.parametrize("initial_state_seed", COCARRY_GOALS_M)
def test_cocarry_goal_is_the_second_jitter(initial_state_seed):
    rng = substream("env.cocarry", initial_state_seed)
    rng.uniform(-0.02, 0.02, 3)
    goal_m = np.array([0.0, 0.12, 0.28]) + rng.uniform(-0.02, 0.02, 3)
    # The table was printed from float32 goals.
    assert np.abs(goal_m - COCARRY_GOALS_M[initial_state_seed]).max() <= 5.5e-7


TORCH_SEEDS = {
    "training.ego_ppo.torch": [140323428, 2136522470, 1936260172, 139554716, 499019462],
    "training.joint_mappo.torch": [1846697086, 376771151, 734464773, 588201184, 1071750791],
    "training.episode.1": [719330884, 2073131834, 365978823, 284155240, 1745443939],
}


@pytest.mark.parametrize("label", TORCH_SEEDS)
def test_training_seeds(label):
    assert [int(substream(label, seed).integers(0, 2**31 - 1)) for seed in range(5)] == TORCH_SEEDS[label]


def test_same_pair_same_stream_and_other_pair_other_stream():
    draws = substream("env.cocarry", 3).random(4).tolist()
    assert substream("env.cocarry", 3).random(4).tolist() == draws
    assert substream("env.cocarry", 4).random(4).tolist() != draws
    assert substream("env.cocarry.", 3).random(4).tolist() != draws


def test_negative_root_seed_is_refused():
    with pytest.raises(ValueError):
        substream("env.cocarry", -1)
