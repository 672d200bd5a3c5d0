"""The simulated objects: two arms, table, ground and bar, in the order of creation that the published rig has.

The order, the pair masks and the solver settings decide what happens in the first substep, in which the overlapping
arms throw each other apart; all later states depend on it.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np

from rowproof.chamber.cocarry import rig, robot_files
from rowproof.chamber.cocarry.conditions import Condition
from rowproof.chamber.cocarry.simulator import SimulatorError, load_sapien

STIFFNESS = 1000.0
"""Of every joint drive: N m/rad, and N/m for the fingers."""
DAMPING = 100.0
FORCE_LIMIT = 100.0
"""N m, and N for the fingers."""

CONTACT_OFFSET_M = 0.02
SOLVER_POSITION_ITERATIONS = 15
SOLVER_VELOCITY_ITERATIONS = 1
FRICTION = 0.3
FINGER_FRICTION = 2.0
FINGER_PATCH_RADIUS_M = 0.1
FINGERS = ("panda_leftfinger", "panda_rightfinger")

BAR_JOINT_STIFFNESS_N_PER_M = 2.0e4
BAR_JOINT_DAMPING_NS_PER_M = 2.0e3

# Nine convex hulls and eight finger boxes; the ego's camera housing is one box more.
SHAPE_COUNTS = (18, 17)


class Arm:
    """One arm in the scene.

    Attributes:
        articulation: the simulated joints; ``qpos`` and ``qvel`` are float32 of shape (9,).
        set_targets: one call per joint that takes a drive target (rad, or m for the fingers).
        wrist: index of the hand in the articulation's links; the joint before it is where force is measured.
    """

    def __init__(self, articulation: Any) -> None:
        """Give every joint its drive and switch off gravity on the links of ``articulation``."""
        self.articulation = articulation
        self.joints = articulation.active_joints
        for joint in self.joints:
            joint.set_drive_properties(STIFFNESS, DAMPING, force_limit=FORCE_LIMIT, mode="force")
            joint.set_friction(0)
        for link in articulation.links:
            link.disable_gravity = True
        self.set_targets = [joint.set_drive_target for joint in self.joints]
        names = [link.name for link in articulation.links]
        self.wrist = names.index("panda_hand")
        self.hand = articulation.links[self.wrist].entity
        self.tcp = articulation.links[names.index("panda_hand_tcp")].entity

    @property
    def shapes(self) -> list[Any]:
        """All collision shapes of the arm, link by link."""
        return [shape for link in self.articulation.links for shape in link.collision_shapes]


class Scene:
    """The rig in one condition, ready to be reset and stepped.

    Attributes:
        condition: the variant that was built.
        arms: ego and partner, in this order.
        bar: the bar's entity.
        goal_m: float32 of shape (3,), the goal as players and judge use it.
    """

    def __init__(self, condition: Condition, robots: Path = robot_files.ROBOT_FOLDER) -> None:
        """Build the rig from the robot files in ``robots``.

        Raises:
            SimulatorError: the simulator is not there or builds other objects than the rig needs.
            RobotFilesError: a robot file is missing or altered.
        """
        robot_files.require(robots)
        self._sapien = load_sapien()
        self.condition = condition
        self.goal_m = np.zeros(3, np.float32)
        self._new_scene()
        self.arms = tuple(
            self._build_arm(robots / urdf, rig.BASE_POSITIONS_M[seat], rig.BASE_QUATERNIONS[seat])
            for seat, urdf in ((rig.EGO, robot_files.EGO_URDF), (rig.PARTNER, robot_files.PARTNER_URDF))
        )
        found = tuple(len(arm.shapes) for arm in self.arms)
        if found != SHAPE_COUNTS or any(len(arm.joints) != rig.JOINTS for arm in self.arms):
            raise SimulatorError(
                f"the arms must have {SHAPE_COUNTS} collision shapes and {rig.JOINTS} joints each, found {found} and "
                f"{[len(arm.joints) for arm in self.arms]}: reinstall sapien"
            )
        self._build_table_and_ground()
        self.bar = self._build_bar()
        self._bar_body = self.bar.find_component_by_type(self._sapien.physx.PhysxRigidDynamicComponent)
        # The ego's joint first: the solver takes them in this order.
        self._pin_bar(rig.EGO)
        if condition.partner_holds:
            self._pin_bar(rig.PARTNER)
        if not condition.contacts:
            self._separate_contacts()

    # ---- building ----------------------------------------------------------------------------------------------

    def _new_scene(self) -> None:
        physx = self._sapien.physx
        # Defaults of the whole process, taken by objects and systems when they are made.
        physx.set_shape_config(contact_offset=CONTACT_OFFSET_M, rest_offset=0.0)
        physx.set_body_config(
            solver_position_iterations=SOLVER_POSITION_ITERATIONS,
            solver_velocity_iterations=SOLVER_VELOCITY_ITERATIONS,
            sleep_threshold=0.005,
        )
        physx.set_scene_config(
            gravity=np.array([0, 0, -9.81]),
            bounce_threshold=2.0,
            enable_pcm=True,
            enable_tgs=True,
            enable_ccd=False,
            enable_enhanced_determinism=False,
            enable_friction_every_iteration=True,
            cpu_workers=0,
        )
        physx.set_default_material(static_friction=FRICTION, dynamic_friction=FRICTION, restitution=0.0)
        self._physics = physx.PhysxCpuSystem()
        self._scene = self._sapien.Scene([self._physics])
        self._physics.timestep = rig.DT_S
        self.substep = self._physics.step

    def _build_arm(self, urdf: Path, position_m: tuple, quaternion: tuple) -> Arm:
        class CollisionOnlyLoader(self._sapien.wrapper.urdf_loader.URDFLoader):
            """Leaves out what is only seen: visuals need a rendering device."""

            def _build_link(self, link: Any, link_builder: Any) -> None:
                link._visuals = []
                super()._build_link(link, link_builder)

        loader = CollisionOnlyLoader()
        loader.set_scene(self._scene)
        loader.fix_root_link = True
        for finger in FINGERS:
            loader.set_link_material(finger, FINGER_FRICTION, FINGER_FRICTION, 0.0)
            loader.set_link_patch_radius(finger, FINGER_PATCH_RADIUS_M)
            loader.set_link_min_patch_radius(finger, FINGER_PATCH_RADIUS_M)
        # The loader finds the pair masks in the .srdf file beside the description.
        ((builder,), _, _) = loader.parse(str(urdf))
        builder.initial_pose = self._sapien.Pose(list(position_m), list(quaternion))
        # Mimic joints make the tendon that couples the fingers of a hand.
        return Arm(builder.build(build_mimic_joints=True))

    def _build_table_and_ground(self) -> None:
        pose = self._sapien.Pose
        table = self._scene.create_actor_builder()
        half_height_m = rig.TABLE_HALF_SIZES_M[2]
        table.add_box_collision(pose([0, 0, half_height_m]), list(rig.TABLE_HALF_SIZES_M))
        table.initial_pose = pose(list(rig.TABLE_POSITION_M), list(rig.TABLE_QUATERNION))
        self._table = table.build_kinematic("table")
        ground = self._scene.create_actor_builder()
        ground.add_plane_collision(pose([0, 0, -2 * half_height_m], [math.sqrt(0.5), 0, -math.sqrt(0.5), 0]))
        ground.initial_pose = pose()
        ground.build_static("ground")

    def _build_bar(self) -> Any:
        builder = self._scene.create_actor_builder()
        x_m, y_m, z_m = rig.BAR_HALF_SIZES_M
        # Density, not mass: setting the mass later would keep the inertia of the first density.
        density = rig.BAR_MASS_KG / (8 * x_m * y_m * z_m)
        builder.add_box_collision(half_size=list(rig.BAR_HALF_SIZES_M), density=density)
        builder.initial_pose = self._sapien.Pose()
        return builder.build("bar")

    def _pin_bar(self, seat: int) -> None:
        """Pin one bar end to the tool centre point of a hand; rotations stay free."""
        pose = self._sapien.Pose
        end = pose([rig.BAR_END_SIGNS[seat] * rig.BAR_HALF_SIZES_M[0], 0, 0])
        joint = self._scene.create_drive(self.arms[seat].hand, pose(list(rig.TCP_IN_HAND_M)), self.bar, end)
        for axis in ("x", "y", "z"):
            set_property = getattr(joint, f"set_drive_property_{axis}")
            set_property(BAR_JOINT_STIFFNESS_N_PER_M, BAR_JOINT_DAMPING_NS_PER_M)
            # Equal limits lock the axis.
            getattr(joint, f"set_limit_{axis}")(0, 0)

    def _separate_contacts(self) -> None:
        """Let each arm and the bar meet the table, and each arm itself, but nothing else."""
        ego, partner, bar, table = 1, 2, 4, 8
        for bit, shapes in (
            (ego, self.arms[rig.EGO].shapes),
            (partner, self.arms[rig.PARTNER].shapes),
            (bar, self._bar_body.collision_shapes),
            (table, self._table.components[0].collision_shapes),
        ):
            for shape in shapes:
                _, _, pair_mask, robot = shape.get_collision_groups()
                # Two shapes meet when the first word of one shares a bit with the second word of the other.
                shape.set_collision_groups([bit, bit | table, pair_mask, robot])

    # ---- episodes ----------------------------------------------------------------------------------------------

    def renew(self) -> None:
        """Move all objects into a new simulator scene, so that nothing of earlier episodes is left in its caches.

        The result is bit for bit that of building the rig again, at a hundredth of the cost. Without it a reset keeps
        solver and contact caches, as a reused environment object does.
        """
        entities = self._scene.entities
        for entity in entities:
            self._scene.remove_entity(entity)
        self._new_scene()
        for entity in entities:
            self._scene.add_entity(entity)

    def reset(self, goal_m: np.ndarray) -> None:
        """Put arms and bar into their initial state and set the goal (world position, shape (3,))."""
        zeros = np.zeros(rig.JOINTS, np.float32)
        self._bar_body.linear_velocity = np.zeros(3, np.float32)
        self._bar_body.angular_velocity = np.zeros(3, np.float32)
        for seat, arm in enumerate(self.arms):
            parked = seat == rig.PARTNER and not self.condition.partner_holds
            posture = rig.PARKED_POSTURE if parked else rig.READY_POSTURE
            arm.articulation.set_root_linear_velocity(np.zeros(3, np.float32))
            arm.articulation.set_root_angular_velocity(np.zeros(3, np.float32))
            arm.articulation.qpos = np.array(posture, np.float32)
            arm.articulation.qvel = zeros
            arm.articulation.qf = zeros
        tcps_m = [np.asarray(arm.tcp.pose.p, np.float64) for arm in self.arms]
        if self.condition.partner_holds:
            centre_m = (tcps_m[rig.EGO] + tcps_m[rig.PARTNER]) / 2
        else:
            centre_m = tcps_m[rig.EGO] - np.array([rig.BAR_HALF_SIZES_M[0], 0.0, 0.0])
        self.bar.pose = self._sapien.Pose(centre_m.astype(np.float32))
        self.goal_m = np.asarray(goal_m, np.float32)

    @property
    def holding(self) -> tuple[Arm, ...]:
        """The arms whose hand is pinned to the bar."""
        return self.arms if self.condition.partner_holds else self.arms[:1]
