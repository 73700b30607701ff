"""The platform: server, pools, deployments, automations and workers, started and stopped together."""
