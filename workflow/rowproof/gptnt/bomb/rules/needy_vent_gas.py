"""Venting Gas: yes to venting, no to detonating."""

KEY_FOR = {"VENT GAS?": "Y", "DETONATE?": "N"}
