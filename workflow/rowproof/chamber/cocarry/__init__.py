"""The co-carry task on its published rig: two Panda arms carry a bar, simulated by SAPIEN's PhysX on the CPU.

``rig`` holds the constants, ``scene`` builds and resets the simulated objects, ``control`` is one control step,
``telemetry`` measures and judges, ``goals`` draws the goals, ``observation`` is what players see, ``conditions`` names
the variants, ``egos`` and ``partners`` hold a module for every player, ``seats`` builds them, ``runner`` runs episodes,
``engine`` makes records and ``checks`` says what must hold in them.
"""
