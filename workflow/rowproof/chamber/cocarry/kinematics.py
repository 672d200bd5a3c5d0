"""Where a Panda's tool centre point is and how it moves with the joints, in closed form.

Plain floats: on arrays this small they are several times faster than NumPy, and the order of operations is fixed.
"""

import math
from collections.abc import Sequence

# Per joint: translation from the previous joint frame (m), then the quarter turn about x (-1, 0 or 1).
CHAIN = (
    (0.0, 0.0, 0.333, 0),
    (0.0, 0.0, 0.0, -1),
    (0.0, -0.316, 0.0, 1),
    (0.0825, 0.0, 0.0, 1),
    (-0.0825, 0.384, 0.0, -1),
    (0.0, 0.0, 0.0, 1),
    (0.088, 0.0, 0.0, 1),
)
TCP_BEYOND_JOINT_7_M = 0.107 + 0.1034

Vector = tuple[float, float, float]


def tcp_and_jacobian(angles_rad: Sequence[float]) -> tuple[Vector, list[Vector]]:
    """Position of the tool centre point (m, base frame) and its derivative by each of the seven angles (m/rad).

    Walks the chain once, keeping each joint's origin o and axis z; column i is z_i x (p - o_i).
    """
    px = py = pz = 0.0
    # The axes of the current frame, in the base frame.
    xx, xy, xz = 1.0, 0.0, 0.0
    yx, yy, yz = 0.0, 1.0, 0.0
    zx, zy, zz = 0.0, 0.0, 1.0
    joints = []
    for angle_rad, (tx, ty, tz, quarter) in zip(angles_rad, CHAIN, strict=True):
        px += xx * tx + yx * ty + zx * tz
        py += xy * tx + yy * ty + zy * tz
        pz += xz * tx + yz * ty + zz * tz
        if quarter > 0:
            yx, yy, yz, zx, zy, zz = zx, zy, zz, -yx, -yy, -yz
        elif quarter < 0:
            yx, yy, yz, zx, zy, zz = -zx, -zy, -zz, yx, yy, yz
        joints.append((px, py, pz, zx, zy, zz))
        c, s = math.cos(angle_rad), math.sin(angle_rad)
        xx, xy, xz, yx, yy, yz = (
            c * xx + s * yx,
            c * xy + s * yy,
            c * xz + s * yz,
            c * yx - s * xx,
            c * yy - s * xy,
            c * yz - s * xz,
        )
    px += zx * TCP_BEYOND_JOINT_7_M
    py += zy * TCP_BEYOND_JOINT_7_M
    pz += zz * TCP_BEYOND_JOINT_7_M
    columns = []
    for ox, oy, oz, ax, ay, az in joints:
        dx, dy, dz = px - ox, py - oy, pz - oz
        columns.append((ay * dz - az * dy, az * dx - ax * dz, ax * dy - ay * dx))
    return (px, py, pz), columns


def damped_step(columns: Sequence[Vector], v: Vector, damping: float) -> list[float]:
    """The joint step J^T (J J^T + damping^2 I)^-1 v (rad) for a wanted displacement ``v`` (m).

    The symmetric 3 x 3 system is solved by its adjugate.
    """
    a = d = f = damping * damping
    b = c = e = 0.0
    for jx, jy, jz in columns:
        a += jx * jx
        b += jx * jy
        c += jx * jz
        d += jy * jy
        e += jy * jz
        f += jz * jz
    # The matrix is [[a, b, c], [b, d, e], [c, e, f]].
    m00, m01, m02 = d * f - e * e, c * e - b * f, b * e - c * d
    m11, m12, m22 = a * f - c * c, b * c - a * e, a * d - b * b
    scale = 1.0 / (a * m00 + b * m01 + c * m02)
    vx, vy, vz = v
    wx = (m00 * vx + m01 * vy + m02 * vz) * scale
    wy = (m01 * vx + m11 * vy + m12 * vz) * scale
    wz = (m02 * vx + m12 * vy + m22 * vz) * scale
    return [jx * wx + jy * wy + jz * wz for jx, jy, jz in columns]
