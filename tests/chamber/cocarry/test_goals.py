import numpy as np
import pytest
from rowproof.chamber.cocarry.goals import GoalStream, evaluation_goal_m
from rowproof.seeding import spawn_key, substream

GOALS_M = {
    0: (-0.014575, 0.132441, 0.285898),
    1: (-0.016388, 0.112861, 0.268025),
    2: (-0.002606, 0.137029, 0.261097),
    3: (0.004721, 0.129220, 0.287848),
    4: (0.015048, 0.125831, 0.274410),
    49: (0.004922, 0.116016, 0.268877),
    1000: (0.001959, 0.133598, 0.270031),
    2000: (-0.011345, 0.103145, 0.267525),
    3000: (0.016505, 0.115333, 0.295315),
    4000: (0.003334, 0.113373, 0.261080),
    4049: (-0.008469, 0.137128, 0.299544),
    7000000: (0.011816, 0.130371, 0.287371),
    9000000: (0.014983, 0.128572, 0.267918),
    90000000: (0.017352, 0.124979, 0.278569),
}


@pytest.mark.parametrize("initial_state_seed", GOALS_M)
def test_published_goals(initial_state_seed):
    assert tuple(np.round(evaluation_goal_m(initial_state_seed), 6)) == GOALS_M[initial_state_seed]


def test_published_stream():
    assert spawn_key("env.cocarry") == (11599390049092955099, 15238649985707958149)
    first = substream("env.cocarry", 0).uniform(-0.02, 0.02, size=3)
    assert tuple(np.round(first, 8)) == (-0.00200966, 0.01385366, -0.00457551)


def test_a_stream_goes_on_where_the_evaluation_goal_ends():
    stream = GoalStream(7)
    assert (stream.next() == evaluation_goal_m(7)).all()
    assert (stream.next() != evaluation_goal_m(7)).all()
