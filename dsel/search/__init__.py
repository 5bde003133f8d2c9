"""The main job: plan, run, choose, certify."""
