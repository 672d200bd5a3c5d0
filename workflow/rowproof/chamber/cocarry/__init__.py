"""The co-carry task on its published rig: two Panda arms carry a bar, simulated by SAPIEN's PhysX on the CPU.

``rig`` holds the constants, ``scene`` builds and resets the simulated objects, ``control`` is one control step,
``telemetry`` measures and judges, ``goals`` draws the goals, ``observation`` is what players see, ``conditions`` names
the variants, ``partners`` and ``egos`` are the scripted players, ``runner`` runs episodes and ``engine`` makes records.
"""
