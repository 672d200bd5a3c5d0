"""Verification of what the CHAMBER project published: result bundles (schema version 3) and admission archives.

The check table of a bundle has two blocks. The *reference* block holds the rows of the published verifier under their
own names, so both can be compared line by line (:func:`reference_rows`); healthy bundles give the same rows. The
*strict* block (``strict:...``) closes what that verifier lets pass. What needs git history that is not here is
``unknown``.

Nothing in a bundle is trusted, including its file system entries: no link is followed, no name leaves the directory,
and every exception inside a check becomes a failing row.

``verify`` puts the table of a bundle together from the modules of one subject each (``files``, ``summary``, ``seats``,
``preregistration``, ``records``, ``selection``), which share the state in ``bundle``. ``admission`` does the same for
an archive with ``archive`` and ``criteria``. ``catalogue``, ``plans`` and ``commands`` say what was to be run, and
``extraction`` takes from bundles the facts that boards are compared with (:mod:`rowproof.evidence.facts`).
"""

from rowproof.evidence.facts import compare_with_facts, load_facts
from rowproof.evidence.published.admission import verify_admission
from rowproof.evidence.published.extraction import extract_facts, render_facts
from rowproof.evidence.published.tables import reference_rows
from rowproof.evidence.published.verify import verify_published

__all__ = [
    "compare_with_facts",
    "extract_facts",
    "load_facts",
    "reference_rows",
    "render_facts",
    "verify_admission",
    "verify_published",
]
