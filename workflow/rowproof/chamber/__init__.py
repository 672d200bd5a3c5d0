"""The two-arm benchmark family: an ego policy beside an unseen, frozen partner."""
