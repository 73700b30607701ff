"""The platform: server, pools, deployments, automations and workers, started and ended together."""
