"""The named variants of the task."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Condition:
    """One variant of the rig.

    Attributes:
        name: how records name it.
        partner_holds: whether the partner's hand is pinned to the bar. If not, its arm starts parked, and force and
            joint speed are judged on the ego alone.
        contacts: whether the arms touch each other and the bar, as published. Without these contacts (the table
            stays solid) the wrist force is the load of the bar and not that of jammed arms.
    """

    name: str
    partner_holds: bool
    contacts: bool


MATCHED = Condition("cocarry_matched_panda_pair", partner_holds=True, contacts=True)
SINGLE_ARM = Condition("cocarry_single_arm_positive_control", partner_holds=False, contacts=True)
CONTACT_FREE = Condition("cocarry_contact_free_pair", partner_holds=True, contacts=False)
"""For calibration and comparison; no published row uses it."""

CONDITIONS = {condition.name: condition for condition in (MATCHED, SINGLE_ARM, CONTACT_FREE)}
