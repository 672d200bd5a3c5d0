"""Where a Panda's tool centre point is and how it moves with the joints, in closed form.

Plain floats: on arrays this small they are several times faster than NumPy, and the order of operations is fixed.
"""

import math
from collections.abc import Sequence

# Link lengths and offsets of the arm.
SHOULDER_HEIGHT_M = 0.333
UPPER_ARM_M = 0.316
ELBOW_OFFSET_M = 0.0825
FOREARM_M = 0.384
WRIST_OFFSET_M = 0.088
TCP_BEYOND_JOINT_7_M = 0.107 + 0.1034

Vector = tuple[float, float, float]


def tcp_and_jacobian(angles_rad: Sequence[float]) -> tuple[Vector, list[Vector]]:
    """Position of the tool centre point (m, base frame) and its derivative by each of the seven angles (m/rad).

    Walks the chain once, joint by joint, keeping each joint's origin o and axis z; column i is z_i x (p - o_i). Each
    joint frame is a quarter turn about x from the frame before it. Written out and not a loop over a table: half of
    the table would be zeros and ones, and this runs twice per control step.
    """
    a1_rad, a2_rad, a3_rad, a4_rad, a5_rad, a6_rad, _ = angles_rad
    cos, sin = math.cos, math.sin

    # x, y, z are the axes of the current frame, turned by the current joint, in the base frame. The axis of joint 1
    # is that of the base; joint 2 has the same origin.
    c, s = cos(a1_rad), sin(a1_rad)
    xx, xy = c, s
    z2x, z2y = -s, c

    c, s = cos(a2_rad), sin(a2_rad)
    xz, yz = -s, -c
    xx, yx = c * xx, -s * xx
    xy, yy = c * xy, -s * xy

    o3x, o3y, o3z = yx * -UPPER_ARM_M, yy * -UPPER_ARM_M, SHOULDER_HEIGHT_M + yz * -UPPER_ARM_M
    z3x, z3y, z3z = -yx, -yy, -yz
    c, s = cos(a3_rad), sin(a3_rad)
    xx, yx = c * xx + s * z2x, c * z2x - s * xx
    xy, yy = c * xy + s * z2y, c * z2y - s * xy
    xz, yz = c * xz, -s * xz

    o4x, o4y, o4z = o3x + xx * ELBOW_OFFSET_M, o3y + xy * ELBOW_OFFSET_M, o3z + xz * ELBOW_OFFSET_M
    z4x, z4y, z4z = -yx, -yy, -yz
    c, s = cos(a4_rad), sin(a4_rad)
    xx, yx = c * xx + s * z3x, c * z3x - s * xx
    xy, yy = c * xy + s * z3y, c * z3y - s * xy
    xz, yz = c * xz + s * z3z, c * z3z - s * xz

    # The origin of joint 6 too.
    o5x = o4x + (xx * -ELBOW_OFFSET_M + yx * FOREARM_M)
    o5y = o4y + (xy * -ELBOW_OFFSET_M + yy * FOREARM_M)
    o5z = o4z + (xz * -ELBOW_OFFSET_M + yz * FOREARM_M)
    z5x, z5y, z5z = yx, yy, yz
    c, s = cos(a5_rad), sin(a5_rad)
    xx, yx = c * xx - s * z4x, -c * z4x - s * xx
    xy, yy = c * xy - s * z4y, -c * z4y - s * xy
    xz, yz = c * xz - s * z4z, -c * z4z - s * xz

    z6x, z6y, z6z = -yx, -yy, -yz
    c, s = cos(a6_rad), sin(a6_rad)
    xx, yx = c * xx + s * z5x, c * z5x - s * xx
    xy, yy = c * xy + s * z5y, c * z5y - s * xy
    xz, yz = c * xz + s * z5z, c * z5z - s * xz

    # The last angle turns the hand about the line on which the tool centre point lies.
    o7x, o7y, o7z = o5x + xx * WRIST_OFFSET_M, o5y + xy * WRIST_OFFSET_M, o5z + xz * WRIST_OFFSET_M
    z7x, z7y, z7z = -yx, -yy, -yz
    px, py, pz = o7x + z7x * TCP_BEYOND_JOINT_7_M, o7y + z7y * TCP_BEYOND_JOINT_7_M, o7z + z7z * TCP_BEYOND_JOINT_7_M

    columns = [(-py, px, 0.0)]
    for ox, oy, oz, zx, zy, zz in (
        (0.0, 0.0, SHOULDER_HEIGHT_M, z2x, z2y, 0.0),
        (o3x, o3y, o3z, z3x, z3y, z3z),
        (o4x, o4y, o4z, z4x, z4y, z4z),
        (o5x, o5y, o5z, z5x, z5y, z5z),
        (o5x, o5y, o5z, z6x, z6y, z6z),
        (o7x, o7y, o7z, z7x, z7y, z7z),
    ):
        dx, dy, dz = px - ox, py - oy, pz - oz
        columns.append((zy * dz - zz * dy, zz * dx - zx * dz, zx * dy - zy * dx))
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
